//! Formats the events of a session for a terminal: the agent's text as Markdown behind a gutter, calls, the last lines of their output,
//! changes of files, decisions and errors. Only lines of the agent's text start with the gutter, so an agent's text cannot imitate a line of Plexus.

use std::collections::HashMap;

use plexus_protocol::{Hunk, Object};
use serde_json::Value;

use super::text_stream::{Part, Place};
use crate::escape::safe;
use crate::markdown;
use crate::notices;
use crate::paint::{Ink, Paint};
use crate::plural::counted;
use crate::prompts;
use crate::review::width::cut;
use crate::review::{Row, Tone, diff, fit};
use crate::show::{Requested, changed, output_text};
use crate::terminal::{one_line, tool_line};

/// The prefix of the agent's text.
const GUTTER: &str = "│";
/// The columns of the gutter and a blank, in terminals that draw lines two columns wide.
const GUTTER_COLUMNS: usize = 3;
/// The longest text that is cut to the width afterwards.
const LONGEST: usize = 400;
/// How many lines of an output are shown.
const OUTPUT_LINES: usize = 5;
/// How many lines of a change are shown that needed no approval.
const CHANGE_LINES: usize = 30;
/// How many lines of a prompt are shown.
const PROMPT_LINES: usize = 20;

/// The state of the transcript.
#[derive(Debug)]
pub(super) struct Transcript {
    paint: Paint,
    requested: Requested,
    /// Calls that change a file and have no result yet.
    changes: HashMap<String, FileChange>,
}

/// A call that changes a file.
#[derive(Debug)]
struct FileChange {
    tool: String,
    input: Object,
    shown: Shown,
}

/// Whether a change is on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// Its approval shows it.
    ByApproval,
    /// Its result has to show it.
    NotYet,
}

impl Transcript {
    pub(super) fn new(paint: Paint) -> Self {
        Self { paint, requested: Requested::default(), changes: HashMap::new() }
    }

    /// The agent's text, rendered.
    pub(super) fn text(&self, part: &Part, inner: &str, width: usize) -> String {
        let gutter = format!("{inner}{}", self.paint.ink(Ink::Dim, GUTTER));
        let room = width.saturating_sub(GUTTER_COLUMNS + inner.len());
        let rendered = markdown::render(&part.text, room, self.paint);
        let blank = (part.place == Place::Further).then(String::new);
        let lines = blank
            .into_iter()
            .chain(rendered)
            .map(|line| if line.is_empty() { gutter.clone() } else { format!("{gutter} {line}") });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The lines of an event, except text; `None` for an event that is not shown.
    pub(super) fn event(&mut self, event: &Value, width: usize) -> Option<String> {
        let inner = if event["parent_tool_use_id"].is_string() { "  " } else { "" };
        let change = self.requested.record(event);
        let mut rows = self.rows(event, width)?;
        rows.extend(change.into_iter().flatten());
        let lines = fit(&rows, width.saturating_sub(inner.len()));
        let lines = lines.iter().map(|row| format!("{inner}{}", self.paint.row(row)));
        Some(lines.collect::<Vec<_>>().join("\n"))
    }

    fn rows(&mut self, event: &Value, width: usize) -> Option<Vec<Row>> {
        let text = |name: &str| event[name].as_str().unwrap_or_default();
        let one = |tone, lead: &'static str, text: &str| {
            let room = width.saturating_sub(lead.len() + 2);
            vec![Row::led(tone, lead, &cut(&one_line(text, LONGEST), room))]
        };
        Some(match text("type") {
            "thinking" => one(Tone::Dim, "~ ", text("text")),
            "tool_use" => {
                let (tool, input) =
                    (text("tool_name"), event["input"].as_object().cloned().unwrap_or_default());
                let line = format!("{} {}", one_line(tool, 60), tool_line(tool, &input, LONGEST));
                if matches!(tool, "Edit" | "Write" | "MultiEdit") {
                    let change = FileChange { tool: tool.to_owned(), input, shown: Shown::NotYet };
                    self.changes.insert(text("tool_use_id").to_owned(), change);
                }
                let tone = if tool == "Bash" { Tone::Command } else { Tone::Strong };
                one(tone, "> ", &line)
            }
            "approval_requested" => {
                if let Some(change) = self.changes.get_mut(text("tool_use_id")) {
                    change.shown = Shown::ByApproval;
                }
                return None;
            }
            "tool_result" => return self.result(event),
            "approval_resolved" => {
                let by = event["by"]["kind"].as_str().unwrap_or("hub");
                let by = if by == "operator" { "you" } else { by };
                let why = event["message"].as_str().map(|why| format!(": {why}")).unwrap_or_default();
                let tone = if text("status") == "allowed" { Tone::Added } else { Tone::Warn };
                let line = format!("{} by {by}{}{why}", text("status"), changed(event));
                vec![Row::led(tone, "= ", &one_line(&line, LONGEST))]
            }
            "complete" => {
                let (cost, calls) =
                    (event["cost_usd"].as_f64().unwrap_or(0.0), event["num_turns"].as_u64().unwrap_or(0));
                vec![Row::led(
                    Tone::Dim,
                    "* ",
                    &format!("complete, ${cost:.4}, {}", counted(calls, "model call", "model calls")),
                )]
            }
            "error" => {
                let message = text("message").trim_end();
                let mut rows = Row::lines(Tone::Removed, "! ", &safe(message));
                let stderr = event["stderr"].as_array().into_iter().flatten().filter_map(Value::as_str);
                rows.extend(stderr.map(|line| Row::led(Tone::Dim, "  | ", line)));
                rows.extend(notices::advice(message).map(|advice| Row::led(Tone::Warn, "! ", advice)));
                rows
            }
            "start" => return prompt(event),
            "system" if text("subtype") == "sent" => return prompt(event),
            "system" => vec![Row::led(Tone::Warn, "! ", &notices::notice(event)?)],
            _ => return None,
        })
    }

