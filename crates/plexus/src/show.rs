//! Formats the events of a session for people, with one or a few lines each. All text of an agent is escaped. An edited call is shown
//! with its changes, so the inputs of open calls are kept.

use std::collections::HashMap;

use plexus_protocol::Object;
use serde_json::Value;

use crate::escape::safe;
use crate::notices;
use crate::plural::counted;
use crate::prompts;
use crate::review::{Row, change, fit};
use crate::terminal::{one_line, size, tool_line};

/// Longest line of a call or a result.
const WIDTH: usize = 120;

/// Events as lines.
#[derive(Debug, Default)]
pub(crate) struct Events {
    requested: Requested,
}

impl Events {
    /// The lines of an event; `None` for an event that is not shown.
    pub(crate) fn event(&mut self, event: &Value) -> Option<String> {
        let lines = self::event(event);
        let inner = if event["parent_tool_use_id"].is_string() { "  " } else { "" };
        let Some(change) = self.requested.record(event) else { return lines };
        let rows = fit(&change, size().0.max(40) - inner.len());
        let shown: Vec<String> =
            rows.iter().map(|row| format!("{inner}{}{}", row.lead, row.text).trim_end().to_owned()).collect();
        lines.map(|lines| format!("{lines}\n{}", shown.join("\n")))
    }
}

/// The inputs of calls that have no result yet, to compare an edited input with.
#[derive(Debug, Default)]
pub(crate) struct Requested(HashMap<String, Object>);

impl Requested {
    /// Records an event. For a call that was allowed with an edited input, returns what ran and how it differs.
    pub(crate) fn record(&mut self, event: &Value) -> Option<Vec<Row>> {
        let call = event["tool_use_id"].as_str()?;
        match event["type"].as_str()? {
            "tool_use" => drop(self.0.insert(call.to_owned(), event["input"].as_object()?.clone())),
            "tool_result" => drop(self.0.remove(call)),
            "approval_resolved" => {
                let ran = event["updated_input"].as_object()?;
                return Some(match self.0.get(call) {
                    Some(requested) => change::rows(requested, ran),
                    None => change::rows(&Object::new(), ran),
                });
            }
            _ => {}
        }
        None
    }
}

/// How a resolved approval changed the call: by an edit, by answers, or not at all.
pub(crate) fn changed(event: &Value) -> &'static str {
    match event["updated_input"].as_object() {
        None => "",
        Some(input) if input.contains_key("answers") => ", answered",
        // A budget request has no call; the input is the amount.
        Some(input) if input.len() == 1 && input.contains_key("more") => "",
        Some(_) => ", edited",
    }
}

fn event(event: &Value) -> Option<String> {
    let text = |key: &str| event[key].as_str().unwrap_or_default();
    let inner = if event["parent_tool_use_id"].is_string() { "  " } else { "" };
    let line = match text("type") {
        "content" => indented(&prompts::distinct(&safe(text("text").trim_end())), inner),
        "thinking" => format!("{inner}~ {}", one_line(text("text"), WIDTH)),
        "tool_use" => {
            let empty = serde_json::Map::new();
            let input = event["input"].as_object().unwrap_or(&empty);
            let tool = text("tool_name");
            format!("{inner}> {} {}", one_line(tool, 60), tool_line(tool, input, WIDTH))
        }
        "tool_result" => result(event, inner),
        "approval_requested" => format!("{inner}? needs approval ({})", short(text("approval_id"))),
        "approval_resolved" => {
            let by = event["by"]["kind"].as_str().unwrap_or("hub");
            let by = if by == "operator" { "you" } else { by };
            let why = event["message"]
                .as_str()
                .map(|why| format!(": {}", one_line(why, WIDTH)))
                .unwrap_or_default();
            let changed = changed(event);
            format!("{inner}= {} by {}{changed}{why}", one_line(text("status"), 20), one_line(by, 20))
        }
        "complete" => {
            let calls = event["num_turns"].as_u64().unwrap_or(0);
            let calls = counted(calls, "model call", "model calls");
            format!("* complete, ${:.4}, {calls}", event["cost_usd"].as_f64().unwrap_or(0.0))
        }
        "error" => {
            let stderr = event["stderr"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let shown_stderr: String =
                stderr.map(|line| format!("\n  | {}", one_line(line, WIDTH))).collect();
            let advice = notices::advice(text("message"));
            let advice = advice.map(|advice| format!("\n! {advice}")).unwrap_or_default();
            format!("! {}{shown_stderr}{advice}", safe(text("message").trim_end()))
        }
        "start" => return prompts::lines(event),
        "system" if text("subtype") == "sent" => return prompts::lines(event),
        "system" => format!("! {}", notices::notice(event)?),
        _ => return None,
    };
    Some(line)
}

/// The text of a tool's output.
pub(crate) fn output_text(output: &Value) -> String {
    match output {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
            texts.join("\n")
        }
        other => other.to_string(),
    }
}

