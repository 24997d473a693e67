//! Rows of text with a tone instead of a colour. Rows of Plexus start in the first column. Text of an agent always follows a prefix, even on
//! continuation rows, so that it cannot imitate a row of another kind.

use std::borrow::Cow;

use super::width::wrap;
use crate::escape::{clean, exact};

/// The meaning of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Tone {
    /// Text.
    Plain,
    /// Less important.
    Dim,
    /// A title.
    Strong,
    /// A shell command.
    Command,
    /// An added line.
    Added,
    /// A removed line.
    Removed,
    /// A warning.
    Warn,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Row {
    /// Its tone.
    pub(crate) tone: Tone,
    /// The prefix, never from an agent.
    pub(crate) lead: Cow<'static, str>,
    /// The text, escaped for a terminal.
    pub(crate) text: String,
}

impl Row {
    /// A row of Plexus, or of agent text in a log.
    pub(crate) fn new(tone: Tone, text: &str) -> Self {
        Self::led(tone, "", text)
    }

    /// The same with a prefix.
    pub(crate) fn led(tone: Tone, lead: impl Into<Cow<'static, str>>, text: &str) -> Self {
        Self { tone, lead: lead.into(), text: clean(text).replace('\n', "⏎") }
    }

    /// One row for each line of agent text in a log.
    pub(crate) fn lines(tone: Tone, lead: &'static str, text: &str) -> Vec<Self> {
        text.lines().map(|line| Self::led(tone, lead, line)).collect()
    }

    /// A row of a call's input, with every character visible.
    pub(crate) fn exact(tone: Tone, lead: impl Into<Cow<'static, str>>, text: &str) -> Self {
        Self { tone, lead: lead.into(), text: exact(text) }
    }

    /// One such row for each line.
    pub(crate) fn exact_lines(tone: Tone, lead: &'static str, text: &str) -> Vec<Self> {
        let text = text.strip_suffix('\n').unwrap_or(text);
        text.split('\n').map(|line| Self::exact(tone, lead, line)).collect()
    }

    /// The row in pieces that fit into `width` columns.
    pub(crate) fn wrapped(&self, width: usize) -> Vec<Self> {
        let room = width.saturating_sub(self.lead.chars().count());
        let further = further(&self.lead);
        let pieces = wrap(&self.text, room).into_iter().enumerate();
        let lead = |number| if number == 0 { self.lead.clone() } else { further.clone() };
        pieces.map(|(number, text)| Self { tone: self.tone, lead: lead(number), text }).collect()
    }
}

/// The prefix of a continuation row: as wide, with the sign of a diff, without numbers, and with a continuation mark.
fn further(lead: &str) -> Cow<'static, str> {
    if lead.is_empty() {
        return Cow::Borrowed("… ");
    }
    let sign = lead.trim_end().chars().next_back().filter(|sign| matches!(sign, '+' | '-'));
    let mark = match sign {
        Some(sign) => format!("{sign}…"),
        None => "… ".to_owned(),
    };
    Cow::Owned(format!("{:>width$}", mark, width = lead.chars().count()))
}

/// All rows in pieces that fit.
pub(crate) fn fit(rows: &[Row], width: usize) -> Vec<Row> {
    rows.iter().flat_map(|row| row.wrapped(width)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrapped_line_keeps_its_sign_and_never_starts_in_the_first_column() {
        let shown = |lead: &'static str| {
            let rows = Row::exact(Tone::Plain, lead, "abcdef").wrapped(lead.len() + 3);
            rows.iter().map(|row| format!("{}{}", row.lead, row.text)).collect::<Vec<_>>()
        };
        assert_eq!(shown("+ "), ["+ abc", "+…def"]);
        assert_eq!(shown("$ "), ["$ abc", "… def"]);
        assert_eq!(shown(" 12 - "), [" 12 - abc", "    -…def"]);
        assert_eq!(shown("    "), ["    abc", "  … def"]);
        assert_eq!(Row::new(Tone::Plain, "abcdef").wrapped(4)[1].lead, "… ");
    }
}
