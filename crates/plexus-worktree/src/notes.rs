//! Notes about worktrees that may have no owner. The hub writes a note before it creates a worktree and before it
//! deletes its session, and erases it when the operation is complete. After a crash, the next hub finds the worktrees
//! to clean up by these notes.

use std::io;
use std::path::PathBuf;

use plexus_protocol::SessionId;
use plexus_protocol::worktree::Worktree;
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::error::at;
use crate::files::{missing_is_fine, private_dir, replace};

/// The operation in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The worktree was being created; its session did not exist yet.
    #[serde(rename = "making")]
    Creating,
    /// The session was being deleted.
    Deleting,
}

/// One note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The session that owns the worktree, or would have owned it.
    pub session: SessionId,
    /// The operation in progress.
    pub stage: Stage,
    /// The worktree.
    pub worktree: Worktree,
}

/// The notes, in a directory of their own.
#[derive(Debug, Clone)]
pub struct Notes {
    dir: PathBuf,
}

impl Notes {
    /// The notes in this directory, which need not exist yet.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Writes a note. On return, it survives a crash.
    pub fn write(&self, note: &Note) -> Result<()> {
        let path = self.path(note.session);
        let write = || {
            private_dir(&self.dir)?;
            replace(&path, &serde_json::to_vec(note)?)
        };
        write().map_err(at(&path))
    }

    /// Erases the note of a session, if it exists.
    pub fn erase(&self, session: SessionId) -> Result<()> {
        let path = self.path(session);
        missing_is_fine(std::fs::remove_file(&path)).map_err(at(&path))
    }

    /// All readable notes. Unreadable files are not the hub's, and are left alone.
    pub fn all(&self) -> Result<Vec<Note>> {
        let entries = match self.dir.read_dir() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(at(&self.dir))?,
        };
        let read = |path: PathBuf| serde_json::from_slice(&std::fs::read(path).ok()?).ok();
        let is_note = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json");
        Ok(entries.flatten().map(|entry| entry.path()).filter(is_note).filter_map(read).collect())
    }

    fn path(&self, session: SessionId) -> PathBuf {
        self.dir.join(format!("{session}.json"))
    }
}
