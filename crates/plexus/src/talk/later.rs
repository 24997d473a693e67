//! Buffers the lines of the transcript that arrive while an approval is on the screen, so that nothing is printed between a call and its
//! prompt.

use std::collections::VecDeque;

/// The capacity in blocks of lines; above it, the oldest are dropped.
const MOST: usize = 500;

/// The buffered lines.
#[derive(Debug, Default)]
pub(super) struct Later {
    blocks: VecDeque<String>,
    left_out: usize,
}

impl Later {
    pub(super) fn push(&mut self, lines: String) {
        if self.blocks.len() == MOST {
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
        let mut later = Later::default();
        assert_eq!(later.take(), None);
        for number in 0..MOST + 2 {
            later.push(number.to_string());
        }
        let all = later.take().unwrap();
        let lines: Vec<&str> = all.lines().collect();
        assert!(lines[0].contains("2 earlier events"), "{}", lines[0]);
        assert_eq!((lines[1], lines[MOST]), ("2", (MOST + 1).to_string().as_str()));
        assert_eq!(later.take(), None);
    }
}
