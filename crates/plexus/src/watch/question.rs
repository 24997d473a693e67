//! An approval as a person reads it: commands as commands, edits as diffs, plans as texts, questions with their options.
//! Whatever else stands in the input is listed below, so that nothing of it stays unseen.

use plexus_protocol::{Approval, ApprovalKind, AskedOf, Decider, Object, WentOn};
use serde_json::Value;

use super::diff;
use super::rows::{Row, Tone};
use super::width::one_line;
use crate::remember;

/// All rows of an approval.
pub(crate) fn rows(approval: &Approval, now: u64) -> Vec<Row> {
    let mut rows = head(approval, now);
    rows.push(Row::new(Tone::Plain, ""));
    let mut rest = approval.input.clone();
    rows.extend(body(approval, &mut rest));
    for (name, value) in &rest {
        rows.extend(field(name, value));
    }
    if approval.truncated {
        rows.push(Row::new(Tone::Warn, "This is cut. Enter reads it whole; only then can it be approved."));
    }
    rows
}

fn head(approval: &Approval, now: u64) -> Vec<Row> {
    let what = match approval.kind {
        ApprovalKind::Tool => format!("{} wants to use {}", approval.session_name, approval.tool_name),
        ApprovalKind::Question => format!("{} asks", approval.session_name),
        ApprovalKind::Plan => format!("{} shows a plan", approval.session_name),
        ApprovalKind::Budget => format!("{} asks for more", approval.session_name),
    };
    let mut rows = vec![Row::new(Tone::Strong, &what), Row::led(Tone::Dim, "in ", &approval.cwd)];
    if let Some(reason) = &approval.reason {
        rows.push(Row::led(Tone::Dim, "because: ", reason));
    }
    if let Some(path) = &approval.blocked_path {
        rows.push(Row::led(Tone::Warn, "reaches for ", path));
    }
    if approval.asked_of != AskedOf::Operator {
        rows.push(Row::led(Tone::Dim, "asked of ", &approval.asked_of.key()));
    }
    for passed in &approval.passed {
        let from = passed.from.as_ref().map_or_else(|| passed.by.key(), AskedOf::key);
        let why = match passed.why {
            WentOn::Escalated => "passed it on",
            WentOn::Unanswered => "did not answer",
            WentOn::Absent => "was not there",
        };
        let went = match passed.from.as_ref().map(Decider::from) {
            Some(asked) if passed.why == WentOn::Escalated && asked != passed.by => {
                format!("{} {why}, past {from}", passed.by.key())
            }
            _ => format!("{from} {why}"),
        };
        rows.push(Row::new(Tone::Dim, &went));
        if let Some(opinion) = &passed.opinion {
            rows.extend(Row::lines(Tone::Plain, "  thinks: ", opinion));
        }
    }
    if let Some(at) = approval.expires_at {
        rows.push(Row::new(Tone::Warn, &format!("expires in {}", span(at.saturating_sub(now)))));
    }
    rows
}

/// What the tool is known to take; what is shown is taken out of `rest`.
fn body(approval: &Approval, rest: &mut Object) -> Vec<Row> {
    match approval.tool_name.as_str() {
        _ if approval.kind == ApprovalKind::Budget => Vec::new(),
        "Bash" | "Monitor" | "PowerShell" => {
            let mut rows = text(rest, "command").map_or_else(Vec::new, |command| command_rows(&command));
            rows.extend(text(rest, "description").iter().flat_map(|it| Row::lines(Tone::Dim, "# ", it)));
            rows
        }
        "Edit" => {
            let mut rows = file(rest);
            rows.extend(edit(rest));
            rows
        }
        "MultiEdit" => {
            let mut rows = file(rest);
            if rest
                .get("edits")
                .and_then(Value::as_array)
                .is_some_and(|edits| edits.iter().all(Value::is_object))
            {
                let edits = rest.remove("edits");
                for mut edited in edits
                    .as_ref()
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_object)
                    .cloned()
                {
                    rows.push(Row::new(Tone::Dim, "  ⋮"));
                    rows.extend(edit(&mut edited));
                    rows.extend(edited.iter().flat_map(|(name, value)| field(name, value)));
                }
            }
            rows
        }
        "Write" => {
            let mut rows = file(rest);
            rows.extend(text(rest, "content").iter().flat_map(|content| diff::added(content)));
            rows
        }
        "ExitPlanMode" => text(rest, "plan").map_or_else(Vec::new, |plan| Row::lines(Tone::Plain, "", &plan)),
        "AskUserQuestion" => {
            let questions = questions(&approval.input);
            if !questions.is_empty() {
                rest.remove("questions");
            }
            questions.iter().flat_map(Question::rows).collect()
        }
        _ => Vec::new(),
    }
}

