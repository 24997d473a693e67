//! Notes of worktrees that may have no owner: written before one is made and before its session is deleted, erased
//! when that has been seen through. A hub that was killed in between finds by them what is its own to remove.

use std::io;
use std::path::PathBuf;

use plexus_protocol::SessionId;
use plexus_protocol::worktree::Worktree;
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::error::at;
use crate::files::{missing_is_fine, private_dir, replace};

/// What was going on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// It was being made; its session was not there yet.
    Making,
    /// Its session was being deleted.
    Deleting,
}

/// One note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Whose it is, or would have been.
    pub session: SessionId,
    /// What was going on.
    pub stage: Stage,
    /// What it is.
    pub worktree: Worktree,
}

/// The notes, in a directory of their own.
#[derive(Debug, Clone)]
pub struct Notes {
    dir: PathBuf,
}

impl Notes {
    /// The notes in this directory, which need not be there yet.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Writes a note; it survives a crash from here on.
    pub fn write(&self, note: &Note) -> Result<()> {
        let path = self.path(note.session);
        let write = || {
            private_dir(&self.dir)?;
            replace(&path, &serde_json::to_vec(note)?)
        };
        write().map_err(at(&path))
    }

    /// Erases the note of a session, if there is one.
    pub fn erase(&self, session: SessionId) -> Result<()> {
        let path = self.path(session);
        missing_is_fine(std::fs::remove_file(&path)).map_err(at(&path))
    }

    /// All that can be read; one that cannot is somebody else's, and left alone.
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
