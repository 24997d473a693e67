//! Variables in a command line: replaces `$HOME` and `$PWD` by their values, and marks variables that usually hold secrets. The
//! parser drops the names of variables, so this module searches the text itself.

use plexus_protocol::RiskKind;

use super::file_table::SECRET_VARIABLES;
use super::path::Directories;
use super::{Marks, quoted};

/// How much of a text is searched. The parser rejects texts of this length.
const MAX_BYTES: usize = 20_000;

/// The text with the values of `$HOME` and `$PWD` in place of the variables.
pub(super) fn with_known_values(text: &str, dirs: &Directories<'_>) -> String {
    let plain = |path: &&str| path.bytes().all(|b| b.is_ascii_alphanumeric() || b"/_-.".contains(&b));
    let mut text = text.to_owned();
    if text.len() > MAX_BYTES {
        return text;
    }
    for (name, value) in [("HOME", dirs.home), ("PWD", Some(dirs.cwd))] {
        let Some(value) = value.and_then(|path| path.to_str()).filter(plain) else { continue };
        for form in [format!("${{{name}}}"), format!("${name}")] {
            if !text.contains(&form) {
                continue;
            }
            let mut replaced = String::with_capacity(text.len());
            let mut rest = text.as_str();
            while let Some(at) = rest.find(&form) {
                let behind = &rest[at + form.len()..];
                // A longer name, a subscript or a modifier has another value.
                let is_other = behind.starts_with(['[', ':'])
                    || form.ends_with(name)
                        && behind.starts_with(|c: char| c == '_' || c.is_ascii_alphanumeric());
                replaced.push_str(&rest[..at]);
                replaced.push_str(if is_other { &form } else { value });
                rest = behind;
            }
            replaced.push_str(rest);
            text = replaced;
        }
    }
    text
}

/// Adds a mark for each expanded variable that usually holds a secret.
pub(super) fn mark_secrets(text: &str, marks: &mut Marks) {
    let text = &text[..text.floor_char_boundary(MAX_BYTES)];
    for piece in text.split('$').skip(1) {
        let piece = piece.strip_prefix('{').unwrap_or(piece);
        let name: String =
            piece.chars().take_while(|c| *c == '_' || c.is_ascii_alphanumeric()).take(60).collect();
        let upper = name.to_ascii_uppercase();
        if SECRET_VARIABLES.iter().any(|part| upper.contains(part)) {
            marks.add(
                RiskKind::Credentials,
                format!("uses {}, which usually holds a secret", quoted(&format!("${name}"))),
            );
        }
    }
}
