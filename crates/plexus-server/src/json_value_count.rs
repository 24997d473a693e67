//! Counts the values of a JSON text without parsing it. Small parsed values take many times their size as text: sixteen
//! megabytes of brackets would take hundreds of megabytes.

/// The maximum number of values in one body or message; the same as in one line of a child.
pub(crate) const MAX_VALUES: usize = 100_000;

/// Whether the text contains at most [`MAX_VALUES`] values. The text need not be valid JSON.
pub(crate) fn are_within_limit(text: &[u8]) -> bool {
    let (mut values, mut rest) = (0, text);
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'"' => rest = after_string(rest),
            // Every value but the first follows one of these bytes.
            b',' | b'[' | b'{' => {
                values += 1;
                if values > MAX_VALUES {
                    return false;
                }
            }
            _ => {}
        }
    }
    true
}

/// The rest after a string whose opening quote was read.
fn after_string(mut rest: &[u8]) -> &[u8] {
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')) {
        if rest[at] == b'"' {
            return &rest[at + 1..];
        }
        // A backslash and the byte that it escapes.
        rest = rest.get(at + 2..).unwrap_or_default();
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_and_text_is_not() {
        let list = |count: usize| format!("[{}]", vec!["0"; count].join(","));
        assert!(are_within_limit(list(MAX_VALUES).as_bytes()));
        assert!(!are_within_limit(list(MAX_VALUES + 1).as_bytes()));
        assert!(!are_within_limit("[[],".repeat(MAX_VALUES).as_bytes()));
        let text = serde_json::json!({"prompt": "[{\\\",".repeat(MAX_VALUES)}).to_string();
        assert!(are_within_limit(text.as_bytes()));
        for broken in ["\"", "\"\\", "\"a", ""] {
            assert!(are_within_limit(broken.as_bytes()));
        }
    }
}
