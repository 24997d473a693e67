//! Colours for a terminal that scrolls (`run`, `attach`, `approve`). `NO_COLOR`, `TERM=dumb` and a pipe turn them off; text and symbols
//! carry all information. The caller has escaped the text, so that only Plexus writes control sequences.

use std::io::IsTerminal;

use crate::review::{Row, Tone};

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
            Tone::Strong | Tone::Command => Self::Strong,
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

    /// A row with its colours. In a command, quoted text and operators have colours of their own.
    pub(crate) fn row(self, row: &Row) -> String {
        let line = format!("{}{}", row.lead, row.text.trim_end());
        match row.tone {
            Tone::Command => {
                let spans = command_spans(&row.lead, row.text.trim_end());
                spans.iter().map(|span| self.ink(span.ink, &span.text)).collect()
            }
            tone => self.ink(tone, line.trim_end()),
        }
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

/// A part of a command.
struct Span {
    ink: Ink,
    text: String,
}

/// The parts of a command that look different. This is only for reading: rules parse a command with a whole grammar.
fn command_spans(lead: &str, command: &str) -> Vec<Span> {
    let mut spans = vec![Span { ink: Ink::Strong, text: lead.to_owned() }];
    let (mut quote, mut escaped) = (None, false);
    for c in command.chars() {
        let starts = quote.is_none() && !escaped && matches!(c, '\'' | '"');
        let ink = match c {
            _ if quote.is_some() || starts => Ink::Added,
            '|' | '&' | ';' | '<' | '>' | '(' | ')' if !escaped => Ink::Warn,
            _ => Ink::Strong,
        };
        if starts {
            quote = Some(c);
        } else if quote == Some(c) && !escaped {
            quote = None;
        }
        escaped = c == '\\' && !escaped && quote != Some('\'');
        match spans.last_mut().filter(|span| span.ink == ink) {
            Some(span) => span.text.push(c),
            None => spans.push(Span { ink, text: c.to_string() }),
        }
    }
    spans
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

    #[test]
    fn quoted_text_and_operators_of_a_command_have_their_own_colours() {
        let shown = |command: &str| {
            let spans = command_spans("$ ", command);
            spans.iter().map(|span| format!("{:?}({})", span.ink, span.text)).collect::<String>()
        };
        assert_eq!(shown("ls -l"), "Strong($ ls -l)");
        assert_eq!(
            shown("echo \"a\\\"|b\" | cat >'x y' \\;"),
            "Strong($ echo )Added(\"a\\\"|b\")Strong( )Warn(|)Strong( cat )Warn(>)Added('x y')Strong( \\;)"
        );
        assert_eq!(shown("echo 'open"), "Strong($ echo )Added('open)");
        let row = Row::exact(Tone::Command, "$ ", "a;b");
        assert_eq!(Paint::Plain.row(&row), "$ a;b");
    }
}
