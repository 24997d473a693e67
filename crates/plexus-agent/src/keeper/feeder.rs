//! From the outbox to the child's stdin: whole lines only, in order, each once. All it remembers is the
//! offset of the last line it passed on; a line is read in pieces while it is being written, so that one of
//! 16 MB takes no more memory than a short one.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use serde::Deserialize;

const PIECE: usize = 64 * 1024;
/// Pieces in one go, before the other streams have their turn.
const PIECES_AT_ONCE: usize = 16;
/// What the hub says to the keeper itself is short.
const LONGEST_WORD: usize = 1024;

/// What the feeder waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Feed {
    /// Another line in the outbox.
    WaitsForLines,
    /// Room in the socket.
    WaitsForRoom,
}

/// A line for the keeper itself.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Go(String),
    Close(bool),
}

pub(super) struct Feeder {
    outbox: File,
    /// The end of the last whole line that was dealt with.
    offset: u64,
    /// What is still to be written of the line after it.
    passing: Option<Range<u64>>,
    stdin: Option<OwnedFd>,
    /// Whether a prompt was passed on since that was asked last.
    prompted: bool,
}

impl Feeder {
    pub(super) fn open(outbox: &Path) -> io::Result<Self> {
        Ok(Self { outbox: File::open(outbox)?, offset: 0, passing: None, stdin: None, prompted: false })
    }

    /// What the first line says in `{"go":…}`; empty when it says something else, `None` before it is there.
    pub(super) fn first_word(&mut self) -> io::Result<Option<String>> {
        let Some(line) = self.next_line()? else { return Ok(None) };
        self.offset = line.end;
        match self.read_word(&line)? {
            Some(Word::Go(nonce)) => Ok(Some(nonce)),
            _ => Ok(Some(String::new())),
        }
    }

    /// Where lines go from now on.
    pub(super) fn connect(&mut self, stdin: OwnedFd) {
        self.stdin = Some(stdin);
    }

    pub(super) fn writable_end(&self) -> Option<BorrowedFd<'_>> {
        self.stdin.as_ref().map(AsFd::as_fd)
    }

    /// Passes on what it can without waiting.
    pub(super) fn feed(&mut self) -> io::Result<Feed> {
        let mut buffer = [0; PIECE];
        for _ in 0..PIECES_AT_ONCE {
            let Some(stdin) = &self.stdin else { return Ok(Feed::WaitsForLines) };
            let Some(rest) = self.passing.clone() else {
                match self.next_line()? {
                    Some(line) => self.take_up(line)?,
                    None => return Ok(Feed::WaitsForLines),
                }
                continue;
            };
            let length = usize::try_from(rest.end - rest.start).unwrap_or(PIECE).min(PIECE);
            self.outbox.read_exact_at(&mut buffer[..length], rest.start)?;
            match send(stdin, &buffer[..length], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(sent) if rest.start + sent as u64 == rest.end => {
                    self.offset = rest.end;
                    self.passing = None;
                }
                Ok(sent) => self.passing = Some(rest.start + sent as u64..rest.end),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(Feed::WaitsForRoom),
                // The child reads no more. That it ends is noticed elsewhere.
                Err(_) => self.stdin = None,
            }
        }
        Ok(Feed::WaitsForRoom)
    }

    /// Whether a prompt was passed on since this was asked last.
    pub(super) fn take_prompted(&mut self) -> bool {
        std::mem::take(&mut self.prompted)
    }

    /// A line is the child's, or the keeper's, or nobody's.
    fn take_up(&mut self, line: Range<u64>) -> io::Result<()> {
        const MESSAGE: &[u8] = br#"{"type":"#;
        const PROMPT: &[u8] = br#"{"type":"user""#;
        let mut start = [0; PROMPT.len()];
        let length = usize::try_from(line.end - line.start).unwrap_or(PROMPT.len()).min(PROMPT.len());
        self.outbox.read_exact_at(&mut start[..length], line.start)?;
        if start[..length].starts_with(MESSAGE) {
            self.prompted |= start == PROMPT;
            self.passing = Some(line);
            return Ok(());
        }
        self.offset = line.end;
        if let Some(Word::Close(true)) = self.read_word(&line)? {
            self.stdin = None;
        }
        Ok(())
    }

    fn read_word(&self, line: &Range<u64>) -> io::Result<Option<Word>> {
        let length = usize::try_from(line.end - line.start).unwrap_or(usize::MAX);
        if length > LONGEST_WORD {
            return Ok(None);
        }
        let mut bytes = vec![0; length];
        self.outbox.read_exact_at(&mut bytes, line.start)?;
        Ok(serde_json::from_slice(&bytes).ok())
    }

    /// The next whole line, newline included. It is looked for from its start each time: of half a line
    /// nothing is remembered, as a hub that comes back cuts it off and writes another.
    fn next_line(&self) -> io::Result<Option<Range<u64>>> {
        let mut buffer = [0; PIECE];
        let mut at = self.offset;
        loop {
            let read = match self.outbox.read_at(&mut buffer, at) {
                Ok(0) => return Ok(None),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if let Some(newline) = buffer[..read].iter().position(|&byte| byte == b'\n') {
                return Ok(Some(self.offset..at + newline as u64 + 1));
            }
            at += read as u64;
        }
    }
}