fn result(event: &Value, inner: &str) -> String {
    let whole = output_text(&event["output"]);
    let whole = whole.trim();
    let first = one_line(whole.lines().next().unwrap_or_default(), WIDTH);
    let more = match whole.lines().count() {
        0 | 1 => String::new(),
        lines => format!(" (and {})", counted(lines - 1, "more line", "more lines")),
    };
    let mark = if event["is_error"] == true { "  !" } else { "  |" };
    format!("{inner}{mark} {first}{more}").trim_end().to_owned()
}

fn indented(text: &str, inner: &str) -> String {
    if inner.is_empty() {
        return text.to_owned();
    }
    text.lines().map(|line| format!("{inner}{line}")).collect::<Vec<_>>().join("\n")
}

/// A prefix of an id, as `plexus approvals` shows it.
pub(crate) fn short(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_and_its_result_take_a_line_each() {
        let call = json!({"type": "tool_use", "tool_name": "Bash", "input": {"command": "ls\nls"}});
        assert_eq!(event(&call).unwrap(), "> Bash ls⏎ls");
        let ran = json!({"type": "tool_result", "output": "a\nb\nc\n", "is_error": false});
        assert_eq!(event(&ran).unwrap(), "  | a (and 2 more lines)");
        let two = json!({"type": "tool_result", "output": "a\nb\n", "is_error": false});
        assert_eq!(event(&two).unwrap(), "  | a (and 1 more line)");
        let refused =
            json!({"type": "tool_result", "output": [{"type": "text", "text": "no"}], "is_error": true});
        assert_eq!(event(&refused).unwrap(), "  ! no");
        assert_eq!(event(&json!({"type": "system", "subtype": "x"})), None);
    }

    #[test]
    fn an_edited_call_is_shown_with_its_changes() {
        let mut events = Events::default();
        let call = json!({"type": "tool_use", "tool_use_id": "t", "tool_name": "Bash", "input": {"command": "touch a", "description": "x"}});
        events.event(&call);
        let resolved = |updated: Value| json!({"type": "approval_resolved", "tool_use_id": "t", "status": "allowed", "by": {"kind": "operator"}, "updated_input": updated});
        assert_eq!(
            events.event(&resolved(json!({"command": "touch b", "description": "x"}))).unwrap(),
            "= allowed by you, edited\n  command:\n  - touch a\n  + touch b\n  unchanged: description"
        );
        assert_eq!(events.event(&resolved(Value::Null)).unwrap(), "= allowed by you");
        let ask = json!({"type": "tool_use", "tool_use_id": "t", "tool_name": "AskUserQuestion", "input": {"questions": []}});
        events.event(&ask);
        assert_eq!(
            events.event(&resolved(json!({"questions": [], "answers": {"Which?": "blue"}}))).unwrap(),
            "= allowed by you, answered\n  Which?\n    answer: blue"
        );
    }

    #[test]
    fn all_text_of_an_agent_is_escaped() {
        let hostile = "\u{1b}]0;x\u{7}\u{202e}";
        for kind in ["content", "thinking", "tool_use", "tool_result", "approval_resolved", "error"] {
            let mut event =
                json!({"type": kind, "is_error": false, "by": {"kind": hostile}, "stderr": [hostile]});
            for key in ["text", "tool_name", "output", "message", "status", "approval_id"] {
                event[key] = json!(hostile);
            }
            event["input"] = json!({hostile: hostile});
            event["tool_use_id"] = json!("t");
            event["updated_input"] = event["input"].clone();
            let shown = Events::default().event(&event).unwrap();
            assert!(!shown.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{kind}: {shown:?}");
        }
    }
}
