//! Events of a session as people read them: a line, or a few, for each that is worth one. Nothing a child wrote gets
//! through unescaped.

use serde_json::Value;

use crate::terminal::{one_line, safe, tool_line};

/// Longest line of a call or a result.
const WIDTH: usize = 120;

/// An event in words; `None` for those that would only distract.
pub(crate) fn event(event: &Value) -> Option<String> {
    let text = |key: &str| event[key].as_str().unwrap_or_default();
    let inner = if event["parent_tool_use_id"].is_string() { "  " } else { "" };
    let line = match text("type") {
        "content" => indented(&safe(text("text").trim_end()), inner),
        "thinking" => format!("{inner}~ {}", one_line(text("text"), WIDTH)),
        "tool_use" => {
            let empty = serde_json::Map::new();
            let input = event["input"].as_object().unwrap_or(&empty);
            let tool = text("tool_name");
            format!("{inner}> {} {}", one_line(tool, 60), tool_line(tool, input, WIDTH))
        }
        "tool_result" => result(event, inner),
        "approval_requested" => format!("{inner}? waits for an answer ({})", short(text("approval_id"))),
        "approval_resolved" => {
            let by = event["by"]["kind"].as_str().unwrap_or("hub");
            let by = if by == "operator" { "you" } else { by };
            let why = event["message"]
                .as_str()
                .map(|why| format!(": {}", one_line(why, WIDTH)))
                .unwrap_or_default();
            format!("{inner}= {} by {}{why}", one_line(text("status"), 20), one_line(by, 20))
        }
        "complete" => {
            let calls = event["num_turns"].as_u64().unwrap_or(0);
            format!("* complete, ${:.4}, {calls} model calls", event["cost_usd"].as_f64().unwrap_or(0.0))
        }
        "error" => {
            let stderr = event["stderr"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let said: String = stderr.map(|line| format!("\n  | {}", one_line(line, WIDTH))).collect();
            format!("! {}{said}", safe(text("message").trim_end()))
        }
        _ => return None,
    };
    Some(line)
}

fn result(event: &Value, inner: &str) -> String {
    let whole = match &event["output"] {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
            texts.join("\n")
        }
        other => other.to_string(),
    };
    let whole = whole.trim();
    let first = one_line(whole.lines().next().unwrap_or_default(), WIDTH);
    let more = match whole.lines().count() {
        0 | 1 => String::new(),
        lines => format!(" (and {} lines more)", lines - 1),
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

/// The beginning of an id, as `plexus approvals` shows it.
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
        assert_eq!(event(&ran).unwrap(), "  | a (and 2 lines more)");
        let refused =
            json!({"type": "tool_result", "output": [{"type": "text", "text": "no"}], "is_error": true});
        assert_eq!(event(&refused).unwrap(), "  ! no");
        assert_eq!(event(&json!({"type": "system", "subtype": "x"})), None);
    }

    #[test]
    fn whatever_a_child_wrote_is_shown_harmless() {
        let hostile = "\u{1b}]0;x\u{7}\u{202e}";
        for kind in ["content", "thinking", "tool_use", "tool_result", "approval_resolved", "error"] {
            let mut said =
                json!({"type": kind, "is_error": false, "by": {"kind": hostile}, "stderr": [hostile]});
            for key in ["text", "tool_name", "output", "message", "status", "approval_id"] {
                said[key] = json!(hostile);
            }
            said["input"] = json!({hostile: hostile});
            let shown = event(&said).unwrap();
            assert!(!shown.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{kind}: {shown:?}");
        }
    }
}
