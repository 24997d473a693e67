//! Formats a call that writes a file as a diff with the line numbers of the file. It uses the input and the file's text as the hub read it;
//! without that text the diff has no numbers. Every line of the input is shown.

use std::ops::Range;

use plexus_core::edited::{DiffLine, Mark, line_diff};
use plexus_protocol::Hunk;

use super::row::{Row, Tone};

/// The number of context lines around a change.
const AROUND: usize = 3;

/// One replacement of a text by another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Edit<'a> {
    pub(crate) old: &'a str,
    pub(crate) new: &'a str,
    pub(crate) occurrences: Occurrences,
}

/// Which occurrences of a text an edit replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Occurrences {
    /// The only occurrence.
    One,
    /// All occurrences.
    All,
}

/// A diff of two texts without numbers.
pub(crate) fn rows(old: &str, new: &str) -> Vec<Row> {
    line_diff(old, new).iter().map(|line| row(line, two_columns(line.mark))).collect()
}

/// A diff of two texts with line numbers, from line 1 on.
pub(crate) fn numbered(old: &str, new: &str) -> Vec<Row> {
    Numbers { old: 1, new: 1 }.rows(&line_diff(old, new))
}

/// The parts of a file that a call has changed, with the line numbers that Claude Code reports.
pub(crate) fn hunks(hunks: &[Hunk]) -> Vec<Row> {
    let mut rows = Vec::new();
    for hunk in hunks {
        if !rows.is_empty() {
            rows.push(Row::new(Tone::Dim, "⋮"));
        }
        let lines: Vec<DiffLine> = hunk.lines.iter().map(|line| diff_line(line)).collect();
        let first = |number: u64| usize::try_from(number).unwrap_or_default();
        rows.extend(Numbers { old: first(hunk.old_start), new: first(hunk.new_start) }.rows(&lines));
    }
    rows
}

/// A line of a hunk: a mark and the text.
fn diff_line(line: &str) -> DiffLine {
    let mark = match line.as_bytes().first() {
        Some(b'+') => Mark::Added,
        Some(b'-') => Mark::Removed,
        Some(b'\\') => Mark::Note,
        _ => Mark::Same,
    };
    DiffLine { mark, text: line.get(1..).unwrap_or(line).to_owned() }
}

/// A new text.
pub(crate) fn added(text: &str) -> Vec<Row> {
    if text.is_empty() {
        return vec![Row::new(Tone::Dim, "an empty file")];
    }
    let mut rows = Row::exact_lines(Tone::Added, "+ ", text);
    if !text.ends_with('\n') {
        rows.push(Row::new(Tone::Dim, "no newline at the end"));
    }
    rows
}

/// An edit of a file with line numbers, and the edited text; `None` if the edit does not match the file.
pub(crate) fn edit(file: &str, edit: Edit<'_>) -> Option<(Vec<Row>, String)> {
    let found: Vec<usize> = if edit.old.is_empty() {
        Vec::new()
    } else {
        file.match_indices(edit.old).map(|(at, _)| at).collect()
    };
    if found.is_empty() || (edit.occurrences == Occurrences::One && found.len() > 1) {
        return None;
    }
    let starts: Vec<usize> = std::iter::once(0)
        .chain(file.match_indices('\n').map(|(at, _)| at + 1))
        .filter(|at| *at < file.len())
        .collect();
    let mut rows = Vec::new();
    let mut grown: isize = 0;
    for block in blocks(&starts, &found, edit.old.len()) {
        let bytes = starts[block.start]..starts.get(block.end).copied().unwrap_or(file.len());
        let old = &file[bytes];
        let new = old.replace(edit.old, edit.new);
        if !rows.is_empty() {
            rows.push(Row::new(Tone::Dim, "⋮"));
        }
        let first = block.start + 1;
        let numbers = Numbers { old: first, new: first.saturating_add_signed(grown) };
        rows.extend(numbers.rows(&line_diff(old, &new)));
        grown += count(&new) - count(old);
    }
    Some((rows, file.replace(edit.old, edit.new)))
}

fn count(text: &str) -> isize {
    isize::try_from(text.lines().count()).unwrap_or(isize::MAX)
}

/// The ranges of lines with all occurrences and their context; adjacent ranges are merged.
fn blocks(starts: &[usize], found: &[usize], length: usize) -> Vec<Range<usize>> {
    let line_of = |byte: usize| starts.partition_point(|start| *start <= byte).saturating_sub(1);
    let mut blocks: Vec<Range<usize>> = Vec::new();
    for at in found {
        let first = line_of(*at).saturating_sub(AROUND);
        let end = (line_of(at + length - 1) + 1 + AROUND).min(starts.len());
        match blocks.last_mut() {
            Some(last) if first <= last.end => last.end = last.end.max(end),
            _ => blocks.push(first..end),
        }
    }
    blocks
}

