//! Two texts as the lines that went and came, with a little of what stayed around them. Long stretches that stayed are
//! left out, and said to be.

use std::time::Duration;

use similar::{ChangeTag, TextDiff};

use super::rows::{Row, Tone};

/// How much of what stayed is shown around a change.
const AROUND: usize = 3;
/// How long the search for the shortest way may take; after that any way will do.
const SEARCH: Duration = Duration::from_millis(100);

/// The rows of a diff.
pub(crate) fn rows(old: &str, new: &str) -> Vec<Row> {
    let diff = TextDiff::configure().timeout(SEARCH).diff_lines(old, new);
    let mut rows = Vec::new();
    let groups = diff.grouped_ops(AROUND);
    if groups.is_empty() {
        return vec![Row::new(Tone::Dim, "nothing changes")];
    }
    for (number, group) in groups.iter().enumerate() {
        if number > 0 {
            rows.push(Row::new(Tone::Dim, "  ⋮"));
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let (tone, lead) = match change.tag() {
                ChangeTag::Delete => (Tone::Removed, "- "),
                ChangeTag::Insert => (Tone::Added, "+ "),
                ChangeTag::Equal => (Tone::Plain, "  "),
            };
            let line = change.value();
            let text = line.strip_suffix('\n').unwrap_or(line);
            rows.push(Row::led(tone, lead, text));
        }
    }
    rows
}

/// A text that is all new.
pub(crate) fn added(text: &str) -> Vec<Row> {
    text.lines().map(|line| Row::led(Tone::Added, "+ ", line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_and_came_is_told_apart_without_colours() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let new = old.replace("9\n", "nine\n");
        let shown: Vec<String> =
            rows(old, &new).iter().map(|row| format!("{}{}", row.lead, row.text)).collect();
        assert_eq!(shown, ["  6", "  7", "  8", "- 9", "+ nine"]);
        assert_eq!(rows("a", "a").len(), 1);
    }
}
