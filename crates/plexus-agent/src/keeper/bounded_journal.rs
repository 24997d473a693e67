//! The journal as the keeper writes it. It grows up to a maximum size, and only while the disk has more free space than
//! the reserve for the hub's decisions. Beyond either limit, writes fail as on a full disk, and the keeper stops
//! reading from the child.

use std::fs::File;
use std::io::{self, Write};

use crate::disk::free_bytes;
use crate::timing::TIMING;

/// A file with a maximum size.
pub(super) struct Bounded {
    file: File,
    /// How many bytes may still be written.
    left: u64,
    /// The free disk space to leave.
    reserve: u64,
}

impl Bounded {
    /// Appends to `file` up to a size of `most` bytes, and only while more than `reserve` bytes are free.
    pub(super) fn new(file: File, most: u64, reserve: u64) -> io::Result<Self> {
        let left = most.saturating_sub(file.metadata()?.len());
        Ok(Self { file, left, reserve })
    }

    /// Lets the child's last output use the reserve, because it is small.
    pub(super) fn use_reserve(&mut self) {
        self.reserve = 0;
    }
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let fits = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
        let low = self.reserve > 0 && free_bytes(&self.file).is_ok_and(|free| free < self.reserve);
        if fits == 0 || low {
            return Err(io::ErrorKind::StorageFull.into());
        }
        tracing::trace!(target: TIMING, mark = "journal_writing", end = self.file.metadata()?.len() + fits as u64);
        let written = self.file.write(&bytes[..fits])?;
        self.left -= written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> File {
        tempfile::tempfile().unwrap()
    }

    #[test]
    fn a_bounded_file_never_exceeds_its_size() {
        let mut written = file();
        written.write_all(b"before").unwrap();
        let mut bounded = Bounded::new(written, 10, 0).unwrap();
        assert_eq!(bounded.write(b"0123456789").unwrap(), 4);
        assert_eq!(bounded.write(b"456789").unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(bounded.file.metadata().unwrap().len(), 10);
    }

    #[test]
    fn the_reserve_is_used_only_for_the_last_output() {
        let mut bounded = Bounded::new(file(), u64::MAX, u64::MAX).unwrap();
        assert_eq!(bounded.write(b"a line\n").unwrap_err().kind(), io::ErrorKind::StorageFull);
        bounded.use_reserve();
        assert_eq!(bounded.write(b"a line\n").unwrap(), 7);
    }
}
