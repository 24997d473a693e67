//! From the child's stdout to the journal, and from its stderr to a short log.
//!
//! The journal gets the bytes as they come: a line may be 64 MB long, and holding it back until it is whole
//! would take that much memory for each child. Whoever reads the journal takes whole lines only, so nobody
//! ever sees half of one. Not a byte is lost or doubled: what a full disk does not take is held, and the
//! child is not read from until there is room.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::{Errno, read};

const PIECE: usize = 64 * 1024;
/// Pieces in one go, before the other streams have their turn.
const PIECES_AT_ONCE: usize = 16;
/// The log may grow to twice this before its older half is dropped.
const LOG_KEPT: u64 = 512 * 1024;

/// The pause after a first failed write; each further one is twice as long, up to the longest.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

pub(super) fn longer(pause: Duration) -> Duration {
    (pause * 2).min(LONGEST_PAUSE)
}

/// Where a stream stands after a go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    /// There may be more right now.
    More,
    /// What came from it could not be written yet.
    Held,
    /// Nothing for the moment.
    Empty,
    /// Nothing ever again.
    Ended,
}

impl Stream {
    pub(super) fn more_to_come(self) -> bool {
        matches!(self, Self::More | Self::Held)
    }
}

/// Moves a stream into an append-only file.
pub(super) struct Mover<F> {
    source: Option<OwnedFd>,
    file: F,
    buffer: Box<[u8]>,
    /// The part of the buffer that the file has not taken yet.
    held: std::ops::Range<usize>,
    retry: Option<Retry>,
}

struct Retry {
    at: Instant,
    pause: Duration,
}

impl<F: Write> Mover<F> {
    /// Of a source from which reading never waits, or of none.
    pub(super) fn new(source: Option<OwnedFd>, file: F) -> Self {
        Self { source, file, buffer: vec![0; PIECE].into(), held: 0..0, retry: None }
    }

    /// Where it goes.
    pub(super) fn file_mut(&mut self) -> &mut F {
        &mut self.file
    }

    /// What to wait for before the next go; nothing while the file takes no more.
    pub(super) fn readable_end(&self) -> Option<BorrowedFd<'_>> {
        if self.retry.is_some() { None } else { self.source.as_ref().map(AsFd::as_fd) }
    }

    /// When the file is tried again, if it took no more.
    pub(super) fn retry_at(&self) -> Option<Instant> {
        self.retry.as_ref().map(|retry| retry.at)
    }

    /// Moves what there is, without waiting.
    pub(super) fn move_on(&mut self) -> Stream {
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

    /// Writes on at the very byte where the last write stopped.
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

/// Keeps the last part of a stream in a file. It never holds the child up: what cannot be written is gone.
pub(super) struct StderrLog {
    source: Option<OwnedFd>,
    file: File,
}

impl StderrLog {
    pub(super) fn new(source: OwnedFd, file: File) -> Self {
        Self { source: Some(source), file }
    }

    pub(super) fn readable_end(&self) -> Option<BorrowedFd<'_>> {
        self.source.as_ref().map(AsFd::as_fd)
    }

    /// Moves what there is, without waiting.
    pub(super) fn move_on(&mut self) -> Stream {
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

    /// In place, since the keeper's own stderr is open on the same file.
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

/// Takes what is there, without waiting; forgets a source that has come to its end.
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

    /// A disk that takes `room` bytes, a few at a time, and then is full.
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
    fn a_full_disk_loses_and_doubles_nothing() {
        let (ours, mut child) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut mover = Mover::new(Some(ours.into()), Disk { taken: Vec::new(), room: 10 });
        child.write_all(b"0123456789abcdef\n").unwrap();
        assert_eq!(mover.move_on(), Stream::Held);
        assert_eq!(mover.file.taken, b"0123456789");
        assert!(mover.readable_end().is_none(), "the child is not read from while nothing can be written");
        let first = mover.retry.as_ref().unwrap().pause;

        mover.retry.as_mut().unwrap().at = Instant::now();
        assert_eq!(mover.move_on(), Stream::Held);
        assert!(mover.retry.as_ref().unwrap().pause > first, "the pauses grow");

        mover.file.room = 1000;
        mover.retry.as_mut().unwrap().at = Instant::now();
        drop(child);
        while mover.move_on() != Stream::Ended {}
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
            // In one write and read at once, so that the socket is never full.
            child.write_all(format!("line {number} {}\n", "x".repeat(80)).as_bytes()).unwrap();
            log.move_on();
        }
        drop(child);
        while log.move_on() != Stream::Ended {}
        let kept = std::fs::read_to_string(path.path()).unwrap();
        assert!(kept.len() as u64 <= 2 * LOG_KEPT);
        assert!(kept.starts_with("line "), "it starts with a whole line");
        assert!(kept.lines().last().unwrap().starts_with("line 39999 "));
    }
}
