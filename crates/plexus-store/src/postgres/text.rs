//! Texts as PostgreSQL can store them. It stores every character but NUL, so NUL is written as U+0001 and `0`, and U+0001 itself as
//! U+0001 and `1`. Both are rare, so most texts are stored as they are.

use std::borrow::Cow;

const ESCAPE: char = '\u{1}';

/// The text as it is stored.
pub(super) fn encode(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return Cow::Borrowed(text);
    }
    let mut encoded = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\0' => encoded.extend([ESCAPE, '0']),
            ESCAPE => encoded.extend([ESCAPE, '1']),
            other => encoded.push(other),
        }
    }
    Cow::Owned(encoded)
}

/// The text that was stored.
pub(super) fn decode(stored: &str) -> Cow<'_, str> {
    if !stored.contains(ESCAPE) {
        return Cow::Borrowed(stored);
    }
    let mut decoded = String::with_capacity(stored.len());
    let mut characters = stored.chars();
    while let Some(character) = characters.next() {
        if character != ESCAPE {
            decoded.push(character);
        } else if characters.next() == Some('0') {
            decoded.push('\0');
        } else {
            decoded.push(ESCAPE);
        }
    }
    Cow::Owned(decoded)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_without_nul_is_stored_as_it_is() {
        assert!(matches!(encode("plain ü\u{2}"), Cow::Borrowed(_)));
        assert!(matches!(decode("plain ü\u{2}"), Cow::Borrowed(_)));
    }

    proptest! {
        #[test]
        fn every_text_is_read_as_it_was_written(text in "[\0\u{1}01a]*") {
            let encoded = encode(&text);
            prop_assert!(!encoded.contains('\0'));
            prop_assert_eq!(decode(&encoded), text.as_str());
        }
    }
}
