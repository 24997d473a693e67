//! The agent's text while it arrives. Whole blocks of Markdown are shown at once, because an incomplete block may be rendered differently
//! when its end arrives. The stored event of the text then shows the rest. Deltas are not stored, so they may be missing or early.

/// The text that arrived, and how much of it was shown.
#[derive(Debug, Default)]
pub(super) struct TextStream {
    received: String,
    /// Bytes of `received`.
    shown: usize,
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) text: String,
    pub(super) place: Place,
}

/// Whether other parts of the same text were shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    First,
    Further,
}

impl TextStream {
    /// Adds a delta, and returns the blocks that are complete now.
    pub(super) fn push(&mut self, delta: &str) -> Option<Part> {
        self.received.push_str(delta);
        let rest = self.received.get(self.shown..)?;
        let end = complete_blocks(rest)?;
        let part = self.part(rest.get(..end)?);
        self.shown += end;
        part
    }

    /// The part of a whole text that was not shown. A later text may have started.
    pub(super) fn finish(&mut self, text: &str) -> Option<Part> {
        let text = text.trim_end();
        let seen = self.received.get(..self.shown).unwrap_or_default();
        if let Some(later) = self.received.strip_prefix(text) {
            let part = text.get(self.shown..).and_then(|rest| self.part(rest));
            let later = later.trim_start().to_owned();
            let before = self.received.len() - later.len();
            *self = Self { shown: self.shown.saturating_sub(before), received: later };
            return part;
        }
        let part = match text.strip_prefix(seen) {
            Some(rest) => self.part(rest),
            None => Some(Part { text: text.to_owned(), place: Place::First }),
        };
        self.clear();
        part
    }

    /// The rest of a text whose end never arrived, because the turn has ended.
    pub(super) fn take_rest(&mut self) -> Option<Part> {
        let part = self.received.get(self.shown..).and_then(|rest| self.part(rest));
        self.clear();
        part
    }

    /// The text that is not shown yet.
    pub(super) fn pending(&self) -> &str {
        self.received.get(self.shown..).unwrap_or_default()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn part(&self, text: &str) -> Option<Part> {
        let place = if self.shown == 0 { Place::First } else { Place::Further };
        (!text.trim().is_empty()).then(|| Part { text: text.to_owned(), place })
    }
}

/// The end of the blocks that further text cannot change: a blank line outside code, before a line that is not indented.
fn complete_blocks(text: &str) -> Option<usize> {
    let (mut start, mut end, mut code, mut after_blank) = (0, None, false, false);
    for line in text.split_inclusive('\n') {
        if after_blank && !code && !line.starts_with(char::is_whitespace) {
            end = Some(start);
        }
        let trimmed = line.trim_start();
        code ^= trimmed.starts_with("```") || trimmed.starts_with("~~~");
        after_blank = trimmed.is_empty();
        start += line.len();
    }
    end.filter(|end| *end > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str, place: Place) -> Option<Part> {
        Some(Part { text: text.to_owned(), place })
    }

    #[test]
    fn whole_blocks_are_shown_and_the_event_shows_the_rest_once() {
        let mut stream = TextStream::default();
        assert_eq!(stream.push("One.\n\n"), None);
        assert_eq!(stream.push("Two"), part("One.\n\n", Place::First));
        assert_eq!((stream.push(" and"), stream.pending()), (None, "Two and"));
        assert_eq!(stream.finish("One.\n\nTwo and three.\n"), part("Two and three.", Place::Further));
        assert_eq!(stream.finish("Another."), part("Another.", Place::First));
    }

    #[test]
    fn code_and_lists_are_not_cut_at_their_blank_lines() {
        assert_eq!(complete_blocks("```\na\n\nb\n"), None);
        assert_eq!(complete_blocks("- a\n\n  b"), None);
        assert_eq!(complete_blocks("```\na\n\nb\n```\n\nc"), Some(14));
    }

    #[test]
    fn a_text_that_lacks_deltas_or_overlaps_the_next_one_is_shown_in_full() {
        let mut stream = TextStream::default();
        stream.push("One.\n\nT");
        assert_eq!(stream.finish("One.\n\nTwo.\n\nThree."), part("Two.\n\nThree.", Place::Further));
        stream.push("Four.\n\nFi");
        assert_eq!(stream.finish("Other."), part("Other.", Place::First));
        stream.push("Six.Seven.\n\nE");
        assert_eq!(stream.finish("Six."), None, "it was shown with the next text");
        assert_eq!(stream.finish("Seven.\n\nEight."), part("Eight.", Place::Further));
    }

    #[test]
    fn the_rest_of_an_interrupted_text_is_shown() {
        let mut stream = TextStream::default();
        stream.push("Half a sen");
        assert_eq!(stream.take_rest(), part("Half a sen", Place::First));
        assert_eq!(stream.take_rest(), None);
    }
}
