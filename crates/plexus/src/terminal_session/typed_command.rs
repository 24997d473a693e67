//! Parses a line that the user types for the agent: a command of Plexus, or text. Text reaches the agent literally, so a line that looks
//! like a command and is none gets an explanation.

use std::path::PathBuf;

/// A typed line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TypedLine {
    /// Text for the agent.
    Text(String),
    /// `/compact`, with instructions.
    Compact(String),
    /// `/attach`, with a file for the next message.
    Attach(PathBuf),
    /// `/attach` without a file.
    AttachWhat,
    /// Another word after a slash.
    Unknown(String),
}

impl TypedLine {
    /// A path such as `/etc/hosts` is text, and so is every line that starts with a space.
    pub(super) fn read(line: &str) -> Self {
        let Some(rest) = line.strip_prefix('/') else { return Self::Text(line.to_owned()) };
        let (word, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let is_command = word.starts_with(|c: char| c.is_ascii_alphabetic())
            && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_:".contains(c));
        match (word, rest.trim()) {
            _ if !is_command => Self::Text(line.to_owned()),
            ("compact", instructions) => Self::Compact(instructions.to_owned()),
            ("attach", "") => Self::AttachWhat,
            ("attach", file) => Self::Attach(PathBuf::from(file)),
            (word, _) => Self::Unknown(word.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_after_a_slash_is_a_command_and_everything_else_is_text() {
        let text = |text: &str| TypedLine::Text(text.to_owned());
        let cases = [
            ("fix it", text("fix it")),
            ("/etc/hosts is wrong", text("/etc/hosts is wrong")),
            (" /compact", text(" /compact")),
            ("/", text("/")),
            ("// a comment", text("// a comment")),
            ("/compact", TypedLine::Compact(String::new())),
            ("/compact  keep the API ", TypedLine::Compact("keep the API".to_owned())),
            ("/attach a b.png", TypedLine::Attach("a b.png".into())),
            ("/attach", TypedLine::AttachWhat),
            ("/help", TypedLine::Unknown("help".to_owned())),
            ("/mcp__x now", TypedLine::Unknown("mcp__x".to_owned())),
        ];
        for (line, expected) in cases {
            assert_eq!(TypedLine::read(line), expected, "{line:?}");
        }
    }
}
