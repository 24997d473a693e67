//! Messages above the size limit of an event: the event contains the beginning and the place of the whole message in the
//! journal. Requests are never truncated: they are shown whole, or denied.

use plexus_claude::{Block, Hunk, Incoming};
use plexus_protocol::{JournalRange, Object};
use serde_json::{Value, json};

/// The size that a number, a name or an empty list counts as.
const SMALL: usize = 16;
/// The short fields among this many first fields of a `system` message are always kept.
const FIELDS: usize = 64;
const SHORT: usize = 1024;

/// Truncates a message to about `limit` bytes. Returns the range for its events to name; a `system` event names it in its
/// data.
pub(super) fn truncate(message: &mut Incoming, limit: usize, range: JournalRange) -> Option<JournalRange> {
    let mut budget = ByteBudget(limit);
    match message {
        Incoming::Assistant(assistant) => budget.truncate_blocks(&mut assistant.blocks),
        Incoming::User(user) => {
            budget.truncate_blocks(&mut user.blocks);
            budget.truncate_patch(&mut user.patch);
        }
        Incoming::Result(result) => {
            result.result.iter_mut().chain(&mut result.errors).for_each(|text| budget.truncate_text(text));
        }
        Incoming::System(system) => budget.truncate_system(&mut system.data, range),
        Incoming::Other { data, .. } => budget.truncate_system(data, range),
        Incoming::Request(_)
        | Incoming::Response(_)
        | Incoming::Cancel { .. }
        | Incoming::Delta(_)
        | Incoming::KeepAlive
        | Incoming::Rubbish { .. }
        | Incoming::Blank => {}
    }
    matches!(message, Incoming::Assistant(_) | Incoming::User(_)).then_some(range)
}

fn is_short(name: &str, value: &Value) -> bool {
    let short = match value {
        Value::String(text) => text.len() <= SHORT,
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
        Value::Array(_) | Value::Object(_) => false,
    };
    short && name.len() <= SHORT
}

/// The number of bytes that may still be kept.
struct ByteBudget(usize);

impl ByteBudget {
    fn truncate_blocks(&mut self, blocks: &mut [Block]) {
        for block in blocks {
            match block {
                Block::Text { text } | Block::Thinking { text } => self.truncate_text(text),
                Block::ToolUse { input, .. } => self.truncate_object(input),
                Block::ToolResult { content, .. } => self.truncate_value(content),
                Block::Other { data, .. } => self.truncate_object(data),
            }
        }
    }

    /// Keeps a change of a file whole or not at all.
    fn truncate_patch(&mut self, patch: &mut Vec<Hunk>) {
        let bytes = patch.iter().flat_map(|hunk| &hunk.lines).map(|line| line.len() + SMALL).sum();
        if bytes > self.0 {
            patch.clear();
        } else {
            self.take(bytes);
        }
    }

    /// Keeps short fields wherever they are: some of them report the state of the child.
    fn truncate_system(&mut self, data: &mut Object, range: JournalRange) {
        let mut fields = 0;
        data.retain(|name, value| {
            fields += 1;
            if fields > FIELDS || !is_short(name, value) {
                return self.truncate_field(name, value);
            }
            true
        });
        data.insert("truncated".to_owned(), json!(range));
    }

    fn truncate_value(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => self.truncate_text(text),
            Value::Array(items) => {
                items.retain_mut(|item| {
                    let kept = self.0 > 0;
                    if kept {
                        self.truncate_value(item);
                    }
                    kept
                });
                items.shrink_to_fit();
            }
            Value::Object(fields) => self.truncate_object(fields),
            Value::Null | Value::Bool(_) | Value::Number(_) => self.take(SMALL),
        }
    }

    fn truncate_object(&mut self, fields: &mut Object) {
        fields.retain(|name, value| self.truncate_field(name, value));
    }

    /// Returns whether the field is kept at all.
    fn truncate_field(&mut self, name: &str, value: &mut Value) -> bool {
        let kept = self.0 > 0;
        if kept {
            self.take(name.len() + SMALL);
            self.truncate_value(value);
        }
        kept
    }

    fn truncate_text(&mut self, text: &mut String) {
        if text.len() > self.0 {
            text.truncate(text.floor_char_boundary(self.0));
            text.shrink_to_fit();
            // The text may end before a character that does not fit.
            self.0 = 0;
        }
        self.take(text.len());
    }

    fn take(&mut self, bytes: usize) {
        self.0 = self.0.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: JournalRange = JournalRange { run: 1, start: 5, end: 900 };

    fn truncated(line: &Value, limit: usize) -> (Incoming, Option<JournalRange>) {
        let mut message = plexus_claude::parse(line.to_string().as_bytes());
        let range = truncate(&mut message, limit, RANGE);
        (message, range)
    }

    #[test]
    fn a_change_of_a_file_is_dropped_if_it_does_not_fit() {
        let hunk = json!({"oldStart": 1, "newStart": 1, "lines": ["-aaaaaaaaaa", "+bbbbbbbbbb"]});
        let line = json!({"type": "user", "message": {"role": "user", "content": []}, "tool_use_result":
            {"structuredPatch": [hunk]}});
        for (limit, hunks) in [(1000, 1), (40, 0)] {
            let (Incoming::User(user), _) = truncated(&line, limit) else { panic!("{line}") };
            assert_eq!(user.patch.len(), hunks);
        }
    }

    #[test]
    fn texts_and_lists_are_truncated_to_fit() {
        let result = json!([{"type": "text", "text": "ä".repeat(100)}, {"type": "text", "text": "more"}]);
        let content = json!([{"type": "tool_result", "tool_use_id": "t", "content": result}]);
        let (message, range) = truncated(&json!({"type": "user", "message": {"content": content}}), 95);
        let Incoming::User(user) = message else { panic!("{message:?}") };
        let Block::ToolResult { content, tool_use_id, .. } = &user.blocks[0] else { panic!("{user:?}") };
        assert_eq!((tool_use_id.as_str(), range), ("t", Some(RANGE)), "the call of the result is kept");
        let text = content[0]["text"].as_str().unwrap();
        assert!(text.len() < 95 && text.chars().all(|c| c == 'ä') && !text.is_empty(), "{content}");
        assert_eq!(content.as_array().map(Vec::len), Some(1), "{content}");
    }

    #[test]
    fn many_small_values_are_truncated_like_a_large_one() {
        let many: Vec<u32> = (0..50_000).collect();
        let line = json!({"type": "system", "subtype": "news", "many": many, "state": "idle"});
        let (message, range) = truncated(&line, 1000);
        let Incoming::System(system) = message else { panic!("{message:?}") };
        assert_eq!(range, None);
        assert!(system.data["many"].as_array().is_some_and(|many| many.len() < 100), "{system:?}");
        assert_eq!(system.data["state"], "idle", "short fields are kept");
        assert_eq!(system.data["truncated"], json!({"run": 1, "start": 5, "end": 900}));
    }

    #[test]
    fn a_request_is_never_truncated() {
        let request = json!({"subtype": "can_use_tool", "tool_name": "Bash", "tool_use_id": "t",
                             "input": {"command": "x".repeat(1000)}});
        let line = json!({"type": "control_request", "request_id": "r", "request": request});
        assert_eq!(truncated(&line, 10), (plexus_claude::parse(line.to_string().as_bytes()), None));
    }
}