fn command_rows(command: &str) -> Vec<Row> {
    let mut rows = Row::lines(Tone::Strong, "  ", command);
    if let Some(first) = rows.first_mut() {
        first.lead = "$ ";
    }
    rows
}

fn file(rest: &mut Object) -> Vec<Row> {
    text(rest, "file_path").iter().map(|path| Row::new(Tone::Strong, path)).collect()
}

fn edit(rest: &mut Object) -> Vec<Row> {
    if !(rest.get("old_string").is_some_and(Value::is_string)
        && rest.get("new_string").is_some_and(Value::is_string))
    {
        return Vec::new();
    }
    let (old, new) = (text(rest, "old_string"), text(rest, "new_string"));
    diff::rows(&old.unwrap_or_default(), &new.unwrap_or_default())
}

/// A text of the input, which is shown by whoever takes it.
fn text(rest: &mut Object, name: &str) -> Option<String> {
    if !rest.get(name).is_some_and(Value::is_string) {
        return None;
    }
    rest.remove(name).and_then(|value| value.as_str().map(str::to_owned))
}

fn field(name: &str, value: &Value) -> Vec<Row> {
    let name = one_line(name);
    match value {
        Value::String(text) if text.contains('\n') => {
            let mut rows = vec![Row::new(Tone::Dim, &format!("{name}:"))];
            rows.extend(Row::lines(Tone::Plain, "  ", text));
            rows
        }
        Value::String(text) => vec![Row::new(Tone::Plain, &format!("{name}: {text}"))],
        Value::Array(_) | Value::Object(_) => {
            let mut rows = vec![Row::new(Tone::Dim, &format!("{name}:"))];
            let shown = serde_json::to_string_pretty(value).unwrap_or_default();
            rows.extend(Row::lines(Tone::Plain, "  ", &shown));
            rows
        }
        other => vec![Row::new(Tone::Plain, &format!("{name}: {other}"))],
    }
}

/// One question of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    /// As the agent wrote it: the answer is filed under it.
    pub(crate) text: String,
    /// What it offers, and what it says of each.
    pub(crate) options: Vec<(String, Option<String>)>,
}

impl Question {
    fn rows(&self) -> Vec<Row> {
        let mut rows = Row::lines(Tone::Strong, "", &self.text);
        for (number, (label, description)) in self.options.iter().enumerate() {
            rows.push(Row::led(Tone::Plain, "  ", &format!("{}. {label}", number + 1)));
            rows.extend(description.iter().flat_map(|it| Row::lines(Tone::Dim, "     ", it)));
        }
        rows
    }

    /// The answer that someone typed: numbers of options, or words of their own.
    pub(crate) fn answer(&self, typed: &str) -> String {
        let chosen: Option<Vec<&str>> = typed
            .split([',', ' '])
            .filter(|part| !part.is_empty())
            .map(|part| {
                let number: usize = part.parse().ok()?;
                self.options.get(number.checked_sub(1)?).map(|(label, _)| label.as_str())
            })
            .collect();
        chosen
            .filter(|labels| !labels.is_empty())
            .map_or_else(|| typed.to_owned(), |labels| labels.join(", "))
    }
}

/// The questions in the input of AskUserQuestion; none when one of them cannot be read.
pub(crate) fn questions(input: &Object) -> Vec<Question> {
    let one = |value: &Value| {
        let text = value["question"].as_str()?.to_owned();
        let options = value["options"].as_array().into_iter().flatten().filter_map(|option| {
            let description = option["description"].as_str().map(str::to_owned);
            Some((option["label"].as_str()?.to_owned(), description))
        });
        Some(Question { text, options: options.collect() })
    };
    let all = input.get("questions").and_then(Value::as_array);
    all.and_then(|all| all.iter().map(one).collect()).unwrap_or_default()
}

/// The rule to fill in; empty where it is better to have it written.
pub(crate) fn suggested_rule(approval: &Approval) -> String {
    remember::suggested(approval).unwrap_or_default()
}

/// How an approval ended, in a few words.
pub(crate) fn ending(approval: &Approval) -> String {
    let status = serde_json::to_value(approval.status).ok();
    let status = status.as_ref().and_then(Value::as_str).unwrap_or("over").to_owned();
    let by = match approval.decision.as_ref().map(|decision| &decision.by) {
        None | Some(Decider::Hub) => String::new(),
        Some(by) => format!(" by {}", by.key()),
    };
    one_line(&format!("{} of {}: {status}{by}", approval.tool_name, approval.session_name))
}

/// A length of time in one or two figures.
pub(crate) fn span(secs: u64) -> String {
    match secs {
        0..60 => format!("{secs}s"),
        60..3600 => format!("{}m", secs / 60),
        3600..86_400 => format!("{}h", secs / 3600),
        _ => format!("{}d", secs / 86_400),
    }
}
