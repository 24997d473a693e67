//! The hub's reader of the journal. It yields the child's output line by line, each line with its offset. The offset is
//! the hub's only read position, so reading can resume at any line. `plexus-claude` interprets the lines.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use plexus_claude::{Incoming, Line, LineSplitter, parse, parse_oversized};

use crate::journal_watch::{JournalWatch, Watched};
use crate::run_dir::RunDir;
use crate::timing::TIMING;

/// The longest line that is loaded into memory. Longer lines remain a range of the journal.
pub const MAX_LINE: usize = 8 * 1024 * 1024;

/// How much of an incomplete line is buffered. A longer line is read again once it is complete. The limit matters
/// because a thousand children may each have stopped in the middle of a line.
const HELD: usize = 16 * 1024;

const PIECE: usize = 64 * 1024;

/// One line of a journal.
#[derive(Debug)]
pub struct Entry {
    /// The parsed line.
    pub message: Incoming,
    /// The offset at which it starts.
    pub start: u64,
    /// The offset of the next line, at which to reopen the journal to continue after this one.
    pub end: u64,
}

/// A reader of one journal.
#[derive(Debug)]
pub struct Journal {
    file: File,
    /// How far the file has been read. The splitter may hold an incomplete line at the end.
    offset: u64,
    splitter: LineSplitter,
    watched: Watched,
    end: End,
    /// Lines that `read_ahead` has read.
    ahead: Vec<Entry>,
}

/// Whether the reader is at the end of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// More data may be readable now.
    NotReached,
    /// The last read reached the end. The watch reports further growth.
    Reached,
}

impl Journal {
    /// Opens a run's journal at `offset`, which is 0 or the end of a line.
    pub fn open(dir: &RunDir, offset: u64, watch: &JournalWatch) -> io::Result<Self> {
        let path = dir.journal();
        let file = File::open(&path)?;
        let watched = watch.add(&path);
        let splitter = LineSplitter::new(offset, HELD);
        Ok(Self { file, offset, splitter, watched, end: End::NotReached, ahead: Vec::new() })
    }

    /// Returns when more data may be readable: immediately, until a `read` has reached the end. Cancel safe, and it
    /// never misses growth.
    pub async fn changed(&mut self) {
        if self.ahead.is_empty() && self.end == End::Reached {
            self.watched.grown().await;
            // Remains set until the next read, even if this future is cancelled.
            self.end = End::NotReached;
        }
    }

    /// Returns the complete lines that are available now, up to about `max_bytes` and always at least one; empty at the
    /// current end. An incomplete line is returned once it is complete. Lines that were read ahead are returned all at once.
    pub fn read(&mut self, max_bytes: usize) -> io::Result<Vec<Entry>> {
        if self.ahead.is_empty() { self.read_file(max_bytes) } else { Ok(std::mem::take(&mut self.ahead)) }
    }

    /// Reads and parses the lines that the next `read` returns, up to about `max_bytes`.
    pub fn read_ahead(&mut self, max_bytes: usize) {
        if self.ahead.is_empty() {
            // `read` meets an error again.
            self.ahead = self.read_file(max_bytes).unwrap_or_default();
        }
    }

    fn read_file(&mut self, max_bytes: usize) -> io::Result<Vec<Entry>> {
        tracing::trace!(target: TIMING, mark = "journal_reading");
        let entries = self.read_lines(max_bytes);
        tracing::trace!(target: TIMING, mark = "lines_parsed", end = self.splitter.offset());
        entries
    }

    fn read_lines(&mut self, max_bytes: usize) -> io::Result<Vec<Entry>> {
        self.watched.mark_seen();
        let mut entries = Vec::new();
        let mut buffer = [0; PIECE];
        let buffer = &mut buffer[..PIECE.min(max_bytes.max(1))];
        let mut taken = 0;
        while taken < max_bytes || entries.is_empty() {
            let read = match self.file.read_at(buffer, self.offset) {
                Ok(0) => {
                    self.end = End::Reached;
                    return Ok(entries);
                }
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if entries.is_empty() => return Err(error),
                // Returns the valid lines before the error. The next read meets the error again.
                Err(_) => break,
            };
            self.offset += read as u64;
            taken += read;
            let file = &self.file;
            self.splitter.feed(&buffer[..read], |line| entries.push(entry(file, line)));
        }
        self.end = End::NotReached;
        Ok(entries)
    }

    /// Whether the next `read` returns lines that were read ahead.
    pub fn has_read_ahead(&self) -> bool {
        !self.ahead.is_empty()
    }

    /// The current size of the journal.
    pub fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// The number of bytes that no returned line covers yet.
    pub fn waiting(&self) -> io::Result<u64> {
        let covered = self.ahead.first().map_or(self.splitter.offset(), |line| line.start);
        Ok(self.size()?.saturating_sub(covered))
    }

    /// A second reader of the same journal, after the lines that `read` has returned. Its first entry may be the rest of a line, as
    /// invalid input.
    pub fn beside(&self, dir: &RunDir, watch: &JournalWatch) -> io::Result<Self> {
        Self::open(dir, self.ahead.first().map_or(self.offset, |line| line.start), watch)
    }
}

fn entry(file: &File, line: Line<'_>) -> Entry {
    match line {
        Line::Whole { bytes, start, end } => Entry { message: parse(bytes), start, end },
        Line::Oversized { start, len, end } => Entry { message: read_again(file, start, len), start, end },
    }
}

/// Reads a line that was not buffered.
fn read_again(file: &File, start: u64, len: u64) -> Incoming {
    let range = Range { file, at: start, left: len };
    match usize::try_from(len) {
        Ok(length) if length <= MAX_LINE => {
            let mut line = vec![0; length];
            match file.read_exact_at(&mut line, start) {
                Ok(()) => parse(&line),
                Err(_) => parse_oversized(range, len),
            }
        }
        _ => parse_oversized(range, len),
    }
}

/// Reads a range of the journal without moving any offset.
struct Range<'a> {
    file: &'a File,
    at: u64,
    left: u64,
}

impl Read for Range<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.file.read_at(&mut buffer[..wanted], self.at)?;
        self.at += read as u64;
        self.left -= read as u64;
        Ok(read)
    }
}
