//! Reads the output of a run as it was written: whole lines of its journal or of its stderr, in pages. It interprets
//! nothing. The memory for a page is bounded, however long the lines are.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

use crate::journal_reader::MAX_LINE;
use crate::run_dir::RunDir;

/// A part of a run's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFile {
    /// The child's stdout.
    Journal,
    /// The tail of the child's and the keeper's stderr.
    Stderr,
}

/// Whether the file can still grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// The run is in progress: a last line without a newline is incomplete and is not returned.
    Expected,
    /// The run has ended: its last line is returned as it is.
    Over,
}

/// Which lines to read.
#[derive(Debug, Clone, Copy)]
pub struct OutputRange {
    /// The offset of the first line. If it is inside a line, reading starts at the next line.
    pub from: u64,
    /// The maximum number of lines.
    pub lines: usize,
    /// The size after which no further line is added.
    pub bytes: usize,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawLine {
    /// Its offset in the file.
    pub from: u64,
    /// Its length in bytes, without the newline.
    pub length: u64,
    /// Its bytes, without the newline; `None` if it is longer than [`MAX_LINE`].
    pub bytes: Option<Vec<u8>>,
}

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputPage {
    /// The lines.
    pub lines: Vec<RawLine>,
    /// The offset of the next line.
    pub next: u64,
    /// The size of the file.
    pub size: u64,
}

/// Reads lines of a run's output. Fails with `NotFound` if the file was deleted.
pub fn read_output(
    dir: &RunDir,
    which: OutputFile,
    range: OutputRange,
    growth: Growth,
) -> io::Result<OutputPage> {
    let mut file = open(&match which {
        OutputFile::Journal => dir.journal(),
        OutputFile::Stderr => dir.stderr(),
    })?;
    let size = file.metadata()?.len();
    if range.from >= size {
        return Ok(OutputPage { lines: Vec::new(), next: range.from, size });
    }
    let starts_line = range.from == 0 || {
        let mut before = [0];
        file.read_exact_at(&mut before, range.from - 1)?;
        before == *b"\n"
    };
    file.seek(SeekFrom::Start(range.from))?;
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    let mut next = range.from;
    if !starts_line {
        next += read_line(&mut reader, 0)?.taken;
    }
    let (mut lines, mut held) = (Vec::new(), 0);
    while lines.len() < range.lines && held < range.bytes {
        let ReadLine { bytes, length, taken } = read_line(&mut reader, MAX_LINE)?;
        let is_complete = taken > length;
        if taken == 0 || !is_complete && growth == Growth::Expected {
            break;
        }
        held += bytes.as_ref().map_or(0, Vec::len);
        lines.push(RawLine { from: next, length, bytes });
        next += taken;
    }
    Ok(OutputPage { lines, next, size })
}

/// Follows no symlink and waits for no FIFO: a child without a sandbox could have replaced the file.
fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("is not a file")) }
}

/// A line as it was read.
struct ReadLine {
    /// Its bytes, unless it is too long.
    bytes: Option<Vec<u8>>,
    /// Its length without the newline.
    length: u64,
    /// Its length with the newline, if it has one.
    taken: u64,
}

/// Reads to the end of the line, and keeps its bytes up to `most`.
fn read_line(reader: &mut impl BufRead, most: usize) -> io::Result<ReadLine> {
    let mut line = ReadLine { bytes: Some(Vec::new()), length: 0, taken: 0 };
    loop {
        let piece = match reader.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            piece => piece?,
        };
        let newline = piece.iter().position(|byte| *byte == b'\n');
        let content = &piece[..newline.unwrap_or(piece.len())];
        line.length += content.len() as u64;
        match &mut line.bytes {
            Some(bytes) if bytes.len() + content.len() <= most => bytes.extend_from_slice(content),
            bytes => *bytes = None,
        }
        let taken = content.len() + usize::from(newline.is_some());
        let is_over = newline.is_some() || piece.is_empty();
        line.taken += taken as u64;
        reader.consume(taken);
        if is_over {
            return Ok(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(journal: &[u8]) -> (tempfile::TempDir, RunDir) {
        let home = tempfile::tempdir().unwrap();
        let dir = RunDir::new(home.path().to_path_buf());
        std::fs::write(dir.journal(), journal).unwrap();
        (home, dir)
    }

    /// The lines of all pages from an offset on.
    fn pages(dir: &RunDir, from: u64, bytes: usize, growth: Growth) -> Vec<Vec<String>> {
        let mut range = OutputRange { from, lines: 2, bytes };
        let mut pages = Vec::new();
        loop {
            let page = read_output(dir, OutputFile::Journal, range, growth).unwrap();
            if page.lines.is_empty() {
                return pages;
            }
            let shown = |line: &RawLine| String::from_utf8(line.bytes.clone().unwrap()).unwrap();
            pages.push(page.lines.iter().map(shown).collect());
            range.from = page.next;
        }
    }

    #[test]
    fn lines_are_returned_once_and_in_order() {
        let (_home, dir) = run(b"one\ntwo\nthree\nincompl");
        assert_eq!(pages(&dir, 0, 100, Growth::Expected), [vec!["one", "two"], vec!["three"]]);
        assert_eq!(pages(&dir, 0, 100, Growth::Over), [vec!["one", "two"], vec!["three", "incompl"]]);
        assert_eq!(pages(&dir, 0, 1, Growth::Expected), [vec!["one"], vec!["two"], vec!["three"]]);
        assert_eq!(pages(&dir, 4, 100, Growth::Expected), [vec!["two", "three"]]);
        assert_eq!(pages(&dir, 5, 100, Growth::Expected), [vec!["three"]], "the rest of a line is skipped");
    }

    #[test]
    fn a_line_that_is_too_long_has_no_text_and_the_next_one_follows() {
        let mut journal = vec![b'x'; MAX_LINE + 1];
        journal.extend_from_slice(b"\nnext\n");
        let (_home, dir) = run(&journal);
        let range = OutputRange { from: 0, lines: 9, bytes: usize::MAX };
        let page = read_output(&dir, OutputFile::Journal, range, Growth::Expected).unwrap();
        let (length, next) = (MAX_LINE as u64 + 1, MAX_LINE as u64 + 2);
        assert_eq!(
            page.lines,
            [
                RawLine { from: 0, length, bytes: None },
                RawLine { from: next, length: 4, bytes: Some(b"next".to_vec()) }
            ]
        );
        assert_eq!(page.next, page.size);
    }

    #[test]
    fn an_offset_beyond_the_end_returns_nothing() {
        let (_home, dir) = run(b"one\n");
        let range = OutputRange { from: u64::MAX, lines: 1, bytes: 10 };
        let page = read_output(&dir, OutputFile::Journal, range, Growth::Over).unwrap();
        assert_eq!((page.lines.len(), page.next, page.size), (0, u64::MAX, 4));
    }

    #[test]
    fn a_symlink_or_a_fifo_is_not_read() {
        let (_home, dir) = run(b"secret\n");
        let range = OutputRange { from: 0, lines: 1, bytes: 10 };
        std::os::unix::fs::symlink(dir.journal(), dir.stderr()).unwrap();
        assert!(read_output(&dir, OutputFile::Stderr, range, Growth::Over).is_err());
        std::fs::remove_file(dir.stderr()).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, dir.stderr(), rustix::fs::Mode::RUSR).unwrap();
        assert!(read_output(&dir, OutputFile::Stderr, range, Growth::Over).is_err());
    }
}
