//! The hub's writer of the outbox. It appends complete lines in order, and writes a byte to the `wake` FIFO after each.
//! The task that owns the session is the only writer. A partial line never remains longer than one write.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;

use plexus_claude::{SentId, sent_id};
use rustix::fs::OFlags;
use serde_json::json;

use crate::run_dir::RunDir;
use crate::timing::TIMING;

/// The lines for a child, open for appending.
#[derive(Debug)]
pub struct Outbox {
    file: File,
    wake: File,
    /// The end of the last complete line.
    length: u64,
    tail: Tail,
}

/// The state of the file after the last complete line.
#[derive(Debug, PartialEq, Eq)]
enum Tail {
    Clean,
    /// A failed write left part of a line that could not be truncated yet.
    Torn,
}

impl Outbox {
    /// Opens the outbox of a run, new or from an earlier hub. Truncates an incomplete line that the earlier hub may
    /// have left, and returns the ids in the complete lines, so that only missing lines are appended.
    ///
    /// Wakes the keeper, because the earlier hub may have died between its last line and the wake.
    pub fn open(dir: &RunDir) -> io::Result<(Self, HashSet<SentId>)> {
        let file = File::options().read(true).append(true).open(dir.outbox())?;
        let mut sent = HashSet::new();
        let mut length = 0;
        let mut reader = BufReader::new(&file);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 && line.ends_with(b"\n") {
            length += line.len() as u64;
            sent.extend(sent_id(line.trim_ascii_end()));
            line.clear();
        }
        file.set_len(length)?;
        // Opened for reading and writing, so that it opens whether or not the keeper is running; never read from.
        let wake = File::options()
            .read(true)
            .write(true)
            .custom_flags(OFlags::NONBLOCK.bits() as i32)
            .open(dir.wake())?;
        let mut outbox = Self { file, wake, length, tail: Tail::Clean };
        outbox.wake_keeper()?;
        Ok((outbox, sent))
    }

    /// Appends one line, completely or not at all, and wakes the keeper. Rejects a line break inside the line: it would
    /// split the line in two, and half a message ends Claude Code.
    pub fn append(&mut self, line: &str) -> io::Result<()> {
        if line.contains('\n') {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a message to a child contains a line break",
            ));
        }
        self.truncate_torn_line()?;
        let bytes = [line.as_bytes(), b"\n"].concat();
        if let Err(error) = self.file.write_all(&bytes) {
            self.tail = Tail::Torn;
            // If this fails too, the next append tries again before it writes.
            let _ = self.truncate_torn_line();
            return Err(error);
        }
        self.length += bytes.len() as u64;
        tracing::trace!(target: TIMING, mark = "outbox_written", end = self.length);
        self.wake_keeper()
    }

    /// Writes the go line, which the keeper waits for.
    pub fn go(&mut self, nonce: &str) -> io::Result<()> {
        self.append(&json!({ "go": nonce }).to_string())
    }

    /// Makes the keeper close the child's stdin, so the child exits when it is idle. Later lines are not delivered.
    pub fn close_stdin(&mut self) -> io::Result<()> {
        self.append(&json!({ "close": true }).to_string())
    }

    fn truncate_torn_line(&mut self) -> io::Result<()> {
        if self.tail == Tail::Torn {
            self.file.set_len(self.length)?;
            self.tail = Tail::Clean;
        }
        Ok(())
    }

    fn wake_keeper(&mut self) -> io::Result<()> {
        loop {
            match self.wake.write(b".") {
                Ok(_) => return Ok(()),
                // The FIFO is full of unread wakes, so another one would add nothing.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> (tempfile::TempDir, RunDir) {
        let home = tempfile::tempdir().unwrap();
        let dir = RunDir::new(home.path().join("1"));
        dir.create().unwrap();
        (home, dir)
    }

    #[test]
    fn a_new_hub_truncates_an_incomplete_line_and_knows_the_sent_ids() {
        let (_home, dir) = run();
        let whole = concat!(
            r#"{"go":"n"}"#,
            "\n",
            r#"{"type":"control_request","request_id":"init-1","request":{"subtype":"initialize"}}"#,
            "\n",
            r#"{"type":"user","message":{"role":"user","content":"hello"},"uuid":"u-1"}"#,
            "\n",
        );
        let half = r#"{"type":"user","message":{"role":"user","content":"never sent"},"uuid":"u-2"}"#;
        std::fs::write(dir.outbox(), format!("{whole}{half}")).unwrap();
        let (mut outbox, sent) = Outbox::open(&dir).unwrap();
        assert_eq!(std::fs::read_to_string(dir.outbox()).unwrap(), whole);
        let expected = [SentId::Request("init-1".to_owned()), SentId::Prompt("u-1".to_owned())];
        assert_eq!(sent, HashSet::from(expected));
        outbox.append(half).unwrap();
        assert_eq!(std::fs::read_to_string(dir.outbox()).unwrap(), format!("{whole}{half}\n"));
    }

    #[test]
    fn a_message_with_a_line_break_is_refused() {
        let (_home, dir) = run();
        let (mut outbox, _) = Outbox::open(&dir).unwrap();
        assert_eq!(outbox.append("{\"type\":\n1}").unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(std::fs::read(dir.outbox()).unwrap(), b"");
    }

    #[test]
    fn a_torn_line_is_truncated_before_the_next_is_written() {
        let (_home, dir) = run();
        let (mut outbox, _) = Outbox::open(&dir).unwrap();
        outbox.append("1").unwrap();
        outbox.file.write_all(b"half of").unwrap();
        outbox.tail = Tail::Torn;
        outbox.append("2").unwrap();
        assert_eq!(std::fs::read(dir.outbox()).unwrap(), b"1\n2\n");
    }

    #[test]
    fn a_keeper_that_never_reads_its_wakes_does_not_block_the_hub() {
        let (_home, dir) = run();
        let (mut outbox, _) = Outbox::open(&dir).unwrap();
        // The capacity of a FIFO is 64 KiB.
        for _ in 0..70_000 {
            outbox.wake_keeper().unwrap();
        }
    }
}
