//! Formats an approval: commands as commands, edits as diffs, plans as text, questions with their options. All other fields of the input
//! follow, so that nothing stays hidden. Rows of the input always start with a prefix (spaces, `$`, `#` or a line number); rows of
//! Plexus have none.

use std::borrow::Cow;

use plexus_protocol::loopback::TargetFile;
use plexus_protocol::{Approval, ApprovalKind, AskedOf, Decider, EscalationReason, Object};
use serde_json::Value;

use super::Reviewed;
use super::diff::{self, Edit, Occurrences};
use super::original::{Escapes, comparable, original};
use super::question::{Question, questions};
use super::risk;
use super::row::{Row, Tone};
use crate::escape::exact;

/// The prefix of further lines of a text. Without it they would look like fields, and a line of a command like a description.
const TEXT: &str = "| ";

/// All rows of an approval.
pub(crate) fn rows(reviewed: &Reviewed, now: u64) -> Vec<Row> {
    let (approval, escapes) = original(&reviewed.approval);
    let mut file = reviewed.file.clone();
    if let Some(TargetFile::Text { text, .. }) = &mut file {
        *text = comparable(text, escapes);
    }
    let reviewed = &Reviewed { approval, file };
    let approval = &reviewed.approval;
    let mut rows = head(approval, now);
    rows.push(Row::new(Tone::Plain, ""));
    let mut rest = approval.input.clone();
    rows.extend(body(reviewed, &mut rest));
    for (name, value) in &rest {
        rows.extend(field(name, value));
    }
    if escapes != Escapes::Literal || is_escaped(&rows) {
        rows.push(Row::new(Tone::Warn, WRITTEN_OUT));
        rows.push(Row::new(Tone::Warn, LITERAL));
    }
    if escapes == Escapes::Uncertain {
        rows.push(Row::new(Tone::Warn, UNCERTAIN));
    }
    if approval.truncated {
        rows.push(Row::new(
            Tone::Warn,
            "The rest is not shown here. You can allow it once you have seen all of it.",
        ));
    }
    rows
}

const WRITTEN_OUT: &str = "Control, direction and invisible characters are shown as \\u{…}.";
const LITERAL: &str = "A literal \\u{ is shown with a doubled backslash: \\\\u{…}.";
const UNCERTAIN: &str = "Some of the \\u{…} above may be literal text; the hub does not report which.";

/// Whether the rows contain escapes, or doubled backslashes.
fn is_escaped(rows: &[Row]) -> bool {
    rows.iter().any(|row| row.text.contains("\\u{"))
}

/// The title of an approval.
pub(crate) fn title(approval: &Approval) -> String {
    match approval.kind {
        ApprovalKind::Tool => {
            format!("{} wants to use {}", approval.session_label(), exact(&approval.tool_name))
        }
        ApprovalKind::Question => format!("{} asks a question", approval.session_label()),
        ApprovalKind::Plan => format!("{} presents a plan", approval.session_label()),
        ApprovalKind::Budget => format!("{} needs more budget", approval.session_label()),
    }
}

fn head(approval: &Approval, now: u64) -> Vec<Row> {
    let place = match &approval.host {
        Some(host) => format!("on {host}, in "),
        None => "in ".to_owned(),
    };
    let mut rows =
        vec![Row::new(Tone::Strong, &title(approval)), Row::exact(Tone::Dim, place, &approval.cwd)];
    if let Some(reason) = &approval.reason {
        rows.push(Row::exact(Tone::Dim, "because: ", reason));
    }
    rows.extend(risk::rows(approval, now));
    if let Some(path) = &approval.blocked_path {
        rows.push(Row::exact(Tone::Warn, "accesses ", path));
    }
    if approval.asked_of != AskedOf::Operator {
        rows.push(Row::led(Tone::Dim, "waits for ", &approval.asked_of.key()));
    }
    for passed in &approval.passed {
        let from = passed.from.as_ref().map_or_else(|| passed.by.key(), AskedOf::key);
        let why = match passed.why {
            EscalationReason::Escalated => "escalated it",
            EscalationReason::Unanswered => "did not answer in time",
            EscalationReason::Absent => "was not available",
        };
        let went = match passed.from.as_ref().map(Decider::from) {
            Some(asked) if passed.why == EscalationReason::Escalated && asked != passed.by => {
                format!("{} {why} past {from}", passed.by.key())
            }
            _ => format!("{from} {why}"),
        };
        rows.push(Row::new(Tone::Dim, &went));
        if let Some(opinion) = &passed.opinion {
            rows.extend(Row::exact_lines(Tone::Plain, "  opinion: ", opinion));
        }
    }
    if let Some(at) = approval.expires_at {
        rows.push(Row::new(Tone::Warn, &format!("expires in {}", span(at.saturating_sub(now)))));
    }
    rows
}

