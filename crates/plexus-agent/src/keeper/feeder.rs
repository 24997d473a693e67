//! Copies the outbox to the child's stdin: complete lines only, in order, each once. Its only state is the offset of
//! the last delivered line. A line is read in pieces while it is written, so a line of 16 MB needs no more memory than
//! a short one.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use serde::Deserialize;

use crate::timing::TIMING;

const PIECE: usize = 64 * 1024;
/// Pieces to copy per call, before other streams get their turn.
const PIECES_AT_ONCE: usize = 16;
/// The longest command from the hub to the keeper itself.
const MAX_COMMAND_BYTES: usize = 1024;

/// What the feeder waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Feed {
    /// Another line in the outbox.
    WaitsForLines,
    /// Space in the socket.
    WaitsForSpace,
}

/// A line for the keeper itself.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum KeeperCommand {
    Go(String),
    Close(bool),
}

pub(super) struct Feeder {
    outbox: File,
    /// The end of the last complete line that was processed.
    offset: u64,
    /// The part of the following line that is not written yet.
    unwritten: Option<Range<u64>>,
    stdin: Option<OwnedFd>,
    /// Whether a prompt was delivered since the last [`Feeder::take_prompt_sent`].
    prompt_sent: bool,
}

impl Feeder {
    pub(super) fn open(outbox: &Path) -> io::Result<Self> {
        Ok(Self { outbox: File::open(outbox)?, offset: 0, unwritten: None, stdin: None, prompt_sent: false })
    }

    /// The nonce of the first line, `{"go":…}`; empty if the line says something else, `None` before the line exists.
    pub(super) fn read_go(&mut self) -> io::Result<Option<String>> {
        let Some(line) = self.next_line()? else { return Ok(None) };
        self.offset = line.end;
        match self.read_command(&line)? {
            Some(KeeperCommand::Go(nonce)) => Ok(Some(nonce)),
            _ => Ok(Some(String::new())),
        }
    }

    /// Sets the stdin that receives the lines from now on.
    pub(super) fn connect(&mut self, stdin: OwnedFd) {
        self.stdin = Some(stdin);
    }

    pub(super) fn stdin_fd(&self) -> Option<BorrowedFd<'_>> {
        self.stdin.as_ref().map(AsFd::as_fd)
    }

    /// Copies lines until it would block.
    pub(super) fn feed(&mut self) -> io::Result<Feed> {
        let mut buffer = [0; PIECE];
        for _ in 0..PIECES_AT_ONCE {
            let Some(stdin) = &self.stdin else { return Ok(Feed::WaitsForLines) };
            let Some(rest) = self.unwritten.clone() else {
                match self.next_line()? {
                    Some(line) => self.sort_line(line)?,
                    None => return Ok(Feed::WaitsForLines),
                }
                continue;
            };
            let length = usize::try_from(rest.end - rest.start).unwrap_or(PIECE).min(PIECE);
            self.outbox.read_exact_at(&mut buffer[..length], rest.start)?;
            tracing::trace!(target: TIMING, mark = "line_sending", end = rest.end);
            match send(stdin, &buffer[..length], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(sent) if rest.start + sent as u64 == rest.end => {
                    self.offset = rest.end;
                    self.unwritten = None;
                }
                Ok(sent) => self.unwritten = Some(rest.start + sent as u64..rest.end),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(Feed::WaitsForSpace),
                // The child no longer reads. Other code detects its end.
                Err(_) => self.stdin = None,
            }
        }
        Ok(Feed::WaitsForSpace)
    }

    /// Whether a prompt was delivered since the last call.
    pub(super) fn take_prompt_sent(&mut self) -> bool {
        std::mem::take(&mut self.prompt_sent)
    }

    /// Decides whether a line is for the child, for the keeper, or for neither.
    fn sort_line(&mut self, line: Range<u64>) -> io::Result<()> {
        const MESSAGE: &[u8] = br#"{"type":"#;
        const PROMPT: &[u8] = br#"{"type":"user""#;
        let mut start = [0; PROMPT.len()];
        let length = usize::try_from(line.end - line.start).unwrap_or(PROMPT.len()).min(PROMPT.len());
        self.outbox.read_exact_at(&mut start[..length], line.start)?;
        if start[..length].starts_with(MESSAGE) {
            self.prompt_sent |= start == PROMPT;
            self.unwritten = Some(line);
            return Ok(());
        }
        self.offset = line.end;
        if let Some(KeeperCommand::Close(true)) = self.read_command(&line)? {
            self.stdin = None;
        }
        Ok(())
    }

    fn read_command(&self, line: &Range<u64>) -> io::Result<Option<KeeperCommand>> {
        let length = usize::try_from(line.end - line.start).unwrap_or(usize::MAX);
        if length > MAX_COMMAND_BYTES {
            return Ok(None);
        }
        let mut bytes = vec![0; length];
        self.outbox.read_exact_at(&mut bytes, line.start)?;
        Ok(serde_json::from_slice(&bytes).ok())
    }

    /// The next complete line, including its newline. The search always starts at the beginning of the line: a partial
    /// line is not remembered, because a restarted hub truncates it and writes another.
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
