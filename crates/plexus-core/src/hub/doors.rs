//! The interface of the hub for the network doors, besides [`Hub::call`]: tokens, streams, permits and figures.

use std::sync::Arc;

use plexus_protocol::console::SignedIn;
use plexus_protocol::stream::Access;
use plexus_protocol::{Error, Principal, SessionId};
use plexus_store::CallIds;
use serde_json::Value;

use super::Hub;
use crate::approvals::permit::PermitTicket;
use crate::callers::access;
use crate::callers::caller::Caller;
use crate::callers::tokens::{self, Known};
use crate::follow::{ApprovalFollower, ChangeFollower, EventCursor, SessionFollower};
use crate::metrics::Current;
use crate::metrics::doors::DoorFigures;

impl Hub {
    /// The caller that a token identifies.
    pub async fn identify(&self, token: &str) -> Result<Option<Known>, Error> {
        tokens::identify(self.store(), self.commits(), &self.address().operator_token, token).await
    }

    /// Waits until the token of this caller is no longer valid; forever if it stays valid.
    pub async fn token_ends(&self, known: &Known) {
        tokens::token_ends(self.store(), self.commits(), known).await;
    }

    /// Exchanges a sign-in code for a token; `None` for a code that was used, has expired or never existed.
    ///
    /// # Errors
    /// When the token cannot be stored; the code cannot be used again in either case.
    pub async fn sign_in(&self, code: &str) -> Result<Option<SignedIn>, Error> {
        self.sign_in_codes.sign_in(self.commits(), code).await
    }

    /// Issues a sign-in code, which `carrier` takes to a browser. The value that `carrier` returns is dropped when
    /// the code is used or expires.
    pub fn issue_sign_in_code<T: Send + 'static>(
        &self,
        carrier: impl FnOnce(&str) -> Result<T, Error>,
    ) -> Result<String, Error> {
        self.sign_in_codes.issue(self.tasks(), carrier)
    }

    /// The access of a caller that sees every session; empty for callers that see only their own sessions.
    pub fn may(&self, principal: &Principal) -> Vec<Access> {
        access::may(principal)
    }

    /// Whether a process belongs to a supervised child.
    pub fn is_child_process(&self, pid: i32) -> bool {
        self.parts.keepers.is_ancestor_of(pid)
    }

    /// A warning for a person who wants agents in a sandbox that this system does not grant.
    pub fn sandbox_warning(&self) -> Option<String> {
        self.parts.sandbox.warning()
    }

    /// Follows a session from a position, by default from the start of its latest turn.
    pub async fn follow_session(
        &self,
        caller: Caller,
        session: SessionId,
        from: Option<EventCursor>,
    ) -> Result<SessionFollower, Error> {
        self.follow.follow_session(caller, session, from).await
    }

    /// Follows the approvals after number `after`; from now on if none is given.
    pub async fn follow_approvals(
        &self,
        caller: Caller,
        after: Option<u64>,
    ) -> Result<ApprovalFollower, Error> {
        self.follow.follow_approvals(caller, after).await
    }

    /// Follows whether anything changed, from now on. For callers that see every session.
    pub async fn follow_changes(&self, caller: Caller) -> Result<ChangeFollower, Error> {
        self.follow.follow_changes(caller).await
    }

    /// Opens an approval request over HTTP. When this returns, the request survives a restart of the hub.
    pub async fn permit_open(&self, principal: &Principal, arguments: Value, ids: CallIds) -> PermitTicket {
        Arc::clone(&self.permits).permit_open(principal, arguments, ids).await
    }

    /// Continues a request by the last event id that its client saw; `None` if it is not this caller's.
    pub async fn permit_resume(&self, principal: &Principal, last_event_id: &str) -> Option<PermitTicket> {
        Arc::clone(&self.permits).permit_resume(principal, last_event_id).await
    }

    /// Waits for the answer to an opened request, in the form that Claude Code reads.
    pub async fn permit_answer(&self, ticket: &PermitTicket) -> Value {
        Arc::clone(&self.permits).permit_answer(ticket).await
    }

    /// The figures that the doors count.
    pub fn door_figures(&self) -> &DoorFigures {
        self.parts.metrics.doors()
    }

    /// All figures, in the text format of OpenMetrics, which Prometheus reads.
    pub async fn figures(&self) -> String {
        let children = self.parts.keepers.sessions().len();
        let present = Current { children, disk_free: self.parts.disk.free() };
        self.parts.metrics.text(self.store(), self.settings(), present).await
    }
}
