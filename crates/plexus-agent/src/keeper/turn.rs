//! Whether a child has a turn, as far as a keeper needs to know: without a hub, only a child without one is ended. A turn
//! begins with a prompt or any work of the child, and ends with its `result` line. A child that waits at the gate has one.

use std::io::{self, Write};

/// What a line starts with, to be told apart. Longer than any of the starts below.
const LONGEST_START: usize = 32;

const RESULT: &[u8] = br#"{"type":"result""#;
const WORK: [&[u8]; 4] = [
    br#"{"type":"assistant""#,
    br#"{"type":"user""#,
    br#"{"type":"stream_event""#,
    br#"{"type":"control_request""#,
];

/// Whether there is a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Open,
    None,
}

/// A writer that watches the lines that pass.
pub(super) struct Turns<F> {
    file: F,
    /// The beginning of the line that is being written.
    start: Vec<u8>,
    turn: Turn,
}

impl<F> Turns<F> {
    pub(super) fn new(file: F) -> Self {
        Self { file, start: Vec::with_capacity(LONGEST_START), turn: Turn::None }
    }

    pub(super) fn file_mut(&mut self) -> &mut F {
        &mut self.file
    }

    pub(super) fn turn(&self) -> Turn {
        self.turn
    }

    /// A prompt was passed to the child.
    pub(super) fn prompted(&mut self) {
        self.turn = Turn::Open;
    }

    fn watch(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            let room = LONGEST_START - self.start.len();
            self.start.extend_from_slice(&part[..part.len().min(room)]);
            if part.ends_with(b"\n") {
                self.line();
            }
        }
    }

    fn line(&mut self) {
        if self.start.starts_with(RESULT) {
            self.turn = Turn::None;
        } else if WORK.iter().any(|work| self.start.starts_with(work)) {
            self.turn = Turn::Open;
        }
        self.start.clear();
    }
}

impl<F: Write> Write for Turns<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.watch(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn_after(pieces: &[&str]) -> Turn {
        let mut turns = Turns::new(Vec::new());
        turns.prompted();
        for piece in pieces {
            turns.write_all(piece.as_bytes()).unwrap();
        }
        turns.turn()
    }

    #[test]
    fn a_turn_ends_with_its_result_and_begins_with_work() {
        let result = "{\"type\":\"result\",\"subtype\":\"success\"}\n";
        assert_eq!(turn_after(&[]), Turn::Open);
        assert_eq!(turn_after(&[result]), Turn::None);
        assert_eq!(turn_after(&["{\"type\":\"re", "sult\",\"a\":", "1}", "\n"]), Turn::None);
        assert_eq!(turn_after(&["{\"type\":\"result\""]), Turn::Open, "half a line says nothing");
        assert_eq!(turn_after(&[result, "{\"type\":\"system\",\"subtype\":\"status\"}\n"]), Turn::None);
        assert_eq!(turn_after(&[result, "{\"type\":\"control_response\"}\n"]), Turn::None);
        assert_eq!(
            turn_after(&[result, "{\"type\":\"control_request\",\"request_id\":\"1\"}\n"]),
            Turn::Open
        );
        assert_eq!(turn_after(&[result, "{\"type\":\"user\",\"message\":{}}\n"]), Turn::Open);
        assert_eq!(
            turn_after(&["{\"type\":\"assistant\",\"text\":\"{\\\"type\\\":\\\"result\\\"\"}\n"]),
            Turn::Open
        );
        let mut before = Turns::new(Vec::new());
        before.write_all(b"{\"type\":\"system\",\"subtype\":\"init\"}\n").unwrap();
        assert_eq!(before.turn(), Turn::None, "a child that was never prompted has none");
    }
}
