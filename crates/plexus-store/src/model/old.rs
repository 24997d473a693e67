//! What has grown old, and what of it may be removed.

use plexus_protocol::{ApprovalId, SessionId, TreeId, UnixSeconds};

use super::RunKey;

/// A run that is over and whose files have not been removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinishedRun {
    /// Which.
    pub key: RunKey,
    /// When it ended.
    pub ended_at: UnixSeconds,
    /// When its session was deleted, if it was.
    pub session_deleted_at: Option<UnixSeconds>,
}

/// What sort of record has grown old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldRecords {
    /// Events of turns that are over.
    Events,
    /// Approvals that came to their end, in runs that are over.
    Approvals,
    /// Calls that the gate saw, in runs that are over.
    Calls,
}

/// Something that can be removed. Nothing of a living run, an open approval or a turn in progress ever is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removable {
    /// The events of a turn that is over and not the latest of a living session: some of them with each step.
    Events {
        /// The session.
        session: SessionId,
        /// The turn.
        turn: u64,
    },
    /// An approval that came to its end, in a run that is over.
    Approval(ApprovalId),
    /// A call that the gate saw in a run that is over, by its place in the record.
    Call(u64),
    /// The files of a run that is over, which have been removed.
    RunFiles(RunKey),
    /// A conversation tree in which no living session speaks, but for its root: some of it with each step.
    Tree(TreeId),
}
