//! Finds the project files that words of a command line name, and hashes them.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::read_file::{FileError, open_regular};
use crate::request::{Input, Kind, Output, Request, Verb};

/// The largest file to hash, in bytes.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// The maximum number of words to check.
const MAX_WORDS: usize = 10_000;

/// Finds the project files that words name.
#[derive(Debug, Serialize, Deserialize)]
pub struct NamedFiles {
    /// The working directory of a session, without links in its path.
    pub dir: PathBuf,
    /// Words of command lines, or paths in the project.
    pub words: Vec<String>,
}

/// A file of the project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedFile {
    /// Its path in the project, without links.
    pub path: String,
    /// The SHA-256 of its content, in hex.
    pub sha256: String,
}

impl From<NamedFiles> for Request {
    fn from(verb: NamedFiles) -> Self {
        Self::NamedFiles(verb)
    }
}

impl Verb for NamedFiles {
    /// For each word, the file that it names, if any; an error if that file cannot be read.
    type Answer = Vec<Result<Option<NamedFile>, FileError>>;

    const KIND: Kind = Kind::Read;
    const MAX_BODY: u64 = 0;

    fn perform(self, _input: Input) -> (Self::Answer, Output) {
        let too_many = self.words.len() > MAX_WORDS;
        let find = |word: &String| match too_many {
            true => Err(FileError::Io("the command lines have too many words".to_owned())),
            false => named(&self.dir, word),
        };
        (self.words.iter().map(find).collect(), Output::default())
    }
}

fn named(dir: &Path, word: &str) -> Result<Option<NamedFile>, FileError> {
    let Ok(real) = dir.join(word).canonicalize() else { return Ok(None) };
    let Ok(path) = real.strip_prefix(dir) else { return Ok(None) };
    match path.to_str() {
        Some(path) if real.is_file() => Ok(Some(NamedFile { path: path.to_owned(), sha256: hash(&real)? })),
        _ => Ok(None),
    }
}

fn hash(path: &Path) -> Result<String, FileError> {
    let mut file = open_regular(path)?.take(MAX_FILE_BYTES + 1);
    let (mut hash, mut piece, mut size) = (Sha256::new(), [0; 64 * 1024], 0);
    loop {
        match file.read(&mut piece)? {
            0 => break,
            read => {
                hash.update(&piece[..read]);
                size += read as u64;
            }
        }
    }
    if size > MAX_FILE_BYTES {
        return Err(FileError::Io("the file is too large".to_owned()));
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_project_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("work");
        std::fs::create_dir_all(root.join("in")).unwrap();
        std::fs::write(root.join("in/tool"), "x").unwrap();
        std::fs::write(root.with_file_name("outside"), "x").unwrap();
        std::os::unix::fs::symlink("in/tool", root.join("link")).unwrap();
        let sha256 = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881".to_owned();
        for word in ["in/tool", "link", "in/../in/tool"] {
            let file = NamedFile { path: "in/tool".to_owned(), sha256: sha256.clone() };
            assert_eq!(named(&root, word), Ok(Some(file)), "{word}");
        }
        for word in ["../outside", "--flag", "in", "/bin/sh", ""] {
            assert_eq!(named(&root, word), Ok(None), "{word}");
        }
    }
}
