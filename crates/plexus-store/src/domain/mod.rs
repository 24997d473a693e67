//! The domain rules: what each [`Change`] entails. A rule reads and writes the rows of one transaction through
//! `crate::rows` and collects what the commit publishes. Backends contain no rules: they open the transaction, call
//! [`apply`] and roll back if it fails.
//!
//! A rule checks whether a change is allowed before it writes. This relies on the backend to isolate the transaction from
//! other writers. A change to a run or turn that does not exist is refused with `NoSuchSession`.

mod approvals;
pub(crate) mod audit_chain;
mod audit_entries;
mod budget_approvals;
pub(crate) mod budgets;
pub(crate) mod calls;
mod escalation;
mod feed;
pub(crate) mod history;
mod hosts;
mod nodes;
mod permission_rules;
pub(crate) mod removal;
mod runs;
mod session_paths;
mod sessions;
mod templates;
#[cfg(test)]
mod tests;
pub(crate) mod tokens;
mod turns;

use std::collections::HashMap;

use plexus_protocol::{ApprovalId, Event, SessionId, UnixSeconds};
use serde_json::Value;

use crate::rows::{EndOfTurn, NewFeedEntry, Rows, SessionIdentity, Stored, TurnKey};
use crate::{
    ApprovalRow, Change, Committed, EventJson, EventRow, FeedEntry, FeedRow, Refusal, RunState, SessionRow,
    StoreError,
};

/// Trees of sessions are a few levels deep; this stops a walk up the tree in a damaged store.
const MAX_DEPTH: usize = 64;

/// Applies all of `changes`. On an error some of them may be applied: the caller rolls back.
pub(crate) fn apply(rows: &mut dyn Rows, at: UnixSeconds, changes: &[Change]) -> Stored<Committed> {
    let mut commit = Commit {
        rows,
        at,
        published: Committed::default(),
        changed_approvals: HashMap::new(),
        identities: HashMap::new(),
        next_event: None,
    };
    for change in changes {
        commit.apply(change)?;
    }
    commit.finish()
}

/// One commit being applied.
struct Commit<'a> {
    rows: &'a mut dyn Rows,
    at: UnixSeconds,
    published: Committed,
    /// Where in `published` the approvals are that this commit created or changed. They have their state after the changes so far.
    changed_approvals: HashMap<ApprovalId, usize>,
    /// The sessions that were read so far.
    identities: HashMap<SessionId, SessionIdentity>,
    /// The number of the next event of the turn that was read last. A commit often has many events of one turn.
    next_event: Option<(TurnKey, u64)>,
}

