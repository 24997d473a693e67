//! Resolves the links in the path of a directory, and finds the repository that contains it.

use std::path::{Path, PathBuf};

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
    /// A directory.
    Directory {
        /// Its path without links.
        path: String,
        /// The root of the git repository or worktree that contains it.
        repository: Option<String>,
    },
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
                Ok(path) => Resolved::Directory { repository: repository(&path), path },
                Err(_) => Resolved::NotUtf8,
            },
        };
        (resolved, Output::default())
    }
}

/// The nearest directory with an entry `.git`. Nothing in it is read: the result is only shown.
fn repository(path: &str) -> Option<String> {
    let root = Path::new(path).ancestors().find(|dir| dir.join(".git").symlink_metadata().is_ok())?;
    root.to_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_directory_with_a_git_entry_is_the_repository() {
        let dir = tempfile::TempDir::new().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let deep = root.join("app/src/deep");
        std::fs::create_dir_all(&deep).unwrap();
        let found = |path: &Path| repository(path.to_str().unwrap()).map(PathBuf::from);
        let outside = found(&deep);
        std::fs::create_dir(root.join("app/.git")).unwrap();
        assert_eq!(found(&deep), Some(root.join("app")));
        assert_eq!(found(&root.join("app")), Some(root.join("app")));
        std::fs::write(deep.join(".git"), "gitdir: elsewhere").unwrap();
        assert_eq!(found(&deep), Some(deep.clone()), "a linked worktree");
        assert_eq!(found(&root), outside);
    }
}
