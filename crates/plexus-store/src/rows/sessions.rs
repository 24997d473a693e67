//! The rows of sessions and their runs.

use plexus_protocol::{AskedOf, HostName, NodeId, SessionId, SessionName, UnixSeconds};
use serde_json::Value;

use super::Stored;
use crate::{RunKey, RunProcess, RunRow, RunState, SessionConfig, SessionRow};

/// Sessions and runs.
pub(crate) trait SessionRows {
    /// One session, deleted or not.
    fn session(&self, id: SessionId) -> Stored<Option<SessionRow>>;
    /// The sessions of this name that are not deleted, in no particular order.
    fn sessions_named(&self, name: &str) -> Stored<Vec<SessionRow>>;
    /// The identity of one session, deleted or not. Unlike [`Self::session`] it reads no configuration.
    fn session_identity(&self, id: SessionId) -> Stored<Option<SessionIdentity>>;
    /// Inserts a session.
    fn insert_session(&mut self, row: &SessionRow) -> Stored<()>;
    /// Updates a session, if it exists.
    fn update_session(&mut self, id: SessionId, update: SessionUpdate<'_>) -> Stored<()>;

    /// One run.
    fn run(&self, key: RunKey) -> Stored<Option<RunRow>>;
    /// Whether the session has a run in another state than `Ended`.
    fn has_open_run(&self, session: SessionId) -> Stored<bool>;
    /// Inserts a run.
    fn insert_run(&mut self, run: &NewRun<'_>) -> Stored<()>;
    /// Updates a run; returns whether it exists.
    fn update_run(&mut self, key: RunKey, update: RunUpdate<'_>) -> Stored<bool>;
    /// Marks the files of a run as removed; returns whether they were still marked as kept.
    fn mark_files_removed(&mut self, key: RunKey) -> Stored<bool>;
}

/// The columns that identify a session. Only its name can change.
#[derive(Debug, Clone)]
pub(crate) struct SessionIdentity {
    pub(crate) name: SessionName,
    pub(crate) answers_to: AskedOf,
    pub(crate) host: Option<HostName>,
}

/// New values for some columns of a session.
pub(crate) enum SessionUpdate<'a> {
    Name(&'a SessionName),
    Config(&'a SessionConfig),
    Deleted { at: UnixSeconds, config: &'a SessionConfig },
    LatestRun(u32),
    LatestTurn { turn: u64, woken_to: u64 },
    Head(NodeId),
    CostUsd(f64),
    Title(&'a str),
    ArchivedAt(Option<UnixSeconds>),
}

/// A run to be inserted.
pub(crate) struct NewRun<'a> {
    pub(crate) key: RunKey,
    pub(crate) state: RunState,
    pub(crate) token_hash: Option<&'a str>,
    pub(crate) created_at: UnixSeconds,
}

/// New values for some columns of a run.
pub(crate) enum RunUpdate<'a> {
    Process {
        process: Option<&'a RunProcess>,
        state: RunState,
    },
    State(RunState),
    JournalOffset(u64),
    /// The state becomes `Ended` and the token hash is deleted.
    Ended {
        at: UnixSeconds,
        exit: &'a Value,
    },
}
