//! Checks the values of options: some options are harmless with any value, some only with a few.

use super::embedded_programs;
use super::repository;
use super::script::Word;

/// The required form of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueCheck {
    Any,
    /// A number, optionally with a unit.
    Number,
    /// A word that is not a path, a file with code or settings, or a list of settings.
    Name,
    /// Standard output or a null device.
    Discard,
    /// Text that does not refer to a file (`@file`).
    Text,
    /// Such a text that also names no file to write (`%output{file}`).
    Format,
    /// A file on this machine outside `.git`: `host:file` makes tar run a remote shell.
    Local,
    /// A file mode, which may start with a dash.
    Mode,
    /// A form field without a file (`name=@file`, `name=<file`).
    Form,
    /// A sed script that only edits its output.
    Sed,
    /// A revision, which is passed to git and must not be an option there.
    Revision,
    /// One of these, written `one|two`.
    OneOf(&'static str),
}

/// Extensions of files that programs load.
const LOADED: [&str; 12] =
    [".json", ".js", ".cjs", ".mjs", ".ts", ".py", ".rb", ".so", ".dylib", ".toml", ".yaml", ".yml"];

impl ValueCheck {
    /// The check that a table names after an option.
    pub(super) fn named(name: &'static str) -> Option<Self> {
        Some(match name {
            "" => Self::Any,
            "NUM" => Self::Number,
            "NAME" => Self::Name,
            "NULL" => Self::Discard,
            "TEXT" => Self::Text,
            "FORMAT" => Self::Format,
            "LOCAL" => Self::Local,
            "MODE" => Self::Mode,
            "FORM" => Self::Form,
            "REV" => Self::Revision,
            "SED" => Self::Sed,
            _ if name.contains('|') => Self::OneOf(name),
            _ => return None,
        })
    }

    /// Whether a known value is harmless.
    pub(super) fn admits(self, value: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Number => {
                value.trim_start_matches(['+', '-']).starts_with(|c: char| c.is_ascii_digit())
                    && value.bytes().all(|b| b.is_ascii_alphanumeric() || b".,:+-%".contains(&b))
            }
            Self::Name => {
                matches!(value, "." | "..")
                    || value.starts_with(|c: char| c.is_ascii_alphanumeric() || "_*^!".contains(c))
                        && value.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.,:+-*^!~ ".contains(&b))
                        && !LOADED.iter().any(|ending| value.to_ascii_lowercase().ends_with(ending))
            }
            Self::Discard => matches!(value, "-" | "/dev/null" | "/dev/stdout" | "/dev/stderr"),
            Self::Text => !value.starts_with('@'),
            Self::Format => !value.starts_with('@') && !value.to_ascii_lowercase().contains("%output"),
            Self::Local => !value.contains(':') && !repository::leads_into(&Word::text(value)),
            Self::Mode => value.bytes().all(|b| b"-/+=,ugoarwxstX01234567".contains(&b)),
            Self::Form => !value.contains(['@', '<']),
            Self::Revision => !value.starts_with('-'),
            Self::Sed => embedded_programs::is_plain_sed(value),
            Self::OneOf(names) => names.split('|').any(|name| name == value),
        }
    }

    /// Whether a value that starts with this text and continues with unknown text is harmless.
    pub(super) fn admits_any_after(self, start: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Text => !start.is_empty() && !start.starts_with('@'),
            _ => false,
        }
    }
}
