//! Old rows that can be removed.

use plexus_protocol::{ApprovalId, SessionId, TreeId, UnixSeconds};

use super::RunKey;

/// An ended run that still has files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinishedRun {
    /// The run.
    pub key: RunKey,
    /// When it ended.
    pub ended_at: UnixSeconds,
    /// When its session was deleted, if it was.
    pub session_deleted_at: Option<UnixSeconds>,
}

/// A kind of old rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldRecords {
    /// Events of ended turns.
    Events,
    /// Resolved approvals of ended runs.
    Approvals,
    /// Calls of ended runs.
    Calls,
}

/// Something to remove. The rows of open runs, pending approvals and running turns are never removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removable {
    /// The events of an ended turn, some with each step. The latest turn of a session keeps them until the session is deleted.
    Events {
        /// The session.
        session: SessionId,
        /// The turn.
        turn: u64,
    },
    /// A resolved approval of an ended run.
    Approval(ApprovalId),
    /// A call of an ended run, by its ordinal.
    Call(u64),
    /// Marks that the files of an ended run were removed.
    RunFiles(RunKey),
    /// The nodes of a conversation tree without sessions, some with each step. The root stays.
    Tree(TreeId),
}
