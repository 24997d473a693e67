//! Recovers the original call from what the hub shows. The hub escapes misleading characters as `\u{…}` and leaves a literal `\u{…}`
//! unchanged; the digest of the original call distinguishes the two.

use plexus_core::call_digest;
use plexus_protocol::{Approval, Object, visible};
use serde_json::Value;

use crate::escape::is_misleading;

/// The maximum number of escapes for which all combinations are tried.
const TRIED: u32 = 10;
/// The maximum number of bytes hashed for that, because the user waits.
const TRIED_BYTES: usize = 4 * 1024 * 1024;

/// What is known about the escapes in the shown input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escapes {
    /// All are literal text: the hub escaped nothing.
    Literal,
    /// Some or all are escaped characters, and it is known which.
    Characters,
    /// Some are escaped characters, and some may be literal text.
    Uncertain,
}

/// The approval with the escaped characters restored.
pub(crate) fn original(approval: &Approval) -> (Approval, Escapes) {
    let mut asked = approval.clone();
    // The description is not part of the digest.
    for words in [&mut asked.reason, &mut asked.blocked_path, &mut asked.said].into_iter().flatten() {
        *words = decoded(words, &mut || Meaning::Character);
    }
    for opinion in asked.passed.iter_mut().filter_map(|passed| passed.opinion.as_mut()) {
        *opinion = decoded(opinion, &mut || Meaning::Character);
    }
    let given = approval.digest.as_deref();
    if !approval.truncated && given.is_none_or(|given| given == digest(approval)) {
        return (asked, Escapes::Literal);
    }
    let mut escapes = 0;
    asked = with(asked, &approval.input, &approval.tool_name, &mut |number| {
        escapes = number + 1;
        Meaning::Character
    });
    if given == Some(&*digest(&asked)) {
        return (asked, Escapes::Characters);
    }
    let bytes = serde_json::to_string(&approval.input).map_or(usize::MAX, |text| text.len());
    let affordable = escapes <= TRIED && bytes.saturating_mul(1 << escapes.min(TRIED)) <= TRIED_BYTES;
    let tried = if affordable && given.is_some() { 1_u32 << escapes } else { 0 };
    for characters in 1..tried {
        let mixed = with(asked.clone(), &approval.input, &approval.tool_name, &mut |number| {
            if characters >> number & 1 == 1 { Meaning::Character } else { Meaning::Text }
        });
        if given == Some(&*digest(&mixed)) {
            return (mixed, Escapes::Characters);
        }
    }
    (asked, Escapes::Uncertain)
}

/// The meaning of an escape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// The character.
    Character,
    /// Its own text.
    Text,
}

/// The approval with this input and tool, in which `meaning` decides what each escape means. The hub does not escape the directory.
fn with(
    mut approval: Approval,
    input: &Object,
    tool_name: &str,
    meaning: &mut dyn FnMut(u32) -> Meaning,
) -> Approval {
    let mut number = 0;
    let mut next = || {
        number += 1;
        meaning(number - 1)
    };
    approval.tool_name = decoded(tool_name, &mut next);
    approval.input = decoded_object(input, &mut next);
    approval
}

/// The digest of the call as it is shown.
pub(crate) fn digest(approval: &Approval) -> String {
    call_digest(&approval.tool_name, &approval.input, &approval.cwd)
}

/// A file's text in the form that can be compared with the input.
pub(super) fn comparable(text: &str, escapes: Escapes) -> String {
    match escapes {
        Escapes::Literal | Escapes::Characters => text.to_owned(),
        Escapes::Uncertain => {
            decoded(&visible(text).unwrap_or_else(|| text.to_owned()), &mut || Meaning::Character)
        }
    }
}

fn decoded_object(fields: &Object, meaning: &mut dyn FnMut() -> Meaning) -> Object {
    fields.iter().map(|(name, value)| (decoded(name, meaning), decoded_value(value, meaning))).collect()
}

fn decoded_value(value: &Value, meaning: &mut dyn FnMut() -> Meaning) -> Value {
    match value {
        Value::String(text) => Value::String(decoded(text, meaning)),
        Value::Array(items) => items.iter().map(|item| decoded_value(item, meaning)).collect(),
        Value::Object(fields) => Value::Object(decoded_object(fields, meaning)),
        other => other.clone(),
    }
}

