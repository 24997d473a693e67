//! Colours for a terminal that scrolls (`run`, `attach`, `approve`). `NO_COLOR`, `TERM=dumb` and a pipe turn them off; text and symbols
//! carry all information. The caller has escaped the text, so that only Plexus writes control sequences.

use std::io::IsTerminal;

use crate::review::Tone;

/// Whether colours are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    /// Sixteen colours, bold and italic.
    Colours,
    /// No control sequences.
    Plain,
}

/// How a text looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ink {
    Plain,
    Dim,
    Strong,
    Emphasis,
    Code,
    Added,
    Removed,
    Warn,
}

impl From<Tone> for Ink {
    fn from(tone: Tone) -> Self {
        match tone {
            Tone::Plain => Self::Plain,
            Tone::Dim => Self::Dim,
            Tone::Strong => Self::Strong,
            Tone::Added => Self::Added,
            Tone::Removed => Self::Removed,
            Tone::Warn => Self::Warn,
        }
    }
}

impl Paint {
    /// The colours for this stream.
    pub(crate) fn of(stream: &impl IsTerminal) -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let dumb = set("TERM").is_some_and(|term| term == "dumb");
        if stream.is_terminal() && set("NO_COLOR").is_none() && !dumb { Self::Colours } else { Self::Plain }
    }

    /// The text with its colour. `text` has no newline.
    pub(crate) fn ink(self, ink: impl Into<Ink>, text: &str) -> String {
        let code = match ink.into() {
            Ink::Plain => "",
            Ink::Dim => "2",
            Ink::Strong => "1",
            Ink::Emphasis => "3",
            Ink::Code => "36",
            Ink::Added => "32",
            Ink::Removed => "31",
            Ink::Warn => "33",
        };
        if self == Self::Plain || code.is_empty() || text.is_empty() {
            return text.to_owned();
        }
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colour_ends_with_its_text_and_plain_text_has_none() {
        assert_eq!(Paint::Colours.ink(Tone::Added, "+ a"), "\u{1b}[32m+ a\u{1b}[0m");
        assert_eq!(Paint::Colours.ink(Ink::Plain, "a"), "a");
        assert_eq!(Paint::Plain.ink(Ink::Warn, "a"), "a");
    }
}
