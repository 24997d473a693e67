//! The rows of approvals, of their earlier addressees, of the calls that the gate saw and of permit streams.

use plexus_protocol::{Approval, ApprovalId, ApprovalStatus, Decision, SessionId, UnixSeconds};

use super::{EndOfTurn, Stored, TurnKey};
use crate::{ApprovalRow, CallRow, NewApproval, PermitStream, RunKey, Verdict};

/// Approvals, calls and permit streams.
pub(crate) trait ApprovalRows {
    /// One approval, with the current name of its session.
    fn approval(&self, id: ApprovalId) -> Stored<Option<ApprovalRow>>;
    /// One approval with its call.
    fn approval_and_call(&self, id: ApprovalId) -> Stored<Option<ApprovalAndCall>>;
    /// The pending approval of this session and `tool_use_id`, in any run.
    fn pending_approval_of(&self, session: SessionId, tool_use_id: &str) -> Stored<Option<ApprovalId>>;
    /// Whether the turn has a pending approval.
    fn has_pending_approval(&self, turn: TurnKey) -> Stored<bool>;
    /// What a new approval of this call needs; `None` if the session does not exist.
    fn before_approval(&self, key: &CallKey<'_>, turn: u64) -> Stored<Option<BeforeApproval>>;
    /// Inserts a pending approval under this number of the feed.
    fn insert_approval(&mut self, new: &NewApproval, number: u64) -> Stored<()>;
    /// Updates an approval, if it exists.
    fn update_approval(&mut self, id: ApprovalId, update: ApprovalUpdate<'_>) -> Stored<()>;
    /// Stores when the answer was delivered, unless it was before. The approval need not exist.
    fn mark_delivered(&mut self, id: ApprovalId, at: UnixSeconds) -> Stored<()>;
    /// Deletes an approval and its permit streams; returns whether it existed.
    fn delete_approval(&mut self, id: ApprovalId) -> Stored<bool>;

    /// The keys of the earlier addressees of a pending approval, oldest first.
    fn previous_addressees(&self, approval: ApprovalId) -> Stored<Vec<String>>;
    /// Inserts an earlier addressee of a pending approval.
    fn insert_previous_addressee(&mut self, previous: &PreviousAddressee<'_>) -> Stored<()>;
    /// Deletes the earlier addressees of an approval.
    fn delete_previous_addressees(&mut self, approval: ApprovalId) -> Stored<()>;

    /// The stored verdict of a call that has had no `tool_result` yet.
    fn verdict(&self, key: &CallKey<'_>) -> Stored<Option<Verdict>>;
    /// Inserts a call.
    fn insert_call(&mut self, call: &CallRow, at: UnixSeconds) -> Stored<()>;
    /// Replaces the verdict of a call that has had no `tool_result` yet.
    fn set_verdict(&mut self, key: &CallKey<'_>, verdict: &Verdict) -> Stored<()>;
    /// Releases the keys that calls and approvals hold under this id.
    fn release_keys(&mut self, key: &CallKey<'_>, at: UnixSeconds) -> Stored<()>;
    /// The run of the call with this ordinal.
    fn run_of_call(&self, ordinal: u64) -> Stored<Option<RunKey>>;
    /// Deletes the call with this ordinal.
    fn delete_call(&mut self, ordinal: u64) -> Stored<()>;

    /// Inserts a permit stream.
    fn insert_permit_stream(&mut self, stream: &PermitStream, at: UnixSeconds) -> Stored<()>;
}

/// What a new approval needs.
pub(crate) struct BeforeApproval {
    /// The end of its turn.
    pub(crate) end: EndOfTurn,
    /// Whether an approval of the turn holds the key of the call: it has had no `tool_result` yet.
    pub(crate) key_is_held: bool,
    /// Whether its session is archived.
    pub(crate) is_archived: bool,
}

/// What a rule needs that resolves an approval.
pub(crate) struct ApprovalAndCall {
    pub(crate) row: ApprovalRow,
    /// The stored verdict of its call, if that has had no `tool_result` yet.
    pub(crate) verdict: Option<Verdict>,
    /// The number of the next event of its turn.
    pub(crate) next_event: u64,
}

/// Names a tool call within a run.
#[derive(Clone, Copy)]
pub(crate) struct CallKey<'a> {
    pub(crate) run: RunKey,
    pub(crate) tool_use_id: &'a str,
}

/// New values for some columns of an approval.
pub(crate) enum ApprovalUpdate<'a> {
    Resolved {
        status: ApprovalStatus,
        decision: &'a Decision,
        at: UnixSeconds,
    },
    /// The addressee and the deadlines, with the number of the latest feed entry.
    Asked {
        approval: &'a Approval,
        number: u64,
    },
}

/// An earlier addressee of a pending approval.
pub(crate) struct PreviousAddressee<'a> {
    /// The addressee's key.
    pub(crate) key: &'a str,
    pub(crate) approval: ApprovalId,
    /// The number of the feed entry for this addressee.
    pub(crate) number: u64,
    /// Whether the approval escalated past this addressee, which still sees it and may decide.
    pub(crate) may_still_decide: bool,
}
