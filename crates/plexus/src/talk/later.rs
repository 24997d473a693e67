//! Lines of the transcript that arrive while an approval is on the screen. They are held back until it is answered, so that
//! nothing is printed between a call and the prompt that asks about it.

use std::collections::VecDeque;

/// How many blocks of lines are held; of more, the oldest are left out.
const MOST: usize = 500;

/// What is held back.
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

    /// All that was held, in order.
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
    fn what_is_held_comes_in_order_and_what_was_left_out_is_counted() {
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