/// The numbers of the next line in each text.
struct Numbers {
    old: usize,
    new: usize,
}

impl Numbers {
    fn rows(mut self, lines: &[DiffLine]) -> Vec<Row> {
        let wide = (self.old.max(self.new) + lines.len()).to_string().len();
        let mut rows = Vec::with_capacity(lines.len());
        for line in lines {
            let number = match line.mark {
                Mark::Removed => self.old.to_string(),
                Mark::Same | Mark::Added => self.new.to_string(),
                Mark::Note => String::new(),
            };
            self.old += usize::from(matches!(line.mark, Mark::Same | Mark::Removed));
            self.new += usize::from(matches!(line.mark, Mark::Same | Mark::Added));
            rows.push(row(line, format!("{number:>wide$} {}", two_columns(line.mark)).into()));
        }
        rows
    }
}

fn row(line: &DiffLine, lead: std::borrow::Cow<'static, str>) -> Row {
    let tone = match line.mark {
        Mark::Removed => Tone::Removed,
        Mark::Added => Tone::Added,
        Mark::Same => Tone::Plain,
        Mark::Note => Tone::Dim,
    };
    Row::exact(tone, lead, &line.text)
}

fn two_columns(mark: Mark) -> std::borrow::Cow<'static, str> {
    match mark {
        Mark::Same => "  ",
        Mark::Removed => "- ",
        Mark::Added => "+ ",
        Mark::Note => "\\ ",
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(rows: &[Row]) -> Vec<String> {
        rows.iter().map(|row| format!("{}{}", row.lead, row.text)).collect()
    }

    fn lines(range: std::ops::RangeInclusive<usize>) -> String {
        range.map(|number| format!("line {number}\n")).collect()
    }

    #[test]
    fn removed_and_added_lines_are_marked_without_colours_and_none_is_missing() {
        let old = lines(1..=9);
        let new = old.replace("line 9\n", "nine\n");
        assert_eq!(shown(&rows(&old, &new)).len(), 10);
        assert_eq!(shown(&rows(&old, &new))[7..], ["  line 8", "- line 9", "+ nine"]);
    }

    #[test]
    fn an_edit_has_the_numbers_of_the_file() {
        let file = lines(1..=200);
        let (rows, after) =
            edit(&file, Edit { old: "line 100\n", new: "a\nb\n", occurrences: Occurrences::One }).unwrap();
        assert_eq!(
            shown(&rows),
            [
                " 97   line 97",
                " 98   line 98",
                " 99   line 99",
                "100 - line 100",
                "100 + a",
                "101 + b",
                "102   line 101",
                "103   line 102",
                "104   line 103"
            ]
        );
        assert!(after.contains("line 99\na\nb\nline 101\n"));
    }

    #[test]
    fn every_occurrence_is_shown_with_its_line_number_after_the_edit() {
        let mut file = lines(1..=20);
        file = file.replace("line 2\n", "x\n").replace("line 15\n", "x\n");
        let all = edit(&file, Edit { old: "x\n", new: "x\ny\n", occurrences: Occurrences::All }).unwrap().0;
        let shown = shown(&all);
        assert!(
            shown.contains(&"3 + y".to_owned())
                && shown.contains(&"⋮".to_owned())
                && shown.contains(&"17 + y".to_owned()),
            "{shown:?}"
        );
        assert!(
            edit(&file, Edit { old: "x\n", new: "", occurrences: Occurrences::One }).is_none(),
            "it is ambiguous"
        );
        assert!(edit(&file, Edit { old: "zzz", new: "", occurrences: Occurrences::All }).is_none());
    }

    #[test]
    fn a_part_of_a_line_and_the_last_line_without_a_newline_are_edited() {
        let (rows, after) =
            edit("a\nbcd", Edit { old: "c", new: "C", occurrences: Occurrences::One }).unwrap();
        assert_eq!(shown(&rows), ["1   a", "2 - bcd", "2 + bCd"]);
        assert_eq!(after, "a\nbCd");
    }

    #[test]
    fn an_overwritten_file_is_compared_in_full() {
        let rows = numbered("a\nb\n", "a\nc");
        assert_eq!(shown(&rows), ["1   a", "2 - b", "2 + c", "  \\ no newline at the end"]);
    }
}
