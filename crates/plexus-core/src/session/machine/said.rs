//! What an agent wrote before a call, as its own reason for the call: the last sentences of its latest text in the turn. Sub-agents
//! are kept apart by the call that started them.

use std::collections::HashMap;
use std::sync::Arc;

use plexus_protocol::Event;

/// The longest reason, in characters.
const MAX_CHARS: usize = 600;

/// The latest texts of the agents in the running turn.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// By the call that started the agent; `None` is the main agent.
    latest: HashMap<Option<String>, Arc<str>>,
    /// The latest text before each call without a result.
    before_calls: HashMap<String, Arc<str>>,
}

impl Said {
    /// Reads an event of the running turn.
    pub(super) fn read(&mut self, event: &Event) {
        match event {
            Event::Content { text, parent_tool_use_id, .. } if !text.trim().is_empty() => {
                self.latest.insert(parent_tool_use_id.clone(), last_sentences(text).into());
            }
            Event::ToolUse { tool_use_id, parent_tool_use_id, .. } => {
                if let Some(text) = self.latest.get(parent_tool_use_id) {
                    self.before_calls.insert(tool_use_id.clone(), Arc::clone(text));
                }
            }
            Event::ToolResult { tool_use_id, .. } => {
                self.before_calls.remove(tool_use_id);
                // A sub-agent that has finished writes no more.
                self.latest.remove(&Some(tool_use_id.clone()));
            }
            _ => {}
        }
    }

    /// The last sentences before a call.
    pub(super) fn before_call(&self, tool_use_id: &str) -> Option<String> {
        self.before_calls.get(tool_use_id).map(|text| text.to_string())
    }

    /// The turn has ended.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// The end of a text, from the start of a sentence. `…` marks a cut.
fn last_sentences(text: &str) -> String {
    let text = text.trim();
    let Some((cut, _)) = text.char_indices().rev().nth(MAX_CHARS - 1).filter(|(at, _)| *at > 0) else {
        return text.to_owned();
    };
    let end = &text[cut..];
    let sentence = end.char_indices().zip(end.chars().skip(1)).find_map(|((at, c), next)| {
        let ends = c == '\n' || matches!(c, '.' | '!' | '?' | ':') && next.is_whitespace();
        ends.then(|| end[at + 1..].trim_start()).filter(|rest| !rest.is_empty())
    });
    let word = || end.split_once(char::is_whitespace).map_or(end, |(_, rest)| rest.trim_start());
    format!("… {}", sentence.unwrap_or_else(word))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn said(events: &[Value]) -> Said {
        let mut said = Said::default();
        for event in events {
            said.read(&serde_json::from_value(event.clone()).expect("an event"));
        }
        said
    }

    fn text(text: &str, parent: Option<&str>) -> Value {
        json!({"type": "content", "text": text, "parent_tool_use_id": parent})
    }

    fn call(id: &str, parent: Option<&str>) -> Value {
        json!({"type": "tool_use", "tool_name": "Bash", "tool_use_id": id, "input": {}, "parent_tool_use_id": parent})
    }

    fn result(id: &str) -> Value {
        json!({"type": "tool_result", "tool_use_id": id, "output": "", "is_error": false})
    }

    #[test]
    fn the_reason_is_the_latest_text_of_the_same_agent() {
        let events = [
            text("I start a helper.", None),
            call("task", None),
            text("I am the helper.", Some("task")),
            call("inner", Some("task")),
            text("Now I push.", None),
            text(" \n", None),
            call("push", None),
            call("silent", Some("other task")),
        ];
        let said = said(&events);
        assert_eq!(said.before_call("task").as_deref(), Some("I start a helper."));
        assert_eq!(said.before_call("inner").as_deref(), Some("I am the helper."));
        assert_eq!(said.before_call("push").as_deref(), Some("Now I push."));
        assert_eq!(said.before_call("silent"), None);
        assert_eq!(said.before_call("unknown"), None);
    }

    #[test]
    fn nothing_is_kept_of_finished_calls_and_turns() {
        let mut said =
            said(&[text("a", None), call("1", None), result("1"), text("b", Some("2")), result("2")]);
        assert_eq!(said.before_call("1"), None);
        assert_eq!(said.latest.len(), 1);
        said.clear();
        assert!(said.latest.is_empty() && said.before_calls.is_empty());
    }

    #[test]
    fn a_long_text_is_cut_at_a_sentence() {
        let sentence = "Ünïcode sentence number one ends here. ";
        let long = last_sentences(&sentence.repeat(40));
        assert!(long.starts_with("… Ünïcode") && long.ends_with("here."), "{long}");
        assert!(long.chars().count() <= MAX_CHARS + 2);
        assert_eq!(last_sentences(" Short. \n"), "Short.");
        let exact = "x".repeat(MAX_CHARS);
        assert_eq!(last_sentences(&exact), exact);
        let unbroken = last_sentences(&"x".repeat(2 * MAX_CHARS));
        assert_eq!(unbroken.chars().count(), MAX_CHARS + 2, "without a boundary, the end alone");
        assert_eq!(last_sentences(&format!("{} last words", "x".repeat(2 * MAX_CHARS))), "… last words");
    }
}
