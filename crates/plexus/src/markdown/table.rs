//! Lays out a table of Markdown: columns as wide as their cells, wrapped at words if the table does not fit. If not even narrow columns
//! fit, each row becomes a list of its cells with their headings.

use pulldown_cmark::Alignment;

use super::{Span, wrap_words};
use crate::paint::Ink;
use crate::review::width::columns;

/// The narrowest column of a table that does not fit.
const NARROWEST: usize = 6;
/// The blanks between two columns.
const BETWEEN: usize = 2;

/// The content of a cell.
type Cell = Vec<Span>;

/// A table. The first row has the headings.
#[derive(Debug, Default)]
pub(super) struct Table {
    aligns: Vec<Alignment>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(super) fn new(aligns: Vec<Alignment>) -> Self {
        Self { aligns, rows: Vec::new() }
    }

    pub(super) fn start_row(&mut self) {
        self.rows.push(Vec::new());
    }

    /// Adds a cell to the last row. The spans are escaped.
    pub(super) fn add(&mut self, cell: Cell) {
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    /// The lines, each at most `width` columns wide.
    pub(super) fn lines(&self, width: usize) -> Vec<Vec<Span>> {
        match self.widths(width) {
            Some(widths) => self.side_by_side(&widths),
            None => self.listed(width),
        }
    }

    /// The widths of the columns; `None` if they cannot fit.
    fn widths(&self, width: usize) -> Option<Vec<usize>> {
        let count = self.rows.iter().map(Vec::len).max()?;
        let natural = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| columns_of(cell)).max()
        };
        let mut widths: Vec<usize> = (0..count).map(|column| natural(column).unwrap_or(0).max(1)).collect();
        let room = width.checked_sub(BETWEEN * count.saturating_sub(1))?;
        while widths.iter().sum::<usize>() > room {
            // The widest column has the most to give.
            let widest = widths.iter_mut().max().filter(|widest| **widest > NARROWEST)?;
            *widest -= 1;
        }
        Some(widths)
    }

    fn side_by_side(&self, widths: &[usize]) -> Vec<Vec<Span>> {
        let mut lines = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            let wrapped = |(column, width): (usize, &usize)| {
                wrap_words(row.get(column).map_or(&[], Vec::as_slice), *width)
            };
            let cells: Vec<Vec<Vec<Span>>> = widths.iter().enumerate().map(wrapped).collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for at in 0..height {
                let mut line = Vec::new();
                for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
                    if column > 0 {
                        line.push(blanks(BETWEEN));
                    }
                    let piece = trimmed(cell.get(at).cloned().unwrap_or_default());
                    let free = width.saturating_sub(columns_of(&piece));
                    let before = match self.aligns.get(column) {
                        Some(Alignment::Right) => free,
                        Some(Alignment::Center) => free / 2,
                        _ => 0,
                    };
                    line.push(blanks(before));
                    line.extend(piece);
                    line.push(blanks(free - before));
                }
                lines.push(line);
            }
            if number == 0 {
                let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
                lines.push(vec![Span { ink: Ink::Dim, text: rule.join(&" ".repeat(BETWEEN)) }]);
            }
        }
        lines
    }

    /// Each row as lines of `heading: cell`, with a rule between rows.
    fn listed(&self, width: usize) -> Vec<Vec<Span>> {
        let Some((headings, rows)) = self.rows.split_first() else { return Vec::new() };
        let mut lines = Vec::new();
        for (number, row) in rows.iter().enumerate() {
            if number > 0 {
                lines.push(vec![Span { ink: Ink::Dim, text: "--".to_owned() }]);
            }
            for (column, cell) in row.iter().enumerate() {
                let mut spans = headings.get(column).cloned().unwrap_or_default();
                if !spans.is_empty() {
                    spans.push(Span { ink: Ink::Plain, text: ": ".to_owned() });
                }
                spans.extend(cell.iter().cloned());
                lines.extend(wrap_words(&spans, width));
            }
        }
        lines
    }
}

/// A line without the blank at which it was wrapped.
fn trimmed(mut line: Vec<Span>) -> Vec<Span> {
    if let Some(last) = line.last_mut() {
        last.text.truncate(last.text.trim_end().len());
    }
    line
}

fn blanks(count: usize) -> Span {
    Span { ink: Ink::Plain, text: " ".repeat(count) }
}

fn columns_of(spans: &[Span]) -> usize {
    spans.iter().map(|span| columns(&span.text)).sum()
}