/// The known fields of the tool; the formatted ones are removed from `rest`.
fn body(reviewed: &Reviewed, rest: &mut Object) -> Vec<Row> {
    let approval = &reviewed.approval;
    match approval.tool_name.as_str() {
        _ if approval.kind == ApprovalKind::Budget => Vec::new(),
        "Bash" | "Monitor" | "PowerShell" => {
            let mut rows = text(rest, "command").map_or_else(Vec::new, |command| command_rows(&command));
            rows.extend(
                text(rest, "description").iter().flat_map(|it| Row::exact_lines(Tone::Dim, "# ", it)),
            );
            rows
        }
        "Write" => {
            let mut rows = path(rest);
            if let Some(content) = text(rest, "content") {
                rows.extend(written(reviewed.file.as_ref(), &content));
            }
            rows
        }
        "Edit" => {
            let mut rows = path(rest);
            let (mut now, notice) = text_of(reviewed.file.as_ref());
            rows.extend(notice);
            rows.extend(edit(&mut now, rest));
            rows
        }
        "MultiEdit" => {
            let mut rows = path(rest);
            let all = rest.get("edits").and_then(Value::as_array);
            let all = all
                .and_then(|all| all.iter().map(|edit| edit.as_object().cloned()).collect::<Option<Vec<_>>>());
            let (mut now, notice) = text_of(reviewed.file.as_ref());
            rows.extend(notice);
            for (number, mut fields) in all.into_iter().flatten().enumerate() {
                rest.remove("edits");
                rows.push(Row::new(Tone::Dim, &format!("edit {}:", number + 1)));
                rows.extend(edit(&mut now, &mut fields));
                rows.extend(fields.iter().flat_map(|(name, value)| field(name, value)));
            }
            rows
        }
        "ExitPlanMode" => {
            text(rest, "plan").map_or_else(Vec::new, |plan| Row::exact_lines(Tone::Plain, TEXT, &plan))
        }
        "AskUserQuestion" => {
            let questions = questions(&approval.input);
            if questions.is_empty() {
                return Vec::new();
            }
            let all = rest.remove("questions");
            let fields = all.iter().filter_map(Value::as_array).flatten().filter_map(Value::as_object);
            questions.iter().zip(fields).flat_map(question_rows).collect()
        }
        _ => Vec::new(),
    }
}

/// A question and the other fields of its object.
fn question_rows((question, fields): (&Question, &Object)) -> Vec<Row> {
    let mut rows = question.rows();
    let plain = |option: &Value| {
        let known = |fields: &Object| fields.keys().all(|name| name == "label" || name == "description");
        option["label"].is_string() && option.as_object().is_some_and(known)
    };
    let shown = fields.get("options").and_then(Value::as_array).is_some_and(|all| all.iter().all(plain));
    let rest = fields.iter().filter(|(name, _)| *name != "question" && !(shown && *name == "options"));
    rows.extend(rest.flat_map(|(name, value)| field(name, value)));
    rows
}

fn command_rows(command: &str) -> Vec<Row> {
    let mut rows = Row::exact_lines(Tone::Command, TEXT, command);
    if let Some(first) = rows.first_mut() {
        first.lead = Cow::Borrowed("$ ");
    }
    rows
}

fn path(rest: &mut Object) -> Vec<Row> {
    text(rest, "file_path").iter().map(|path| Row::exact(Tone::Strong, "  ", path)).collect()
}

fn written(file: Option<&TargetFile>, content: &str) -> Vec<Row> {
    let (notice, rows) = match file {
        None => return diff::added(content),
        Some(TargetFile::Missing { .. }) => (Row::new(Tone::Dim, "a new file:"), diff::added(content)),
        Some(TargetFile::Unavailable { reason, .. }) => (unavailable(reason), diff::added(content)),
        Some(TargetFile::Text { text, .. }) if text == content => {
            let notice = Row::new(Tone::Dim, "the file already has this content:");
            (notice, Row::exact_lines(Tone::Plain, TEXT, content))
        }
        Some(TargetFile::Text { text, .. }) => {
            let notice = Row::new(Tone::Warn, "replaces the content of an existing file:");
            (notice, diff::numbered(text, content))
        }
    };
    std::iter::once(notice).chain(rows).collect()
}

fn unavailable(reason: &str) -> Row {
    Row::exact(Tone::Warn, "the file on disk cannot be compared: ", reason)
}

