//! Appends a line to a file that the operator configured. The file may be in a directory that agents can write.

use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::read_file::FileError;
use crate::request::{Input, Kind, Output, Request, Verb};

/// Appends a line to a file. Creates the file if it is missing.
#[derive(Debug, Serialize, Deserialize)]
pub struct AppendLine {
    /// An absolute path.
    pub path: PathBuf,
    /// The line, without its line break.
    pub line: String,
}

impl From<AppendLine> for Request {
    fn from(verb: AppendLine) -> Self {
        Self::AppendLine(verb)
    }
}

impl Verb for AppendLine {
    /// On success, the line is on disk.
    type Answer = Result<(), FileError>;

    const KIND: Kind = Kind::Read;
    const MAX_BODY: u64 = 0;

    fn perform(self, _input: Input) -> (Self::Answer, Output) {
        (append(&self.path, &self.line), Output::default())
    }
}

fn append(path: &Path, line: &str) -> Result<(), FileError> {
    if !path.is_absolute() {
        return Err(FileError::Relative);
    }
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.read(true).append(true).create(true).mode(0o600).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(FileError::NotRegular);
    }
    // An incomplete last line, for example after a full disk, must not corrupt this line.
    let mut last = [b'\n'];
    if metadata.len() > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    let separator = if last == [b'\n'] { "" } else { "\n" };
    file.write_all(format!("{separator}{line}\n").as_bytes())?;
    Ok(file.sync_data()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_line_does_not_corrupt_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("heads");
        append(&file, "one").unwrap();
        append(&file, "two").unwrap();
        std::fs::write(&file, "one\ntw").unwrap();
        append(&file, "two").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "one\ntw\ntwo\n");
        assert_eq!(append(dir.path(), "x"), Err(FileError::NotRegular));
    }
}
