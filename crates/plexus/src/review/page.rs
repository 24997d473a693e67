//! Tracks how much of an approval was shown. `Seen` is for a screen that scrolls, `Pager` for a terminal that prints pages. Both report
//! "all" only after every row was on the screen, and start over if the content changes.

use super::row::{Row, fit};
use crate::paint::Paint;
use crate::plural::counted;

/// How much of the content was on the screen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// A hash of the content, and its width.
    of: Option<(u64, usize)>,
    /// All rows above this one were shown.
    upto: usize,
    all: bool,
}

impl Seen {
    /// Sets the content, in rows of this width.
    pub(crate) fn start(&mut self, content: u64, width: usize) {
        let same = self.of.is_some_and(|(before, _)| before == content);
        if self.of == Some((content, width)) {
            return;
        }
        // Another width gives other rows, so content that was only partly shown is shown again.
        *self = Self { of: Some((content, width)), upto: 0, all: same && self.all };
    }

    /// Nothing is shown.
    pub(crate) fn stop(&mut self) {
        *self = Self::default();
    }

    /// Records that `height` rows from `first` on are on the screen, of `count` in all.
    pub(crate) fn show(&mut self, first: usize, height: usize, count: usize) {
        if first <= self.upto {
            self.upto = self.upto.max(first + height).min(count);
        }
        self.all |= self.upto >= count;
    }

    /// Whether every row was shown.
    pub(crate) fn all(&self) -> bool {
        self.of.is_some() && self.all
    }

    /// How many rows from the top were shown.
    pub(crate) fn upto(&self) -> usize {
        self.upto
    }
}

/// The number of rows above the longest of these prompts, on a screen of this size.
pub(crate) fn height_above((width, height): (usize, usize), prompts: &[String]) -> usize {
    let rows = |prompt: &String| prompt.chars().count() / width.max(1) + 1;
    // One row is for the typed line.
    height.saturating_sub(prompts.iter().map(rows).max().unwrap_or(1) + 1).max(1)
}

/// Rows that are printed page by page.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pager {
    rows: Vec<Row>,
    /// The width of the lines.
    width: usize,
    lines: Vec<Row>,
    next: usize,
}

impl Pager {
    /// These rows, on a terminal of this width.
    pub(crate) fn of(rows: &[Row], width: usize) -> Self {
        Self { rows: rows.to_vec(), width, lines: fit(rows, width), next: 0 }
    }

    /// Call this before each page: a terminal whose width has changed wraps the lines differently, so reading starts over.
    pub(crate) fn resize(&mut self, width: usize) {
        if self.width != width {
            *self = Self::of(&self.rows, width);
        }
    }

    /// The next page, of this height at most.
    pub(crate) fn page(&mut self, height: usize, paint: Paint) -> String {
        let end = self.next.saturating_add(height.max(1)).min(self.lines.len());
        let lines = self.lines.get(self.next..end).unwrap_or_default().iter().map(|row| paint.row(row));
        self.next = end;
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Whether every row was printed.
    pub(crate) fn all(&self) -> bool {
        self.next >= self.lines.len()
    }

    /// The longest possible progress text.
    pub(crate) fn longest_progress(&self) -> String {
        let all = self.lines.len();
        format!("{all} of {} shown", counted(all, "line", "lines"))
    }

    /// The progress text.
    pub(crate) fn progress(&self) -> String {
        format!("{} of {} shown", self.next, counted(self.lines.len(), "line", "lines"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::row::Tone;

    #[test]
    fn a_call_is_seen_in_full_only_if_no_row_was_skipped() {
        let mut seen = Seen::default();
        assert!(!seen.all(), "nothing was shown");
        seen.start(1, 80);
        seen.show(0, 10, 30);
        seen.show(20, 10, 30);
        assert!(!seen.all(), "ten rows were jumped over");
        seen.show(10, 10, 30);
        seen.show(20, 10, 30);
        assert!(seen.all());
        seen.start(1, 40);
        assert!(seen.all(), "the same content in narrower rows");
        seen.start(2, 40);
        assert!(!seen.all(), "other content");
        seen.show(0, 5, 12);
        seen.start(2, 80);
        seen.show(5, 5, 10);
        assert!(!seen.all(), "rows of another width are other rows");
    }

    #[test]
    fn a_page_leaves_room_for_a_prompt_that_wraps() {
        let prompts = ["Allow it? ".to_owned(), "x".repeat(59)];
        assert_eq!(height_above((80, 24), &prompts), 22);
        assert_eq!(height_above((20, 6), &prompts), 2, "the longest takes three rows");
        assert_eq!(height_above((20, 2), &prompts), 1);
    }

    #[test]
    fn pages_follow_each_other_to_the_end() {
        let rows: Vec<Row> = (0..5).map(|number| Row::new(Tone::Plain, &number.to_string())).collect();
        let mut pager = Pager::of(&rows, 80);
        assert_eq!((pager.page(2, Paint::Plain), pager.all()), ("0\n1".to_owned(), false));
        assert_eq!(pager.progress(), "2 of 5 lines shown");
        assert_eq!(
            (pager.page(2, Paint::Plain), pager.page(9, Paint::Plain), pager.all()),
            ("2\n3".to_owned(), "4".to_owned(), true)
        );
    }

    #[test]
    fn reading_starts_over_when_the_width_changes() {
        let mut pager = Pager::of(&[Row::new(Tone::Plain, &"x".repeat(40))], 80);
        assert_eq!((pager.page(9, Paint::Plain), pager.all()), ("x".repeat(40), true));
        pager.resize(80);
        assert!(pager.all(), "the same width");
        pager.resize(20);
        assert!(!pager.all(), "the lines wrap differently");
        assert_eq!((pager.page(1, Paint::Plain).len(), pager.all()), (20, false));
    }
}
