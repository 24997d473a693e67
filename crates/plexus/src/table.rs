//! Tables for people: each column is as wide as its widest cell on a terminal, and lines have no trailing blanks.

use std::fmt;

use unicode_width::UnicodeWidthStr as _;

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
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.aligns.len()).map(width).collect();
        for (number, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for ((cell, align), width) in row.iter().zip(&self.aligns).zip(&widths) {
                if !line.is_empty() {
                    line.push_str("  ");
                }
                let blanks = " ".repeat(width.saturating_sub(cell.width()));
                line.push_str(&match align {
                    Align::Left => format!("{cell}{blanks}"),
                    Align::Right => format!("{blanks}{cell}"),
                });
            }
            if number > 0 {
                writeln!(f)?;
            }
            write!(f, "{}", line.trim_end())?;
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
    fn wide_characters_and_combining_marks_keep_the_columns_aligned() {
        let mut table = Table::new(&[("NAME", Align::Left), ("N", Align::Right), ("X", Align::Left)]);
        table.row(["日本", "1", "y"].map(str::to_owned));
        table.row(["e\u{301}te\u{301}", "日", "z"].map(str::to_owned));
        assert_eq!(table.to_string(), "NAME   N  X\n日本   1  y\ne\u{301}te\u{301}   日  z");
    }
}