/// `text` with each escape that the hub may have written restored, unless it is literal text.
fn decoded(text: &str, meaning: &mut dyn FnMut() -> Meaning) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\\u{") {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let end = from.find('}').map_or(from.len(), |end| end + 1);
        let (escape, after) = from.split_at(end);
        match character(escape).filter(|_| meaning() == Meaning::Character) {
            Some(c) => {
                out.push(c);
                rest = after;
            }
            None => {
                out.push('\\');
                rest = from.get(1..).unwrap_or_default();
            }
        }
    }
    out + rest
}

/// The character that the hub escapes in exactly this way.
fn character(escape: &str) -> Option<char> {
    let digits = escape.strip_prefix("\\u{")?.strip_suffix('}')?;
    let c = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
    (is_misleading(c) && c.escape_unicode().to_string() == escape).then_some(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::{Reviewed, rows};
    use serde_json::json;

    /// An approval as the hub shows this call.
    fn shown(command: &str) -> Approval {
        let id = "0b5c0000-0000-4000-8000-000000000000";
        let mut input = json!({"command": command});
        let digest = call_digest("Bash", input.as_object().unwrap(), "/");
        plexus_protocol::shorten(&mut input, usize::MAX);
        serde_json::from_value(json!({
            "id": id, "session_id": id, "session_name": "a", "kind": "tool", "tool_name": "Bash", "tool_use_id": "t",
            "input": input, "status": "pending", "created_at": 0, "asked_of": {"kind": "operator"}, "cwd": "/", "digest": digest,
        }))
        .unwrap()
    }

    #[test]
    fn no_two_commands_are_shown_alike() {
        let texts =
            ["\u{a0}", "\\u{a0}", "\\\u{a0}", "\\\\u{a0}", "\u{1b}", "\\u{1b}", "\\\u{1b}", "\\\\u{1b}"];
        let screens: Vec<Vec<String>> = texts
            .iter()
            .map(|text| {
                let approval = shown(&format!("echo a{text}b"));
                let rows = rows(&Reviewed { approval, file: None }, 0);
                rows.iter().map(|row| format!("{}{}", row.lead, row.text)).collect()
            })
            .collect();
        for (number, screen) in screens.iter().enumerate() {
            let text = texts[number];
            assert!(screen.iter().any(|row| row.contains("are shown as \\u{…}")), "{text:?}: {screen:?}");
            assert!(!screen.iter().any(|row| row.contains("may be literal")), "{text:?}: {screen:?}");
            for other in &screens[number + 1..] {
                assert_ne!(screen, other, "{text:?}");
            }
        }
        assert!(screens[0].contains(&"$ echo a\\u{a0}b".to_owned()), "{:?}", screens[0]);
        assert!(screens[1].contains(&"$ echo a\\\\u{a0}b".to_owned()), "{:?}", screens[1]);
        assert!(screens[4].contains(&"$ echo a\\u{1b}b".to_owned()), "{:?}", screens[4]);
        assert!(screens[5].contains(&"$ echo a\\\\u{1b}b".to_owned()), "{:?}", screens[5]);
    }

    #[test]
    fn ambiguous_escapes_have_a_notice_and_plain_text_has_none() {
        let notice_of = |command: &str| {
            let rows = rows(&Reviewed { approval: shown(command), file: None }, 0);
            rows.iter().map(|row| row.text.clone()).collect::<Vec<_>>().join("\n")
        };
        let many = format!("{}\\u{{1b}}", "\u{1b}".repeat(TRIED as usize));
        assert!(notice_of(&many).contains("may be literal text"));
        let mixed = notice_of("a\u{1b}b\\u{1b}c");
        assert!(mixed.contains("a\\u{1b}b\\\\u{1b}c") && !mixed.contains("may be literal text"), "{mixed}");
        assert!(!notice_of("echo \\n \\x41 ü").contains("\\u{"));
    }

    #[test]
    fn only_escapes_written_by_the_hub_are_decoded() {
        let all = |text: &str| decoded(text, &mut || Meaning::Character);
        assert_eq!(all("a\\u{1b}b\\u{41}c\\u{1B}\\u{\\u{7}"), "a\u{1b}b\\u{41}c\\u{1B}\\u{\u{7}");
        assert_eq!(original(&shown("a\u{1b}")).1, Escapes::Characters);
        assert_eq!(original(&shown("a\\u{1b}")).1, Escapes::Literal);
    }
}
