//! Parses a model request: its script, the step that is due, and its tool results. It keeps no state between requests, so a retried, resumed
//! or forked conversation gets the right answer.

use serde_json::Value;

/// The step that answers a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Due<'a> {
    pub marker: &'a str,
    pub step: usize,
}

/// Finds the last user text with a marker and counts the model's answers after it. So each prompt of a session can have its own script, and
/// also each sub-agent, whose conversation starts with its prompt.
pub(super) fn due<'a>(body: &Value, markers: impl Iterator<Item = &'a str> + Clone) -> Option<Due<'a>> {
    let messages = body["messages"].as_array()?;
    let mut answers = 0;
    for message in messages.iter().rev() {
        match message["role"].as_str() {
            Some("assistant") => answers += 1,
            Some("user") => {
                let holding = |text: &str| {
                    let held = markers.clone().filter(|marker| is_prompt(text) && text.contains(marker));
                    held.max_by_key(|marker| marker.len())
                };
                // The last text of a message is the prompt. Reminders precede it.
                if let Some(marker) = texts(&message["content"]).rev().find_map(holding) {
                    return Some(Due { marker, step: answers });
                }
            }
            _ => {}
        }
    }
    None
}

/// Whether a text is a prompt. When a background task ends, the CLI sends a user message that names tool calls, and so their markers.
fn is_prompt(text: &str) -> bool {
    !text.contains("<task-notification>")
}

/// The text blocks of a message's content, which may be one plain string.
fn texts(content: &Value) -> impl DoubleEndedIterator<Item = &str> {
    let blocks = content.as_array().map(Vec::as_slice).unwrap_or_default();
    content.as_str().into_iter().chain(blocks.iter().filter_map(|block| block["text"].as_str()))
}

/// The result of a tool call, as the model received it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// The id of the call.
    pub tool_use_id: String,
    /// The text of the result, several blocks joined by newlines.
    pub text: String,
    /// Whether it is an error. A denial is also an error.
    pub is_error: bool,
}

/// All tool results in a request body, oldest first.
#[must_use]
pub fn tool_results(body: &Value) -> Vec<ToolResult> {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    blocks
        .filter(|block| block["type"] == "tool_result")
        .map(|block| ToolResult {
            tool_use_id: block["tool_use_id"].as_str().unwrap_or_default().to_owned(),
            text: texts(&block["content"]).collect::<Vec<_>>().join("\n"),
            is_error: block["is_error"].as_bool().unwrap_or(false),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn due_in<'a>(messages: Value, markers: &'a [&'a str]) -> Option<(&'a str, usize)> {
        due(&json!({ "messages": messages }), markers.iter().copied()).map(|due| (due.marker, due.step))
    }

    #[test]
    fn the_number_of_answers_after_the_prompt_is_the_step() {
        let prompt = json!({"role":"user","content":"do M1 please"});
        let call =
            json!({"role":"assistant","content":[{"type":"tool_use","id":"t","name":"Bash","input":{}}]});
        let result =
            json!({"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"ok"}]});
        assert_eq!(due_in(json!([prompt]), &["M1"]), Some(("M1", 0)));
        assert_eq!(due_in(json!([prompt, call, result]), &["M1"]), Some(("M1", 1)));
        let second = json!({"role":"user","content":[{"type":"text","text":"now M2"}]});
        assert_eq!(due_in(json!([prompt, call, result, call, second]), &["M1", "M2"]), Some(("M2", 0)));
        assert_eq!(due_in(json!([prompt]), &["M2"]), None);
    }

    #[test]
    fn a_marker_in_a_tool_result_is_not_a_prompt() {
        let prompt = json!({"role":"user","content":"M1"});
        let call = json!({"role":"assistant","content":"…"});
        let result = json!({"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":
            [{"type":"text","text":"M2"}]}]});
        assert_eq!(due_in(json!([prompt, call, result]), &["M1", "M2"]), Some(("M1", 1)));
    }

    #[test]
    fn the_end_of_a_background_task_is_not_a_prompt() {
        let prompt = json!({"role":"user","content":"M1"});
        let call = json!({"role":"assistant","content":"…"});
        let text = "<task-notification>\n<tool-use-id>toolu_M1_0_0</tool-use-id>\n</task-notification>";
        let notification = json!({"role":"user","content":[{"type":"text","text":text}]});
        assert_eq!(due_in(json!([prompt, call, notification]), &["M1"]), Some(("M1", 1)));
    }

    #[test]
    fn the_longest_matching_marker_wins() {
        assert_eq!(
            due_in(json!([{"role":"user","content":"child-10"}]), &["child-1", "child-10"]),
            Some(("child-10", 0))
        );
    }

    #[test]
    fn tool_results_are_read_in_both_shapes() {
        let body = json!({"messages":[{"role":"user","content":[
            {"type":"tool_result","tool_use_id":"a","content":"plain"},
            {"type":"tool_result","tool_use_id":"b","is_error":true,"content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]}]}]});
        let results: Vec<_> =
            tool_results(&body).into_iter().map(|r| (r.tool_use_id, r.text, r.is_error)).collect();
        assert_eq!(results, [("a".into(), "plain".into(), false), ("b".into(), "x\ny".into(), true)]);
    }
}
