//! Resolves the links in the path of a directory.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::request::{Input, Kind, Output, Request, Verb};

/// Resolves the path of a directory.
#[derive(Debug, Serialize, Deserialize)]
pub struct ResolveDir {
    /// An absolute path.
    pub path: PathBuf,
}

/// The target of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolved {
    /// A directory, with its path without links.
    Directory(String),
    /// A directory whose path is not UTF-8.
    NotUtf8,
    /// Not a directory.
    NotADirectory,
    /// The path cannot be resolved, with the reason.
    Nothing(String),
}

impl From<ResolveDir> for Request {
    fn from(verb: ResolveDir) -> Self {
        Self::ResolveDir(verb)
    }
}

impl Verb for ResolveDir {
    type Answer = Resolved;

    const KIND: Kind = Kind::Read;
    const MAX_BODY: u64 = 0;

    fn perform(self, _input: Input) -> (Self::Answer, Output) {
        let resolved = match self.path.canonicalize() {
            Err(error) => Resolved::Nothing(error.to_string()),
            Ok(real) if !real.is_dir() => Resolved::NotADirectory,
            Ok(real) => match real.into_os_string().into_string() {
                Ok(real) => Resolved::Directory(real),
                Err(_) => Resolved::NotUtf8,
            },
        };
        (resolved, Output::default())
    }
}
