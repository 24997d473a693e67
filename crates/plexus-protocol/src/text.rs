//! Prepares long and hostile texts for a reader. It truncates them to the requested size, and escapes characters that
//! could mislead a person or a terminal.

use serde_json::{Map, Value};
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory as _};

/// The length at which a text field is truncated by default.
pub const MAX_TEXT_BYTES: usize = 8 * 1024;

/// Truncates every string in `value`, including field names, to `max_bytes` (at a character boundary) and escapes
/// misleading characters. Returns whether any string was truncated.
pub fn shorten(value: &mut Value, max_bytes: usize) -> bool {
    match value {
        Value::String(text) => shorten_text(text, max_bytes),
        Value::Array(items) => items.iter_mut().fold(false, |cut, item| shorten(item, max_bytes) | cut),
        Value::Object(fields) => {
            let cut = fields.values_mut().fold(false, |cut, item| shorten(item, max_bytes) | cut);
            shorten_names(fields, max_bytes) | cut
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn shorten_text(text: &mut String, max_bytes: usize) -> bool {
    let cut = text.len() > max_bytes;
    if cut {
        text.truncate(text.floor_char_boundary(max_bytes));
    }
    if let Some(clean) = visible(text) {
        *text = clean;
    }
    cut
}

fn shorten_names(fields: &mut Map<String, Value>, max_bytes: usize) -> bool {
    if !fields.keys().any(|name| name.len() > max_bytes || visible(name).is_some()) {
        return false;
    }
    let mut cut = false;
    for (mut name, value) in std::mem::take(fields) {
        cut |= shorten_text(&mut name, max_bytes);
        // Two names may be equal after truncation and escaping. Neither value may replace the other.
        while fields.contains_key(&name) {
            name.push('\'');
        }
        fields.insert(name, value);
    }
    cut
}

/// Whether [`shorten`] would truncate any string.
pub fn is_cut_at(value: &Value, max_bytes: usize) -> bool {
    match value {
        Value::String(text) => text.len() > max_bytes,
        Value::Array(items) => items.iter().any(|item| is_cut_at(item, max_bytes)),
        Value::Object(fields) => {
            fields.iter().any(|(name, item)| name.len() > max_bytes || is_cut_at(item, max_bytes))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// `text` with control, direction and invisible characters escaped as `\u{…}`; `None` if it contains none of them.
///
/// Tab and newline stay, because they are part of ordinary text. The other characters can move a cursor, hide text, or
/// reverse the reading order.
pub fn visible(text: &str) -> Option<String> {
    if !text.chars().any(is_misleading) {
        return None;
    }
    let mut clean = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_misleading(c) {
            clean.extend(c.escape_unicode());
        } else {
            clean.push(c);
        }
    }
    Some(clean)
}

/// Whether [`shorten`] without a limit leaves the value with this JSON text as it is. May return `false` for a text that stays as it is;
/// then the caller parses the value.
pub fn is_plain_json(json: &str) -> bool {
    let mut chars = json.chars();
    while let Some(c) = chars.next() {
        let plain = match c {
            '\\' => matches!(chars.next(), Some('"' | '\\' | '/' | 'n' | 't')),
            c => !is_misleading(c),
        };
        if !plain {
            return false;
        }
    }
    true
}

/// Whether a character is a control or format character, a line separator, unassigned in Unicode, or an invisible letter.
pub(crate) fn is_misleading(c: char) -> bool {
    use GeneralCategory::{
        Control, Format, LineSeparator, ParagraphSeparator, PrivateUse, Surrogate, Unassigned,
    };
    if c.is_ascii() {
        return c.is_ascii_control() && !matches!(c, '\n' | '\t');
    }
    matches!(
        c.general_category(),
        Control | Format | LineSeparator | ParagraphSeparator | PrivateUse | Surrogate | Unassigned
    ) || matches!(c, '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{e0100}'..='\u{e01ef}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn long_texts_are_cut_at_a_character() {
        let mut value = json!({"a": "ääää", "b": ["x"]});
        assert!(is_cut_at(&value, 3));
        assert!(shorten(&mut value, 3));
        assert_eq!(value, json!({"a": "ä", "b": ["x"]}));
        assert!(!shorten(&mut value, 3));
    }

    #[test]
    fn field_names_are_escaped_and_truncated_like_values() {
        let mut value = json!({"\u{202e}a": 1, "\\u{202e}a": 2, "b": 3});
        assert!(!is_cut_at(&value, 16) && !shorten(&mut value, 16));
        let names: Vec<&String> = value.as_object().into_iter().flat_map(Map::keys).collect();
        assert_eq!(names, ["\\u{202e}a", "\\u{202e}a'", "b"], "both fields are kept");
        let mut value = json!({"long name": {"long again": 1}});
        assert!(is_cut_at(&value, 4) && shorten(&mut value, 4));
        assert_eq!(value, json!({"long": {"long": 1}}));
    }

    #[test]
    fn misleading_characters_are_escaped_and_other_text_is_unchanged() {
        assert_eq!(visible("rm \u{1b}[2K\u{202e}x").as_deref(), Some("rm \\u{1b}[2K\\u{202e}x"));
        assert_eq!(visible("a\u{3164}\u{ad}\u{e0100}b").as_deref(), Some("a\\u{3164}\\u{ad}\\u{e0100}b"));
        assert_eq!(visible("plain\n\ttext ü"), None);
        assert_eq!(visible("日本語 العربية ❤\u{fe0f} é e\u{301} 🚀"), None, "ordinary text is unchanged");
    }

    #[test]
    fn json_is_plain_if_nothing_in_it_would_be_escaped() {
        let is_plain = |text: &str| is_plain_json(&json!({"text": text}).to_string());
        assert!(is_plain("a \"quoted\" C:\\path\n\twith ü and 日本"));
        for misleading in ["\u{1b}", "\r", "\u{8}", "\u{7f}", "\u{202e}", "\u{3164}", "\0"] {
            assert!(visible(misleading).is_some() && !is_plain(misleading), "{misleading:?}");
        }
        assert!(!is_plain_json(r#"{"text":"\u202e"}"#), "an escape may be any character");
        assert!(!is_plain_json(&json!({"\u{202e}": 1}).to_string()), "names count");
    }

    #[test]
    fn invisible_unassigned_and_private_use_characters_are_escaped() {
        let unseen = [
            '\u{85}',
            '\u{ad}',
            '\u{61c}',
            '\u{115f}',
            '\u{1160}',
            '\u{180e}',
            '\u{200b}',
            '\u{200d}',
            '\u{200f}',
            '\u{2028}',
            '\u{202e}',
            '\u{2060}',
            '\u{2065}',
            '\u{206f}',
            '\u{3164}',
            '\u{e000}',
            '\u{fdd0}',
            '\u{feff}',
            '\u{ffa0}',
            '\u{fff0}',
            '\u{fff9}',
            '\u{ffff}',
            '\u{378}',
            '\u{13430}',
            '\u{1bca0}',
            '\u{1bca3}',
            '\u{1d173}',
            '\u{e0001}',
            '\u{e0041}',
            '\u{e0100}',
            '\u{e0fff}',
            '\u{f0000}',
            '\u{10ffff}',
        ];
        for c in unseen {
            let escaped = format!("\\u{{{:x}}}", u32::from(c));
            assert_eq!(visible(&format!("a{c}b")), Some(format!("a{escaped}b")));
        }
    }
}
