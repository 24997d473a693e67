//! The texts that are derived from the content of a conversation node: its preview and its searchable text. Every backend stores
//! the same ones.

use serde_json::Value;

/// How many bytes of a node can be found by searching.
const SEARCHABLE_BYTES: usize = 16 * 1024;
/// How many characters a preview has.
const PREVIEW_CHARS: usize = 120;

/// The beginning of a content, in one line.
pub(crate) fn preview(content: &Value) -> String {
    let mut text = String::new();
    gather(content, 4 * PREVIEW_CHARS, &mut text);
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(PREVIEW_CHARS).collect()
}

/// The text of a content that a search finds.
pub(crate) fn searchable(content: &Value) -> String {
    let mut text = String::new();
    gather(content, SEARCHABLE_BYTES, &mut text);
    spaced(&text)
}

/// The content of a node as a list of blocks, to which more can be appended.
pub(crate) fn as_blocks(content: Value) -> Vec<Value> {
    match content {
        Value::Array(blocks) => blocks,
        Value::Null => Vec::new(),
        single => vec![single],
    }
}

/// Adds spaces around each character of a script without spaces between words, so that a search finds it as a word.
pub(crate) fn spaced(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len());
    for character in text.chars() {
        let is_a_word = matches!(character,
            '\u{0E00}'..='\u{0EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}' | '\u{3040}'..='\u{30FF}'
            | '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}');
        if is_a_word {
            spaced.extend([' ', character, ' ']);
        } else {
            spaced.push(character);
        }
    }
    spaced
}

/// The words of a text, in lower case.
pub(crate) fn tokens(text: &str) -> Vec<String> {
    let words = text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// Appends the texts, inputs and results of a content up to a length, without the names of fields and ids.
fn gather(content: &Value, most: usize, text: &mut String) {
    // The end of a turn: its `usage` contains only words of the API.
    let mut left: Vec<&Value> = match content {
        Value::Object(end) => {
            end.iter().filter(|(name, _)| *name != "usage").map(|(_, value)| value).rev().collect()
        }
        content => vec![content],
    };
    while let Some(value) = left.pop() {
        match value {
            Value::String(string) => {
                let room = most.saturating_sub(text.len());
                text.push_str(&string[..string.floor_char_boundary(room)]);
                text.push(' ');
            }
            Value::Array(values) => left.extend(values.iter().rev()),
            // The base64 of a file.
            Value::Object(fields) if fields.get("type").is_some_and(|kind| kind == "base64") => {}
            Value::Object(fields) => {
                let string =
                    fields.iter().filter(|(name, _)| !matches!(name.as_str(), "type" | "id" | "tool_use_id"));
                left.extend(string.map(|(_, value)| value));
            }
            _ => {}
        }
        if text.len() >= most {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_end_of_a_turn_is_previewed_without_its_usage() {
        let usage = json!({"service_tier": "standard", "speed": "standard", "input_tokens": 3});
        let end = json!({"status": "failed", "usage": usage, "cost_usd": 0.1, "message": "no credit"});
        assert_eq!(preview(&end), "failed no credit");
        let call = json!([{"type": "tool_use", "input": {"usage": "a word"}}]);
        assert_eq!(preview(&call), "a word");
    }

    #[test]
    fn the_contents_of_a_file_are_neither_previewed_nor_searched() {
        let source = json!({"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo"});
        let image =
            json!([{"type": "text", "text": "look"}, {"type": "image", "name": "a.png", "source": source}]);
        assert_eq!(preview(&image), "look a.png");
        assert!(!searchable(&image).contains("iVBO"), "{}", searchable(&image));
    }
}
