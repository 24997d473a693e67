//! Copies the child's stdout to the journal and its stderr to a short log.
//!
//! The journal receives the bytes as they arrive. A line may be 64 MB long, and buffering it until it is complete would
//! take that much memory for each child. Readers of the journal consume only complete lines, so they never see a
//! partial one. No byte is lost or duplicated: data that a full disk rejects stays in the buffer, and the keeper stops
//! reading from the child until space is available.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::{Errno, read};

const PIECE: usize = 64 * 1024;
/// Pieces to copy per call, before other streams get their turn.
const PIECES_AT_ONCE: usize = 16;
/// The log may grow to twice this size before its older half is dropped.
const LOG_KEPT: u64 = 512 * 1024;

/// The pause after the first failed write. It doubles with each further failure, up to the longest pause.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(5);

pub(super) fn longer(pause: Duration) -> Duration {
    (pause * 2).min(MAX_PAUSE)
}

/// The state of a stream after a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    /// More data may be available now.
    More,
    /// Data from it could not be written yet.
    Held,
    /// No data is available at the moment.
    Empty,
    /// The stream has ended.
    Ended,
}

impl Stream {
    pub(super) fn is_unfinished(self) -> bool {
        matches!(self, Self::More | Self::Held)
    }
}

/// Copies a stream to an append-only file.
pub(super) struct Mover<F> {
    source: Option<OwnedFd>,
    file: F,
    buffer: Box<[u8]>,
    /// The part of the buffer that is not written yet.
    held: std::ops::Range<usize>,
    retry: Option<Retry>,
}

struct Retry {
    at: Instant,
    pause: Duration,
}

impl<F: Write> Mover<F> {
    /// Creates a mover for a nonblocking source, or for none.
    pub(super) fn new(source: Option<OwnedFd>, file: F) -> Self {
        Self { source, file, buffer: vec![0; PIECE].into(), held: 0..0, retry: None }
    }

    /// The destination.
    pub(super) fn file_mut(&mut self) -> &mut F {
        &mut self.file
    }

    /// The descriptor to poll before the next call; `None` while the file accepts no data.
    pub(super) fn source_fd(&self) -> Option<BorrowedFd<'_>> {
        if self.retry.is_some() { None } else { self.source.as_ref().map(AsFd::as_fd) }
    }

    /// When to try the file again after a failed write.
    pub(super) fn retry_at(&self) -> Option<Instant> {
        self.retry.as_ref().map(|retry| retry.at)
    }

    /// Copies the available data without blocking.
    pub(super) fn copy_available(&mut self) -> Stream {
        for _ in 0..PIECES_AT_ONCE {
            if self.retry_at().is_some_and(|at| Instant::now() < at) || !self.write_held() {
                return Stream::Held;
            }
            match receive(&mut self.source, &mut self.buffer) {
                Ok(read) => self.held = 0..read,
                Err(stream) => return stream,
            }
        }
        if self.write_held() { Stream::More } else { Stream::Held }
    }

    /// Continues at the byte where the last write stopped.
    fn write_held(&mut self) -> bool {
        while !self.held.is_empty() {
            match self.file.write(&self.buffer[self.held.clone()]) {
                Ok(written) if written > 0 => {
                    self.held.start += written;
                    self.retry = None;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => {
                    let pause = self.retry.as_ref().map_or(FIRST_PAUSE, |retry| longer(retry.pause));
                    self.retry = Some(Retry { at: Instant::now() + pause, pause });
                    return false;
                }
            }
        }
        true
    }
}

/// Keeps the tail of a stream in a file. It never blocks the child: data that cannot be written is dropped.
pub(super) struct StderrLog {
    source: Option<OwnedFd>,
    file: File,
}

impl StderrLog {
    pub(super) fn new(source: OwnedFd, file: File) -> Self {
        Self { source: Some(source), file }
    }

    pub(super) fn source_fd(&self) -> Option<BorrowedFd<'_>> {
        self.source.as_ref().map(AsFd::as_fd)
    }

    /// Copies the available data without blocking.
    pub(super) fn copy_available(&mut self) -> Stream {
        let mut buffer = [0; PIECE];
        for _ in 0..PIECES_AT_ONCE {
            match receive(&mut self.source, &mut buffer) {
                Ok(read) => {
                    let _ = self.file.write_all(&buffer[..read]).and_then(|()| self.shorten());
                }
                Err(stream) => return stream,
            }
        }
        Stream::More
    }

    /// Shortens the file in place, because the keeper's own stderr is open on the same file.
    fn shorten(&mut self) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        if length <= 2 * LOG_KEPT {
            return Ok(());
        }
        self.file.seek(SeekFrom::Start(length - LOG_KEPT))?;
        let mut kept = Vec::new();
        (&self.file).take(LOG_KEPT).read_to_end(&mut kept)?;
        let whole_lines = kept.iter().position(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
        self.file.set_len(0)?;
        self.file.write_all(&kept[whole_lines..])
    }
}

/// Reads the available data without blocking, and drops a source that has ended.
fn receive(source: &mut Option<OwnedFd>, buffer: &mut [u8]) -> Result<usize, Stream> {
    loop {
        let Some(open) = source else { return Err(Stream::Ended) };
        match read(open, &mut *buffer) {
            Ok(0) => *source = None,
            Ok(read) => return Ok(read),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Err(Stream::Empty),
            Err(_) => *source = None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    /// A disk that accepts `room` bytes, a few at a time, and is full afterwards.
    struct Disk {
        taken: Vec<u8>,
        room: usize,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.room == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let taken = bytes.len().min(self.room).min(7);
            self.taken.extend_from_slice(&bytes[..taken]);
            self.room -= taken;
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_neither_loses_nor_duplicates_output() {
        let (ours, mut child) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut mover = Mover::new(Some(ours.into()), Disk { taken: Vec::new(), room: 10 });
        child.write_all(b"0123456789abcdef\n").unwrap();
        assert_eq!(mover.copy_available(), Stream::Held);
        assert_eq!(mover.file.taken, b"0123456789");
        assert!(mover.source_fd().is_none(), "the child is not read from while nothing can be written");
        let first = mover.retry.as_ref().unwrap().pause;

        mover.retry.as_mut().unwrap().at = Instant::now();
        assert_eq!(mover.copy_available(), Stream::Held);
        assert!(mover.retry.as_ref().unwrap().pause > first, "the pauses grow");

        mover.file.room = 1000;
        mover.retry.as_mut().unwrap().at = Instant::now();
        drop(child);
        while mover.copy_available() != Stream::Ended {}
        assert_eq!(mover.file.taken, b"0123456789abcdef\n");
    }

    #[test]
    fn the_log_keeps_its_tail() {
        let (ours, mut child) = UnixStream::pair().unwrap();
        let path = tempfile::NamedTempFile::new().unwrap();
        let file = File::options().read(true).append(true).open(path.path()).unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut log = StderrLog::new(ours.into(), file);
        for number in 0..40_000 {
            // Written and read alternately, so that the socket is never full.
            child.write_all(format!("line {number} {}\n", "x".repeat(80)).as_bytes()).unwrap();
            log.copy_available();
        }
        drop(child);
        while log.copy_available() != Stream::Ended {}
        let kept = std::fs::read_to_string(path.path()).unwrap();
        assert!(kept.len() as u64 <= 2 * LOG_KEPT);
        assert!(kept.starts_with("line "), "it starts with a whole line");
        assert!(kept.lines().last().unwrap().starts_with("line 39999 "));
    }
}