/// The text that edits are compared with, or the reason why there is none.
fn text_of(file: Option<&TargetFile>) -> (Option<String>, Option<Row>) {
    match file {
        None => (None, None),
        Some(TargetFile::Text { text, .. }) => (Some(text.clone()), None),
        Some(TargetFile::Missing { .. }) => (None, Some(Row::new(Tone::Warn, "the file does not exist:"))),
        Some(TargetFile::Unavailable { reason, .. }) => (None, Some(unavailable(reason))),
    }
}

/// Formats one edit of the text `now`, which becomes the edited text. Fields that are not part of an edit stay.
fn edit(now: &mut Option<String>, fields: &mut Object) -> Vec<Row> {
    let is_text = |name: &str| fields.get(name).is_some_and(Value::is_string);
    if !(is_text("old_string") && is_text("new_string")) {
        return Vec::new();
    }
    let all = fields.get("replace_all") == Some(&Value::Bool(true));
    let (old, new) =
        (text(fields, "old_string").unwrap_or_default(), text(fields, "new_string").unwrap_or_default());
    let occurrences = if all { Occurrences::All } else { Occurrences::One };
    let edit = Edit { old: &old, new: &new, occurrences };
    if let Some((rows, after)) = now.as_deref().and_then(|now| diff::edit(now, edit)) {
        *now = Some(after);
        return rows;
    }
    let mut rows = Vec::new();
    if now.take().is_some() && !old.is_empty() {
        rows.push(Row::new(Tone::Warn, "the file does not contain this text exactly once:"));
    }
    rows.extend(diff::rows(&old, &new));
    rows
}

/// Removes a text field from the input; the caller shows it.
fn text(rest: &mut Object, name: &str) -> Option<String> {
    if !rest.get(name).is_some_and(Value::is_string) {
        return None;
    }
    rest.remove(name).and_then(|value| value.as_str().map(str::to_owned))
}

/// A field with its name and whole value.
pub(crate) fn field(name: &str, value: &Value) -> Vec<Row> {
    let name = exact(name);
    let below = |shown: &str| {
        let mut rows = vec![Row { tone: Tone::Dim, lead: Cow::Borrowed("  "), text: format!("{name}:") }];
        rows.extend(Row::exact_lines(Tone::Plain, "    ", shown));
        rows
    };
    match value {
        Value::String(text) if text.contains('\n') => below(text),
        Value::String(text) => vec![Row {
            tone: Tone::Plain,
            lead: Cow::Borrowed("  "),
            text: format!("{name}: {}", exact(text)),
        }],
        Value::Array(_) | Value::Object(_) => below(&serde_json::to_string_pretty(value).unwrap_or_default()),
        other => vec![Row { tone: Tone::Plain, lead: Cow::Borrowed("  "), text: format!("{name}: {other}") }],
    }
}

/// A duration in short form.
pub(crate) fn span(secs: u64) -> String {
    match secs {
        0..60 => format!("{secs}s"),
        60..3600 => format!("{}m", secs / 60),
        3600..86_400 => format!("{}h", secs / 3600),
        _ => format!("{}d", secs / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(tool: &str, input: Value) -> Vec<String> {
        let id = "0b5c0000-0000-4000-8000-000000000000";
        let kind = if tool == "AskUserQuestion" { "question" } else { "tool" };
        let approval = json!({
            "id": id, "session_id": id, "session_name": "a", "kind": kind, "tool_name": tool, "tool_use_id": "t",
            "input": input, "status": "pending", "created_at": 0, "asked_of": {"kind": "operator"}, "cwd": "/",
        });
        let rows = rows(&Reviewed::read(json!({"approval": approval})).unwrap(), 0);
        rows.iter().skip(3).map(|row| format!("{}{}", row.lead, row.text)).collect()
    }

    #[test]
    fn a_line_of_a_text_cannot_pass_for_a_field_or_an_option() {
        let command = json!({"command": "ls\ndescription: $(touch x)\n# no comment"});
        let fields = json!({"command": "ls", "description": "$(touch x)\nno comment", "timeout": 5});
        assert_eq!(shown("Bash", command), ["$ ls", "| description: $(touch x)", "| # no comment"]);
        assert_eq!(shown("Bash", fields), ["$ ls", "# $(touch x)", "# no comment", "  timeout: 5"]);
        let plan = json!({"plan": "Read\nmode: plan", "mode": "x"});
        assert_eq!(shown("ExitPlanMode", plan), ["| Read", "| mode: plan", "  mode: x"]);
        let asked = json!({"questions": [{"question": "Which?\n  1. none", "options": [{"label": "all"}]}]});
        assert_eq!(shown("AskUserQuestion", asked), ["? Which?", "?   1. none", "    1. all"]);
    }
}
