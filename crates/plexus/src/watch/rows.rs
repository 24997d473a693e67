//! Rows of text with a tone, not yet a colour: what the model keeps and the view paints. A row that is too long goes on
//! below with a lead that says so, so that no text can pass for another sort of row.

use super::width::{clean, wrap};

/// What a row means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Text.
    Plain,
    /// Beside the point.
    Dim,
    /// What it is about.
    Strong,
    /// A line that comes.
    Added,
    /// A line that goes.
    Removed,
    /// Something to heed.
    Warn,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    /// How it is painted.
    pub(crate) tone: Tone,
    /// What stands before the text; ours alone.
    pub(crate) lead: &'static str,
    /// The text, fit for a terminal.
    pub(crate) text: String,
}

impl Row {
    /// A row of somebody's text.
    pub(crate) fn new(tone: Tone, text: &str) -> Self {
        Self::led(tone, "", text)
    }

    /// A row of somebody's text behind a lead.
    pub(crate) fn led(tone: Tone, lead: &'static str, text: &str) -> Self {
        Self { tone, lead, text: clean(text).replace('\n', "⏎") }
    }

    /// One row for each line of somebody's text.
    pub(crate) fn lines(tone: Tone, lead: &'static str, text: &str) -> Vec<Self> {
        text.lines().map(|line| Self::led(tone, lead, line)).collect()
    }

    /// The row in pieces that fit into `width` columns.
    pub(crate) fn wrapped(&self, width: usize) -> Vec<Self> {
        let room = width.saturating_sub(self.lead.chars().count());
        let further = match self.lead {
            "+ " => "+…",
            "- " => "-…",
            "$ " | "  " => "… ",
            lead => lead,
        };
        let pieces = wrap(&self.text, room).into_iter().enumerate();
        let lead = |number| if number == 0 { self.lead } else { further };
        pieces.map(|(number, text)| Self { tone: self.tone, lead: lead(number), text }).collect()
    }
}

/// All rows in pieces that fit.
pub(crate) fn fit(rows: &[Row], width: usize) -> Vec<Row> {
    rows.iter().flat_map(|row| row.wrapped(width)).collect()
}