impl Commit<'_> {
    fn apply(&mut self, change: &Change) -> Stored<()> {
        match change {
            Change::CreateSession(new) => self.create_session(new),
            Change::RenameSession(id, name) => self.rename_session(*id, name),
            Change::SetTitle(id, title) => self.set_title(*id, title),
            Change::Archive(id) => self.archive(*id),
            Change::Unarchive(id) => self.unarchive(*id),
            Change::Configure(id, config) => self.configure(*id, config),
            Change::DeleteSession(id) => self.delete_session(*id),
            Change::StartRun { key, state, token_hash } => {
                self.start_run(*key, *state, token_hash.as_deref())
            }
            Change::RunProcess(key, process) => self.run_process(*key, process.as_ref()),
            Change::RunState(key, RunState::Ended) => self.end_run(*key, &Value::Null),
            Change::RunState(key, state) => self.run_state(*key, *state),
            Change::EndRun(key, exit) => self.end_run(*key, exit),
            Change::JournalOffset(key, offset) => self.journal_offset(*key, *offset),
            Change::StartTurn { session, turn, prompt, woken_to } => {
                self.start_turn(key(*session, *turn), prompt, *woken_to)
            }
            Change::BindTurn { session, turn, run, prompt_uuid } => {
                self.bind_turn(key(*session, *turn), *run, prompt_uuid)
            }
            Change::Progress(session, turn, progress) => self.progress(key(*session, *turn), progress),
            Change::Event(session, turn, event) => self.event(key(*session, *turn), event),
            Change::AddNode(session, node) => self.add_node(*session, node),
            Change::ExtendNode { node, blocks, uuid } => self.extend_node(*node, blocks, uuid.as_deref()),
            Change::EndTurn { session, turn, status, last, summary, cost_usd } => {
                let (summary, cost_usd) = (summary.as_deref(), *cost_usd);
                let ending = turns::Ending { status: *status, last, summary, cost_usd };
                self.end_turn(key(*session, *turn), &ending)
            }
            Change::Call(call, seen) => self.call(call, seen),
            Change::Release(call, seen) => self.release(call, seen),
            Change::SetBudget(session, limits) => self.set_budget(*session, limits),
            Change::Spend(session, limit, amount) => self.spend(*session, *limit, *amount),
            Change::CheckBudget(session) => self.check_left(*session, &budgets::TURN_LIMITS),
            Change::CheckSlot(session) => self.check_slot(*session),
            Change::AskBudget(session) => self.ask_budget(*session),
            Change::Ask(new) => self.ask(new),
            Change::Resolve { approval, status, decision } => self.resolve(*approval, *status, decision),
            Change::ResolveIfPending { approval, status, decision } => {
                self.resolve_if_pending(*approval, *status, decision)
            }
            Change::Escalate { approval, passed_over, to, escalates_at } => {
                self.escalate(*approval, passed_over, to, *escalates_at)
            }
            Change::SetDeadlines { approval, asked_of, expires_at, escalates_at } => {
                self.set_deadlines(*approval, asked_of, *expires_at, *escalates_at)
            }
            Change::Extend { approval, expires_at } => self.extend(*approval, *expires_at),
            Change::Delivered(approval) => self.delivered(*approval),
            Change::ReleaseKeys(key, tool_use_id) => self.release_keys(*key, tool_use_id),
            Change::CreateRule(rule) => self.create_rule(rule),
            Change::RevokeRule { number, by } => self.revoke_rule(*number, by),
            Change::CreateToken { token, hash, by } => self.create_token(token, hash, by),
            Change::RevokeToken { name, by } => self.revoke_token(name, by),
            Change::SaveTemplate { name, template, by } => self.save_template(name, template, by),
            Change::DeleteTemplate { name, by } => self.delete_template(name, by),
            Change::Stream(stream) => self.permit_stream(stream),
            Change::Position { reader, session, turn, position } => {
                self.check_exists(*session)?;
                self.rows.put_position(reader, key(*session, *turn), *position)
            }
            Change::Audit(entry) => self.audit((**entry).clone()),
            Change::Remove(what) => {
                self.next_event = None;
                self.remove(what)
            }
            Change::Notice { to, session, data } => self.notice(to, *session, data),
            Change::SetHostState { host, state, by } => self.set_host_state(host, *state, by),
        }
    }

    fn finish(mut self) -> Stored<Committed> {
        if !self.published.rules.is_empty() {
            self.published.rules_version = Some(self.rows.rules_version()?);
        }
        Ok(self.published)
    }

    /// Appends an event under the next number of its turn.
    fn event(&mut self, key: TurnKey, event: &Event) -> Stored<()> {
        let event = EventJson::new(event).map_err(|error| unwritable(&error))?;
        let seq = self.next_event(key)?;
        self.next_event = Some((key, seq + 1));
        let row = EventRow { session: key.session, turn: key.turn, seq, event, at: self.at };
        self.rows.insert_event(&row)?;
        self.published.events.push(row);
        Ok(())
    }

    /// The number of the next event of a turn. Refuses if the session does not exist. It may be deleted: events of its child are still stored.
    fn next_event(&mut self, key: TurnKey) -> Stored<u64> {
        if let Some((turn, next)) = self.next_event
            && turn == key
        {
            return Ok(next);
        }
        let end = self.rows.end_of_turn(key)?.ok_or_else(|| no_such(key.session))?;
        let next_event = end.next_event;
        self.note_end(key, end);
        Ok(next_event)
    }

    /// Notes the end of a turn that was read, and returns the identity of the session.
    fn note_end(&mut self, key: TurnKey, end: EndOfTurn) -> SessionIdentity {
        let EndOfTurn { session, next_event } = end;
        self.identities.insert(key.session, session.clone());
        self.next_event = Some((key, next_event));
        session
    }

    /// Appends a feed entry and returns its number.
    fn feed(&mut self, to: String, session: SessionId, entry: FeedEntry) -> Stored<u64> {
        let new = NewFeedEntry { to: &to, session, entry: &entry, at: self.at };
        let number = self.rows.insert_feed_entry(&new)?;
        self.published.feed.push(FeedRow { number, to, session, entry });
        Ok(number)
    }

    /// Publishes an approval that was created or changed. A later change of the commit replaces it.
    fn publish_approval(&mut self, row: ApprovalRow) {
        let published = &mut self.published.approvals;
        let next = published.len();
        let at = *self.changed_approvals.entry(row.approval.id).or_insert(next);
        match published.get_mut(at) {
            Some(earlier) => *earlier = row,
            None => published.push(row),
        }
    }

    /// Refuses if the session does not exist. It may be deleted.
    fn check_exists(&mut self, id: SessionId) -> Stored<()> {
        // The row of a session is never removed.
        if self.identities.contains_key(&id) {
            return Ok(());
        }
        self.identity(id)?.map(drop).ok_or_else(|| no_such(id))
    }

    /// The identity of a session, deleted or not. Each is read once.
    fn identity(&mut self, id: SessionId) -> Stored<Option<SessionIdentity>> {
        if let Some(known) = self.identities.get(&id) {
            return Ok(Some(known.clone()));
        }
        let found = self.rows.session_identity(id)?;
        self.identities.extend(found.clone().map(|identity| (id, identity)));
        Ok(found)
    }

    /// A session, deleted or not.
    fn session(&self, id: SessionId) -> Stored<SessionRow> {
        self.rows.session(id)?.ok_or_else(|| no_such(id))
    }

    /// A session that is not deleted.
    fn existing_session(&self, id: SessionId) -> Stored<SessionRow> {
        let row = self.session(id)?;
        if row.deleted_at.is_some() { Err(no_such(id)) } else { Ok(row) }
    }
}

fn key(session: SessionId, turn: u64) -> TurnKey {
    TurnKey { session, turn }
}

/// The error for a change to a session, run or turn that does not exist.
fn no_such(session: SessionId) -> StoreError {
    Refusal::NoSuchSession(session).into()
}

fn unwritable(error: &serde_json::Error) -> StoreError {
    StoreError::Unavailable(format!("cannot be written as JSON: {error}"))
}