    /// The change of a file, or the last lines of the output; `None` for a change that its approval has shown.
    fn result(&mut self, event: &Value) -> Option<Vec<Row>> {
        let change = self.changes.remove(event["tool_use_id"].as_str().unwrap_or_default());
        if let Some(change) = change.filter(|_| event["is_error"] != true) {
            if change.shown == Shown::ByApproval {
                return None;
            }
            let patch: Vec<Hunk> = serde_json::from_value(event["patch"].clone()).unwrap_or_default();
            let mut rows = if patch.is_empty() { change.rows() } else { indented(diff::hunks(&patch)) };
            let more = rows.len().saturating_sub(CHANGE_LINES);
            if more > 0 {
                rows.truncate(CHANGE_LINES);
                rows.push(Row::led(Tone::Dim, "  ", &format!("… {}", counted(more, "line", "lines"))));
            }
            return Some(rows);
        }
        let (tone, lead) =
            if event["is_error"] == true { (Tone::Removed, "  ! ") } else { (Tone::Dim, "  | ") };
        let output = output_text(&event["output"]);
        let all: Vec<&str> = output.trim().lines().collect();
        let above = all.len().saturating_sub(OUTPUT_LINES);
        let mut rows = Vec::new();
        if above > 0 {
            rows.push(Row::led(Tone::Dim, lead, &format!("… {} above", counted(above, "line", "lines"))));
        }
        let shown = all.get(above..).unwrap_or_default();
        rows.extend(shown.iter().map(|line| Row::led(tone, lead, &one_line(line, LONGEST))));
        if rows.is_empty() {
            rows.push(Row::led(Tone::Dim, lead, "no output"));
        }
        Some(rows)
    }
}

/// The first lines of a prompt, and its attachments.
fn prompt(event: &Value) -> Option<Vec<Row>> {
    let prompts::Shown { text, attachments } = prompts::of(event)?;
    let mut rows = Row::lines(Tone::Strong, prompts::LEAD, text);
    let more = rows.len().saturating_sub(PROMPT_LINES);
    if more > 0 {
        rows.truncate(PROMPT_LINES);
        let more = counted(more, "line", "lines");
        rows.push(Row::led(Tone::Dim, prompts::LEAD, &format!("… {more}; `plexus logs` shows all")));
    }
    rows.extend(attachments.into_iter().flat_map(|lines| Row::lines(Tone::Dim, "", &lines)));
    (!rows.is_empty()).then_some(rows)
}

