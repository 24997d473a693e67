//! What becomes of a host: whether it gets new sessions, is lost, or is removed. Only a database that hubs share has hosts.

use plexus_protocol::budget::BudgetLimit;
use plexus_protocol::{ApprovalStatus, Decider, Decision, Event, HostName, SessionId};
use serde_json::json;

use super::turns::Ending;
use super::{Commit, audit_entries, key};
use crate::rows::Stored;
use crate::{HostState, Refusal, SlotUse, StoreError, TurnStatus};

/// The reason in the last event of a turn whose host was lost.
const HOST_LOST: &str = "host_lost";

impl Commit<'_> {
    pub(super) fn set_host_state(&mut self, host: &HostName, state: HostState, by: &Decider) -> Stored<()> {
        let before = match self.rows.host_state(host)? {
            None | Some(HostState::Removed) => return Err(Refusal::NoSuchHost(host.clone()).into()),
            Some(before) => before,
        };
        match state {
            // A lost host comes back when its hub starts.
            HostState::Active | HostState::Draining if before == HostState::Lost => {
                return Err(Refusal::HostLost(host.clone()).into());
            }
            HostState::Removed if self.has_sessions(host)? => {
                return Err(Refusal::HostInUse(host.clone()).into());
            }
            _ => {}
        }
        if before == state {
            return Ok(());
        }
        self.rows.set_host_state(host, state)?;
        if state.is_fenced() {
            self.rows.fence_host(host)?;
        }
        if state == HostState::Lost {
            self.end_all_of(host)?;
        }
        self.audit(audit_entries::host_changed(self.at, host, before, state, by))
    }

    /// Whether a host has sessions that a person can delete. One that cannot be read is missing in every list.
    fn has_sessions(&self, host: &HostName) -> Stored<bool> {
        for session in self.rows.sessions_of_host(host)? {
            if self.rows.session(session)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Refuses a new session on a host that gets none, or has no free slot.
    pub(super) fn check_takes_sessions(&self, host: &HostName) -> Stored<()> {
        match self.rows.host_state(host)? {
            Some(HostState::Draining) => Err(Refusal::HostDrains(host.clone()).into()),
            _ => self.check_free_slot(host),
        }
    }

    /// Refuses another turn of a session whose host has no free slot. A new session has had its slot since its creation.
    pub(super) fn check_slot(&self, session: SessionId) -> Stored<()> {
        let row = self.existing_session(session)?;
        match &row.host {
            Some(host) if row.latest_turn > 0 || row.archived_at.is_some() => self.check_free_slot(host),
            _ => Ok(()),
        }
    }

    fn check_free_slot(&self, host: &HostName) -> Stored<()> {
        match self.rows.slots_of_host(host)? {
            Some(SlotUse { slots, used }) if used >= slots => {
                Err(Refusal::NoFreeSlot { host: host.clone(), slots }.into())
            }
            _ => Ok(()),
        }
    }

    /// Nothing of a lost host goes on: its approvals are withdrawn, its turns fail, its runs end, and what its sessions were granted and have
    /// not used goes back.
    fn end_all_of(&mut self, host: &HostName) -> Stored<()> {
        let message = format!("host `{host}` was declared lost");
        let withdrawn = Decision::withdrawal(&message);
        for approval in self.rows.pending_approvals_of_host(host)? {
            skip_unusable(self.resolve_if_pending(approval, ApprovalStatus::Withdrawn, &withdrawn))?;
        }
        for run in self.rows.open_runs_of_host(host)? {
            skip_unusable(self.end_run(run, &json!({"reason": HOST_LOST})))?;
        }
        for session in self.rows.sessions_of_host(host)? {
            skip_unusable(self.fail_turn(session, &message))?;
            skip_unusable(self.shrink_grants(session))?;
        }
        Ok(())
    }

    /// Ends the running turn of a session of a lost host.
    fn fail_turn(&mut self, session: SessionId, message: &str) -> Stored<()> {
        let turn = self.session(session)?.latest_turn;
        let last = Event::Error {
            message: message.to_owned(),
            reason: Some(HOST_LOST.to_owned()),
            stderr: Vec::new(),
        };
        let (status, summary) = (TurnStatus::Failed, Some(message));
        self.end_turn(key(session, turn), &Ending { status, last: &last, summary, cost_usd: 0.0 })
    }

    /// Reduces the grants of a session to what is used and reserved.
    fn shrink_grants(&mut self, session: SessionId) -> Stored<()> {
        for limit in BudgetLimit::ALL {
            if let Some(share) = self.rows.share(session, limit)?.filter(|share| !share.deleted) {
                let needed = share.row.own + share.row.below;
                if needed < share.row.granted {
                    self.regrant(share, needed)?;
                }
            }
        }
        Ok(())
    }
}

/// One row that a host has stored so that it cannot be read, or that does not fit the others, must not keep the host from being declared lost. The
/// host is fenced, so nothing of it goes on in any case.
fn skip_unusable<T>(step: Stored<T>) -> Stored<()> {
    match step {
        Err(error @ (StoreError::Unusable(_) | StoreError::Refused(_))) => {
            tracing::error!(%error, "something of a lost host stays as it is");
            Ok(())
        }
        step => step.map(drop),
    }
}
