//! Tracks whether a child has a turn, as far as a keeper needs to know: while the hub is disconnected, the keeper stops
//! only a child without a turn. A turn starts with a prompt or any work of the child, and ends with its `result` line.
//! A child that waits for an approval has a turn.

use std::io::{self, Write};

/// Longer than any word that is searched for.
const MAX_WORD_BYTES: usize = 32;

/// Whether a turn is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Open,
    None,
}

/// A writer that inspects the lines it forwards.
pub(super) struct Turns<F> {
    file: F,
    line: Line,
    turn: Turn,
}

impl<F> Turns<F> {
    pub(super) fn new(file: F) -> Self {
        Self { file, line: Line::default(), turn: Turn::None }
    }

    pub(super) fn file_mut(&mut self) -> &mut F {
        &mut self.file
    }

    pub(super) fn turn(&self) -> Turn {
        self.turn
    }

    /// Records that a prompt was delivered to the child.
    pub(super) fn prompt_sent(&mut self) {
        self.turn = Turn::Open;
    }

    fn watch(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if byte != b'\n' {
                self.line.take(byte);
                continue;
            }
            match std::mem::take(&mut self.line).kind.as_deref() {
                Some(b"result") => self.turn = Turn::None,
                Some(b"assistant" | b"user" | b"stream_event" | b"control_request") => self.turn = Turn::Open,
                _ => {}
            }
        }
    }
}

/// Finds the `type` of a JSON object at any position in the line, without buffering the line.
#[derive(Default)]
struct Line {
    depth: usize,
    text: Text,
    /// The last string of the outermost object, or its beginning.
    word: Vec<u8>,
    member: Member,
    kind: Option<Vec<u8>>,
}

#[derive(Default, PartialEq, Eq)]
enum Text {
    #[default]
    Outside,
    Inside,
    /// After a backslash.
    Escaped,
}

/// The role of the next string in the outermost object.
#[derive(Default, PartialEq, Eq)]
enum Member {
    #[default]
    Name,
    Type,
    OtherValue,
}

impl Line {
    fn take(&mut self, byte: u8) {
        match (&self.text, byte) {
            (Text::Escaped, _) => self.text = Text::Inside,
            (Text::Inside, b'\\') => self.text = Text::Escaped,
            (Text::Inside, b'"') => {
                self.text = Text::Outside;
                if self.depth == 1 && self.member == Member::Type {
                    self.kind.get_or_insert_with(|| self.word.clone());
                }
            }
            (Text::Inside, _) if self.depth == 1 && self.word.len() < MAX_WORD_BYTES => self.word.push(byte),
            (Text::Inside, _) => {}
            (Text::Outside, b'"') => {
                self.text = Text::Inside;
                self.word.clear();
            }
            (Text::Outside, b'{' | b'[') => self.depth += 1,
            (Text::Outside, b'}' | b']') => self.depth = self.depth.saturating_sub(1),
            (Text::Outside, b':') if self.depth == 1 => {
                self.member = if self.word == b"type" { Member::Type } else { Member::OtherValue };
            }
            (Text::Outside, b',') if self.depth == 1 => self.member = Member::Name,
            (Text::Outside, _) => {}
        }
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
        turns.prompt_sent();
        for piece in pieces {
            turns.write_all(piece.as_bytes()).unwrap();
        }
        turns.turn()
    }

    #[test]
    fn a_turn_starts_with_work_and_ends_with_its_result() {
        let result = "{\"type\":\"result\",\"subtype\":\"success\"}\n";
        assert_eq!(turn_after(&[]), Turn::Open);
        assert_eq!(turn_after(&[result]), Turn::None);
        assert_eq!(turn_after(&["{\"type\":\"re", "sult\",\"a\":", "1}", "\n"]), Turn::None);
        assert_eq!(turn_after(&["{\"type\":\"result\""]), Turn::Open, "an incomplete line is ignored");
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
        // The order of the members differs between versions of Claude Code.
        let late = "{\"usage\":{\"type\":\"user\"},\"a\":[{\"type\":\"x\"}],\"b\":\"\\\"type\\\":\",\"type\":\"result\",\"c\":1}\n";
        assert_eq!(turn_after(&[late]), Turn::None);
        assert_eq!(turn_after(&[result, &late.replace("result", "assistant")]), Turn::Open);
        assert_eq!(turn_after(&[result, "type result }]} \"\n", "{\"type\":\"user\"}\n"]), Turn::Open);
        let mut before = Turns::new(Vec::new());
        before.write_all(b"{\"type\":\"system\",\"subtype\":\"init\"}\n").unwrap();
        assert_eq!(before.turn(), Turn::None, "a child that was never prompted has none");
    }
}
