//! What a helper process can be asked: one [`Verb`], one file below `verbs`. A verb has an answer of its own type, and may
//! take and return a body of raw bytes beside it.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::verbs::read_file::ReadFile;

/// One kind of file work.
pub trait Verb: Into<Request> {
    /// What comes of it. Errors of the work itself are part of it.
    type Answer: Serialize + DeserializeOwned;

    /// How much it may use.
    const KIND: Kind;
    /// The largest body that the hub accepts as part of the answer, in bytes.
    const MAX_BODY: u64;

    /// Performs it, in the helper process.
    fn perform(self, input: Input) -> (Self::Answer, Output);
}

/// How much time and memory a verb may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Reads a few files.
    Read,
    /// Compares a whole worktree.
    Look,
    /// Creates or deletes a worktree.
    Make,
}

impl Kind {
    /// The hub kills the helper after this time.
    pub(crate) fn within(self) -> Duration {
        Duration::from_secs(match self {
            Self::Read => 10,
            Self::Look => 30,
            Self::Make => 600,
        })
    }

    /// How much memory the helper may allocate, in bytes. A checkout holds whole files of the repository.
    pub(crate) fn memory(self) -> u64 {
        const MIB: u64 = 1024 * 1024;
        match self {
            Self::Read => 256 * MIB,
            Self::Look => 1024 * MIB,
            Self::Make => 4096 * MIB,
        }
    }
}

/// The verbs, as they are sent to a helper process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "snake_case")]
pub enum Request {
    /// See [`ReadFile`].
    ReadFile(ReadFile),
}

impl Request {
    /// Performs the verb and encodes its answer.
    pub(crate) fn perform(self, input: Input) -> io::Result<(Vec<u8>, Output)> {
        match self {
            Self::ReadFile(verb) => encoded(verb, input),
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::ReadFile(_) => ReadFile::KIND,
        }
    }
}

fn encoded<V: Verb>(verb: V, input: Input) -> io::Result<(Vec<u8>, Output)> {
    let (answer, output) = verb.perform(input);
    Ok((serde_json::to_vec(&answer)?, output))
}

/// The body that came with a request: a file that has no name in any directory.
#[derive(Debug, Default)]
pub struct Input(pub(crate) Option<PathBuf>);

impl Input {
    /// A path to open it by, if there is one.
    pub fn path(&self) -> Option<&Path> {
        self.0.as_deref()
    }
}

/// The body that goes with an answer.
#[derive(Default)]
pub struct Output {
    pub(crate) content: Option<Box<dyn Read>>,
    pub(crate) length: u64,
}

impl Output {
    /// `length` bytes from a reader.
    pub fn new(content: impl Read + 'static, length: u64) -> Self {
        Self { content: Some(Box::new(content)), length }
    }
}

impl From<Vec<u8>> for Output {
    fn from(content: Vec<u8>) -> Self {
        let length = content.len() as u64;
        Self::new(io::Cursor::new(content), length)
    }
}
