//! Notes about updates of branches in progress. The hub writes a note before an update starts, and erases it when the
//! outcome is known. After a crash, the next hub finds the interrupted updates by these notes.

use std::path::PathBuf;

use plexus_protocol::SessionId;
use serde::{Deserialize, Serialize};

use crate::error::at;
use crate::files::{missing_is_fine, private_dir, replace};
use crate::{BranchUpdate, Result};

/// One note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateNote {
    /// The session.
    pub session: SessionId,
    /// What the update is part of: `commit` or `merge`.
    pub act: String,
    /// The update.
    pub update: BranchUpdate,
}

/// The notes, in a directory of their own.
#[derive(Debug, Clone)]
pub struct UpdateNotes {
    dir: PathBuf,
}

impl UpdateNotes {
    /// The notes in this directory, which need not exist yet.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Writes a note. On return, it survives a crash.
    pub fn write(&self, note: &UpdateNote) -> Result<()> {
        let path = self.path(note.session);
        let write = || {
            private_dir(&self.dir)?;
            replace(&path, &serde_json::to_vec(note)?)
        };
        write().map_err(at(&path))
    }

    /// The note of a session, if it has one.
    pub fn of(&self, session: SessionId) -> Option<UpdateNote> {
        serde_json::from_slice(&std::fs::read(self.path(session)).ok()?).ok()
    }

    /// Erases the note of a session, if it exists.
    pub fn erase(&self, session: SessionId) -> Result<()> {
        let path = self.path(session);
        missing_is_fine(std::fs::remove_file(&path)).map_err(at(&path))
    }

    /// The sessions with a note.
    pub fn sessions(&self) -> Vec<SessionId> {
        let entries = self.dir.read_dir().into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".json")?.parse().ok()).collect()
    }

    fn path(&self, session: SessionId) -> PathBuf {
        self.dir.join(format!("{session}.json"))
    }
}