impl FileChange {
    /// The change without line numbers, from the input of the call.
    fn rows(&self) -> Vec<Row> {
        let text = |fields: &Object, name: &str| {
            fields.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let edit = |fields: &Object| diff::rows(&text(fields, "old_string"), &text(fields, "new_string"));
        let rows = match self.tool.as_str() {
            "Write" => diff::added(&text(&self.input, "content")),
            "MultiEdit" => {
                let edits = self.input.get("edits").and_then(Value::as_array).into_iter().flatten();
                edits.filter_map(Value::as_object).flat_map(edit).collect()
            }
            _ => edit(&self.input),
        };
        indented(rows)
    }
}

fn indented(rows: Vec<Row>) -> Vec<Row> {
    rows.into_iter().map(|row| Row { lead: format!("  {}", row.lead).into(), ..row }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plain(event: Value, width: usize) -> Option<String> {
        Transcript::new(Paint::Plain).event(&event, width)
    }

    #[test]
    fn the_last_lines_of_an_output_are_shown() {
        let output = (1..=8).map(|number| number.to_string()).collect::<Vec<_>>().join("\n");
        assert_eq!(
            plain(json!({"type": "tool_result", "output": output}), 40).unwrap(),
            "  | … 3 lines above\n  | 4\n  | 5\n  | 6\n  | 7\n  | 8"
        );
        assert_eq!(plain(json!({"type": "tool_result", "output": ""}), 40).unwrap(), "  | no output");
        let failed =
            json!({"type": "tool_result", "output": [{"type": "text", "text": "no"}], "is_error": true});
        assert_eq!(plain(failed, 40).unwrap(), "  ! no");
    }

    #[test]
    fn a_change_is_shown_once_by_its_approval_or_with_its_result() {
        let call = json!({"type": "tool_use", "tool_use_id": "t", "tool_name": "Edit",
            "input": {"file_path": "/a.rs", "old_string": "a\nb\n", "new_string": "a\nc\n"}});
        let result = json!({"type": "tool_result", "tool_use_id": "t", "output": "done"});
        let mut transcript = Transcript::new(Paint::Plain);
        assert_eq!(transcript.event(&call, 40).unwrap(), "> Edit /a.rs");
        assert_eq!(transcript.event(&result, 40).unwrap(), "    a\n  - b\n  + c");
        transcript.event(&call, 40);
        let lines = [" x", "-b", "+c", "+d", " y"];
        let patch = json!([{"old_start": 9, "new_start": 9, "lines": lines}, {"old_start": 30, "new_start": 31, "lines": ["-z"]}]);
        let numbered = json!({"type": "tool_result", "tool_use_id": "t", "output": "done", "patch": patch});
        assert_eq!(
            transcript.event(&numbered, 40).unwrap(),
            "   9   x\n  10 - b\n  10 + c\n  11 + d\n  12   y\n  ⋮\n  30 - z"
        );
        transcript.event(&call, 40);
        transcript.event(&json!({"type": "approval_requested", "tool_use_id": "t"}), 40);
        assert_eq!(transcript.event(&result, 40), None);
    }

    #[test]
    fn text_of_the_agent_cannot_imitate_a_line_of_plexus() {
        let transcript = Transcript::new(Paint::Colours);
        let text = "plexus: Allowed\n\n```\n* complete\n```\n\n\u{1b}[2K\r= allowed by you &#27;[1A";
        let shown = transcript.text(&Part { text: text.to_owned(), place: Place::First }, "", 40);
        assert!(shown.lines().all(|line| line.starts_with("\u{1b}[2m│\u{1b}[0m")), "{shown}");
        assert!(
            !shown.contains("\u{1b}[2K") && !shown.contains("\u{1b}[1A") && !shown.contains('\r'),
            "{shown}"
        );
    }

    #[test]
    fn an_event_is_escaped_and_a_problem_of_the_model_is_explained() {
        let hostile = "\u{1b}]0;x\u{7}\u{202e}";
        for kind in ["thinking", "tool_use", "tool_result", "approval_resolved", "error"] {
            let mut event = json!({"type": kind, "by": {"kind": hostile}, "stderr": [hostile]});
            for key in ["text", "tool_name", "output", "message", "status"] {
                event[key] = json!(hostile);
            }
            let shown = plain(event, 40).unwrap();
            assert!(
                !shown.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'),
                "{kind}: {shown:?}"
            );
        }
        let retry = json!({"type": "system", "subtype": "api_retry", "data": {"error_status": 529}});
        assert_eq!(plain(retry, 80).unwrap(), "! The model is overloaded (HTTP 529). Retry.");
        assert_eq!(plain(json!({"type": "system", "subtype": "init", "data": {}}), 80), None);
        let login = json!({"type": "error", "message": "API Error: 401 Invalid authentication"});
        assert!(plain(login, 200).unwrap().contains("\n! Run `claude` and log in"));
    }
}
