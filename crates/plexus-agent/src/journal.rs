//! The hub's end of the journal: what the child wrote, line by line, each with the offset it was read at.
//! The offset is the hub's only memory of how far it is, so reading can begin again at any line; what a line
//! means is `plexus-claude`'s.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use plexus_claude::{Incoming, Line, LineSplitter, parse, parse_oversized};

use crate::run_dir::RunDir;
use crate::watch::{JournalWatch, Watched};

/// Longer lines are never in memory: they stay a range of the journal.
pub const MAX_LINE: usize = 8 * 1024 * 1024;

/// How much of an unfinished line is held; a longer one is read again once it is whole. A thousand children may each
/// have stopped in the middle of one.
const HELD: usize = 16 * 1024;

const PIECE: usize = 64 * 1024;

/// One line of a journal.
#[derive(Debug)]
pub struct Entry {
    /// What it says.
    pub message: Incoming,
    /// Where it starts.
    pub start: u64,
    /// Where the next one starts: what to open the journal at to go on after this one.
    pub end: u64,
}

/// A journal, being read.
#[derive(Debug)]
pub struct Journal {
    file: File,
    /// What has been read of the file; the last part of it may be half a line, held by the splitter.
    offset: u64,
    splitter: LineSplitter,
    watched: Watched,
    end: End,
}

/// What is known of the file's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// There may be more to read right now.
    NotReached,
    /// The last read came to it; from there on the watch reports growth.
    Reached,
}

impl Journal {
    /// Opens a run's journal to read from `offset` on, which is 0 or the end of a line.
    pub fn open(dir: &RunDir, offset: u64, watch: &JournalWatch) -> io::Result<Self> {
        let path = dir.journal();
        let file = File::open(&path)?;
        let watched = watch.add(&path);
        Ok(Self { file, offset, splitter: LineSplitter::new(offset, HELD), watched, end: End::NotReached })
    }

    /// Returns when there may be more to read: at once, until a `read` has come to the end. Cancel safe; it
    /// never misses growth, whenever that came.
    pub async fn changed(&mut self) {
        if self.end == End::Reached {
            self.watched.grown().await;
            // Until the next read has looked, whatever becomes of this call.
            self.end = End::NotReached;
        }
    }

    /// The whole lines that are there now, up to about `max_bytes` of them and always at least one; empty
    /// at the present end. Half a line waits for its other half.
    pub fn read(&mut self, max_bytes: usize) -> io::Result<Vec<Entry>> {
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
                // The lines before it are good; the next read meets the error again.
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

    /// Its size now.
    pub fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// How many bytes are there that no line was made of yet.
    pub fn waiting(&self) -> io::Result<u64> {
        Ok(self.size()?.saturating_sub(self.splitter.offset()))
    }

    /// A second reader of the same journal, from here on. It may begin with the rest of a line, as rubbish.
    pub fn beside(&self, dir: &RunDir, watch: &JournalWatch) -> io::Result<Self> {
        Self::open(dir, self.offset, watch)
    }

    /// Reads again from `offset` on, which is 0 or the end of a line: for a batch that could not be stored.
    pub fn rewind(&mut self, offset: u64) {
        self.offset = offset;
        self.splitter = LineSplitter::new(offset, HELD);
        self.end = End::NotReached;
    }
}

fn entry(file: &File, line: Line<'_>) -> Entry {
    match line {
        Line::Whole { bytes, start, end } => Entry { message: parse(bytes), start, end },
        Line::Oversized { start, len, end } => Entry { message: read_again(file, start, len), start, end },
    }
}

/// A line that was not held.
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

/// Reads a part of the journal, without moving anything.
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
