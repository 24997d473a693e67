//! Buffers the lines of the transcript that arrive while an approval is on the screen, so that nothing is printed between a call and its
//! prompt.

use std::collections::VecDeque;

/// The capacity in blocks of lines; above it, the oldest are dropped.
const MAX_BLOCKS: usize = 500;

/// The buffered lines.
#[derive(Debug, Default)]
pub(super) struct HeldLines {
    blocks: VecDeque<String>,
    left_out: usize,
}

impl HeldLines {
    pub(super) fn push(&mut self, lines: String) {
        if self.blocks.len() == MAX_BLOCKS {
            self.blocks.pop_front();
            self.left_out += 1;
        }
        self.blocks.push_back(lines);
    }

    /// All buffered lines, in order.
    pub(super) fn take(&mut self) -> Option<String> {
        let blocks = std::mem::take(&mut self.blocks);
        let left_out = std::mem::take(&mut self.left_out);
        let note = (left_out > 0).then(|| format!("… {left_out} earlier events; `plexus logs` shows all"));
        let lines: Vec<String> = note.into_iter().chain(blocks).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_order_and_dropped_lines_are_counted() {
        let mut held_lines = HeldLines::default();
        assert_eq!(held_lines.take(), None);
        for number in 0..MAX_BLOCKS + 2 {
            held_lines.push(number.to_string());
        }
        let all = held_lines.take().unwrap();
        let lines: Vec<&str> = all.lines().collect();
        assert!(lines[0].contains("2 earlier events"), "{}", lines[0]);
        assert_eq!((lines[1], lines[MAX_BLOCKS]), ("2", (MAX_BLOCKS + 1).to_string().as_str()));
        assert_eq!(held_lines.take(), None);
    }
}
