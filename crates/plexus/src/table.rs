//! Tables for people: each column is as wide as its widest cell on a terminal, and lines have no trailing blanks.

use std::fmt;

use unicode_width::UnicodeWidthStr as _;

use crate::review::width::wrap_words;

/// The alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    /// For text.
    Left,
    /// For numbers.
    Right,
}

/// Rows below headings.
#[derive(Debug)]
pub(crate) struct Table {
    aligns: Vec<Align>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings.
    pub(crate) fn new(columns: &[(&str, Align)]) -> Self {
        let headings = columns.iter().map(|(heading, _)| (*heading).to_owned()).collect();
        Self { aligns: columns.iter().map(|(_, align)| *align).collect(), rows: vec![headings] }
    }

    /// Adds a row. The caller has already escaped the texts.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    fn widths(&self) -> Vec<usize> {
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max().unwrap_or(0)
        };
        (0..self.aligns.len()).map(width).collect()
    }

    /// The lines, with the cells of the last column wrapped at words to this width. A narrow terminal gets the last column on
    /// lines of its own.
    pub(crate) fn wrapped(&self, width: usize) -> String {
        let Some((last, before)) = self.widths().split_last().map(|(last, before)| (*last, before.to_vec()))
        else {
            return String::new();
        };
        let start = before.iter().map(|width| width + 2).sum::<usize>();
        let (start, own_lines) = match start + last.min(NARROWEST) <= width {
            true => (start, false),
            false => (4, true),
        };
        let mut lines = Vec::new();
        for row in &self.rows {
            let (first, end) = row.split_at(before.len().min(row.len()));
            let mut line = cells(first, &self.aligns, &before);
            let pieces = end
                .first()
                .map(|text| wrap_words(text, width.saturating_sub(start).max(1)))
                .unwrap_or_default();
            let mut pieces = pieces.into_iter();
            if !own_lines && let Some(piece) = pieces.next() {
                line = format!("{line}  {piece}");
            }
            lines.push(line.trim_end().to_owned());
            lines.extend(pieces.map(|piece| format!("{}{piece}", " ".repeat(start)).trim_end().to_owned()));
        }
        lines.join("\n")
    }
}

/// The narrowest last column of a table that is wrapped.
const NARROWEST: usize = 24;

/// Cells side by side, each as wide as its column.
fn cells(row: &[String], aligns: &[Align], widths: &[usize]) -> String {
    let cells = row.iter().zip(aligns).zip(widths).map(|((cell, align), width)| {
        let blanks = " ".repeat(width.saturating_sub(cell.width()));
        match align {
            Align::Left => format!("{cell}{blanks}"),
            Align::Right => format!("{blanks}{cell}"),
        }
    });
    cells.collect::<Vec<_>>().join("  ")
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        for (number, row) in self.rows.iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            write!(f, "{}", cells(row, &self.aligns, &widths).trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&[("NAME", Align::Left), ("N", Align::Right), ("X", Align::Left)]);
        table.row(["ä long one", "7", "y"].map(str::to_owned));
        table.row(["b", "12", ""].map(str::to_owned));
        assert_eq!(table.to_string(), "NAME         N  X\nä long one   7  y\nb           12");
    }

    #[test]
    fn the_last_column_is_wrapped_at_words() {
        let mut table = Table::new(&[("NAME", Align::Left), ("WHY", Align::Left)]);
        table.row(["a", "its path is relative to the working directory"].map(str::to_owned));
        table.row(["longer", "new"].map(str::to_owned));
        assert_eq!(
            table.wrapped(34),
            "NAME    WHY\na       its path is relative to\n        the working directory\nlonger  new"
        );
        assert_eq!(
            table.wrapped(20),
            "NAME\n    WHY\na\n    its path is\n    relative to the\n    working\n    directory\nlonger\n    new"
        );
    }

    #[test]
    fn wide_characters_and_combining_marks_keep_the_columns_aligned() {
        let mut table = Table::new(&[("NAME", Align::Left), ("N", Align::Right), ("X", Align::Left)]);
        table.row(["日本", "1", "y"].map(str::to_owned));
        table.row(["e\u{301}te\u{301}", "日", "z"].map(str::to_owned));
        assert_eq!(table.to_string(), "NAME   N  X\n日本   1  y\ne\u{301}te\u{301}   日  z");
    }
}
