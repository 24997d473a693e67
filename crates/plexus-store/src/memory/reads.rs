//! The reads of the store in memory. Each reads one snapshot, since it holds the lock on the tables.

use async_trait::async_trait;
use plexus_protocol::audit::{AuditEntry, AuditHead, AuditRow};
use plexus_protocol::{ApprovalStatus, SessionId, TemplateName, UnixSeconds};

use super::MemoryStore;
use super::tables::{CallKeyState, Entry, Files, PositionKey, Run, Tables};
use crate::domain::audit_chain::{self, Columns, StoredEntry};
use crate::domain::{budgets, removal, tokens};
use crate::page::Page;
use crate::rows::{AuthorityRows, SessionRows, TurnKey, TurnRows};
use crate::{
    ApprovalRow, AuditCheck, AuditFilter, AuditFrom, BudgetRow, CallRow, EventRow, FeedRow, FinishedRun,
    OldRecords, OpenCall, OpenFilter, PermitStream, Removable, RulesInForce, RunKey, RunRow, RunState,
    SessionRow, SessionWithState, Store, StoreError, Tally, TemplateRow, TokenRow, TurnRow, TurnState,
    TurnStatus, UnfinishedCall,
};

impl Tables {
    pub(super) fn open_approvals(&self, which: &OpenFilter) -> Vec<ApprovalRow> {
        let mut rows: Vec<ApprovalRow> = match which {
            OpenFilter::All => self.pending().map(|row| self.with_name(row)).collect(),
            OpenFilter::OfSession(id) => {
                let of_session = self.pending().filter(|row| row.approval.session_id == *id);
                of_session.map(|row| self.with_name(row)).collect()
            }
            OpenFilter::AskedOf(key) => {
                let asked = self.pending().filter(|row| row.approval.asked_of.key() == *key);
                let asked = asked.map(|row| self.with_name(row));
                asked.chain(self.was_passed_over(key)).collect()
            }
        };
        rows.sort_by_key(|row| row.number);
        rows
    }

    /// The pending approvals that escalated past this addressee, with the feed numbers of their requests to it.
    fn was_passed_over<'a>(&'a self, key: &'a str) -> impl Iterator<Item = ApprovalRow> + 'a {
        let previous = self.previous_addressees.iter();
        let previous = previous.filter(move |(_, previous)| previous.key == key && previous.may_still_decide);
        previous.filter_map(|(number, previous)| {
            let row = self.approval_row(previous.approval)?;
            let is_pending = row.approval.status == ApprovalStatus::Pending;
            is_pending.then_some(ApprovalRow { number: *number, ..row })
        })
    }

    pub(super) fn feed_after(
        &self,
        after: u64,
        limit: u64,
        matches: impl Fn(&FeedRow) -> bool,
    ) -> Vec<FeedRow> {
        let Some(from) = after.checked_add(1) else { return Vec::new() };
        let rows = self.feed.range(from..).map(|(_, row)| row).filter(|row| matches(row));
        rows.take(count(limit)).cloned().collect()
    }

    /// The sessions that are not deleted, oldest first.
    fn existing_sessions(&self) -> Vec<&SessionRow> {
        let mut sessions: Vec<_> =
            self.sessions.values().filter(|session| session.row.deleted_at.is_none()).collect();
        sessions.sort_by_key(|session| session.ordinal);
        sessions.into_iter().map(|session| &session.row).collect()
    }

    fn sessions_with_state(&self, row: &SessionRow) -> SessionWithState {
        let turn = self.turns.get(&TurnKey { session: row.id, turn: row.latest_turn });
        let turn = turn.map(|turn| TurnState {
            status: turn.status,
            progress: turn.progress.clone(),
            started_at: turn.started_at,
        });
        let open = self.open_approvals(&OpenFilter::OfSession(row.id));
        let key = RunKey { session: row.id, run: row.latest_run };
        let is_running = turn.as_ref().is_some_and(|turn| turn.status == TurnStatus::Running);
        let unfinished = self.calls.values().rev().filter(|call| {
            is_running
                && call.key == CallKeyState::Held
                && call.row.key == key
                && call.row.turn == row.latest_turn
        });
        let latest_turn = TurnKey { session: row.id, turn: row.latest_turn };
        let budget = self.budgets.values().filter(|budget| budget.row.session == row.id);
        SessionWithState {
            row: row.clone(),
            turn,
            open: open
                .into_iter()
                .map(|ApprovalRow { approval, .. }| OpenCall {
                    kind: approval.kind,
                    tool_name: approval.tool_name,
                    tool_use_id: approval.tool_use_id,
                    asked_of: approval.asked_of,
                })
                .collect(),
            calls: unfinished
                .take(SessionWithState::MAX_CALLS)
                .map(|call| UnfinishedCall {
                    tool_use_id: call.row.tool_use_id.clone(),
                    tool_name: call.row.tool_name.clone(),
                    summary: call.row.summary.clone(),
                })
                .collect(),
            budget: budget.map(|budget| budget.row.clone()).collect(),
            last_event_at: self.events_from(latest_turn, 0).next_back().map(|event| event.at),
        }
    }

    fn run_rows(&self, matches: impl Fn(&Run) -> bool) -> Vec<RunRow> {
        self.runs.values().filter(|run| matches(run)).map(|run| run.row.clone()).collect()
    }

    fn tally(&self) -> Tally {
        let pending = self.open_approvals(&OpenFilter::All);
        Tally {
            sessions: self.existing_sessions().len() as u64,
            open_approvals: pending.len() as u64,
            oldest_open: pending.first().map(|row| row.approval.created_at),
        }
    }

    fn audit_rows(&self, filter: &AuditFilter, from: AuditFrom, limit: u64) -> Vec<AuditRow> {
        let matching = |(_, entry): &(&u64, &Entry)| matches_filter(&entry.entry, filter);
        let mut page = Page::new();
        let found: Box<dyn Iterator<Item = (&u64, &Entry)>> = match from {
            AuditFrom::After(edge) => Box::new(self.audit.iter().filter(move |(number, _)| **number > edge)),
            AuditFrom::Before(edge) => Box::new(self.audit.range(..edge).rev()),
        };
        for (number, Entry { hash, entry, text }) in found.filter(matching).take(count(limit)) {
            if !page.has_room_for(text.len()) {
                break;
            }
            page.push(AuditRow { number: *number, hash: hash.clone(), entry: entry.clone() });
        }
        page.rows()
    }

    fn check_audit(&self, after: AuditHead, upto: u64) -> AuditCheck {
        let mut head = after;
        let from = head.number;
        for (number, entry) in self.audit.iter().filter(|(number, _)| (from + 1..=upto).contains(number)) {
            match audit_chain::verify(&head, &entry.stored(*number)) {
                Ok(next) => head = next,
                Err(why) => return AuditCheck::Broken { number: head.number + 1, why },
            }
        }
        AuditCheck::Fits(head)
    }

    fn old_records(&self, which: OldRecords, before: UnixSeconds) -> Result<Vec<Removable>, StoreError> {
        let mut old: Vec<(UnixSeconds, Removable)> = Vec::new();
        match which {
            OldRecords::Events => {
                for (key, turn) in self.turns.iter() {
                    let TurnKey { session, turn: number } = *key;
                    if let Some(at) = turn.ended_at.filter(|at| *at < before)
                        && removal::events_are_removable(self, *key)?
                    {
                        old.push((at, Removable::Events { session, turn: number }));
                    }
                }
            }
            OldRecords::Approvals => {
                for (id, stored) in self.approvals.iter() {
                    let run = RunKey { session: stored.row.approval.session_id, run: stored.row.run };
                    if let Some(at) = stored.row.approval.resolved_at.filter(|at| *at < before)
                        && removal::run_is_over(self, run)?
                    {
                        old.push((at, Removable::Approval(*id)));
                    }
                }
            }
            OldRecords::Calls => {
                for (ordinal, call) in self.calls.iter() {
                    if call.at < before && removal::run_is_over(self, call.row.key)? {
                        old.push((call.at, Removable::Call(*ordinal)));
                    }
                }
            }
        }
        old.sort_by_key(|(at, _)| *at);
        Ok(old.into_iter().map(|(_, what)| what).collect())
    }

    fn finished_runs(&self) -> Vec<FinishedRun> {
        let kept = self.runs.values().filter(|run| run.files == Files::Kept);
        let mut runs: Vec<FinishedRun> = kept
            .filter_map(|run| {
                let key = run.row.key;
                let session = self.sessions.get(&key.session)?;
                let session_deleted_at = session.row.deleted_at;
                Some(FinishedRun { key, ended_at: run.ended_at?, session_deleted_at })
            })
            .collect();
        runs.sort_by_key(|run| (run.ended_at, run.key));
        runs
    }
}

impl Entry {
    fn stored(&self, number: u64) -> StoredEntry {
        let AuditEntry { at, kind, by, session_id, tool_name, .. } = &self.entry;
        StoredEntry {
            number: i64::try_from(number).unwrap_or(i64::MAX),
            hash: self.hash.clone(),
            text: self.text.clone(),
            columns: Columns {
                at: *at,
                kind: *kind,
                who: by.key(),
                session: session_id.map(|id| id.to_string()),
                tool_name: tool_name.clone(),
            },
        }
    }
}

fn matches_filter(entry: &AuditEntry, filter: &AuditFilter) -> bool {
    let AuditFilter { session, since, until, kind, by, tool_name } = filter;
    session.is_none_or(|session| entry.session_id == Some(session))
        && since.is_none_or(|since| entry.at >= since)
        && until.is_none_or(|until| entry.at < until)
        && kind.is_none_or(|kind| entry.kind == kind)
        && by.as_ref().is_none_or(|by| entry.by.key() == *by)
        && tool_name.as_ref().is_none_or(|name| entry.tool_name.as_ref() == Some(name))
}

/// A limit as a number of rows.
pub(super) fn count(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

#[async_trait]
impl Store for MemoryStore {
    async fn session(&self, id: SessionId) -> Result<Option<SessionRow>, StoreError> {
        self.tables().session(id)
    }

    async fn sessions_named(&self, name: &str) -> Result<Vec<SessionRow>, StoreError> {
        self.tables().sessions_named(name)
    }

    async fn sessions(&self) -> Result<Vec<SessionRow>, StoreError> {
        Ok(self.tables().existing_sessions().into_iter().cloned().collect())
    }

    async fn sessions_with_state(&self) -> Result<Vec<SessionWithState>, StoreError> {
        let tables = self.tables();
        Ok(tables.existing_sessions().into_iter().map(|row| tables.sessions_with_state(row)).collect())
    }

    async fn newest_sessions(&self, limit: u64) -> Result<Vec<SessionRow>, StoreError> {
        let tables = self.tables();
        let mut sessions: Vec<_> = tables.sessions.values().collect();
        sessions.sort_by_key(|session| std::cmp::Reverse(session.ordinal));
        Ok(sessions.into_iter().take(count(limit)).map(|session| session.row.clone()).collect())
    }

    async fn budget(&self, session: SessionId) -> Result<Vec<BudgetRow>, StoreError> {
        budgets::drawn_on(&*self.tables(), session)
    }

    async fn run(&self, key: RunKey) -> Result<Option<RunRow>, StoreError> {
        self.tables().run(key)
    }

    async fn open_runs(&self) -> Result<Vec<RunRow>, StoreError> {
        Ok(self.tables().run_rows(|run| run.row.state != RunState::Ended))
    }

    async fn run_of_token(&self, token_hash: &str) -> Result<Option<RunRow>, StoreError> {
        Ok(self.tables().run_rows(|run| run.token_hash.as_deref() == Some(token_hash)).pop())
    }

    async fn rules(&self) -> Result<RulesInForce, StoreError> {
        let tables = self.tables();
        let in_force = tables.rules.values().filter(|rule| rule.revoked_at.is_none());
        let rules = in_force.map(|rule| rule.row.clone()).collect();
        Ok(RulesInForce { version: tables.count_rule_changes(), rules })
    }

    async fn token_of_hash(&self, hash: &str, now: UnixSeconds) -> Result<Option<TokenRow>, StoreError> {
        let tables = self.tables();
        let found = tables.unrevoked_tokens().find(|token| token.hash == hash);
        Ok(found.map(|token| token.row.clone()).filter(|token| tokens::is_unexpired(token, now)))
    }

    async fn tokens(&self, now: UnixSeconds) -> Result<Vec<TokenRow>, StoreError> {
        let tables = self.tables();
        let tokens = tables.unrevoked_tokens().map(|token| &token.row);
        Ok(tokens.filter(|token| tokens::is_unexpired(token, now)).cloned().collect())
    }

    async fn templates(&self) -> Result<Vec<TemplateRow>, StoreError> {
        Ok(self.tables().templates.values().cloned().collect())
    }

    async fn template(&self, name: &TemplateName) -> Result<Option<TemplateRow>, StoreError> {
        Ok(self.tables().templates.get(name).cloned())
    }

    async fn turn(&self, session: SessionId, turn: u64) -> Result<Option<TurnRow>, StoreError> {
        self.tables().turn(TurnKey { session, turn })
    }

    async fn events(
        &self,
        session: SessionId,
        turn: u64,
        from: u64,
        limit: u64,
    ) -> Result<Vec<EventRow>, StoreError> {
        let tables = self.tables();
        let mut page = Page::new();
        for event in tables.events_from(TurnKey { session, turn }, from).take(count(limit)) {
            if !page.has_room_for(event.event.as_str().len()) {
                break;
            }
            page.push(event.clone());
        }
        Ok(page.rows())
    }

    async fn event_count(&self, session: SessionId, turn: u64) -> Result<u64, StoreError> {
        Ok(self.tables().event_count(TurnKey { session, turn }))
    }

    async fn approvals_without_result(&self, key: RunKey) -> Result<Vec<ApprovalRow>, StoreError> {
        let tables = self.tables();
        let held = tables.approvals.values().filter(|stored| stored.key == CallKeyState::Held);
        let rows = held.map(|stored| &stored.row);
        let of_run = rows.filter(|row| row.approval.session_id == key.session && row.run == key.run);
        let mut rows: Vec<_> = of_run.map(|row| tables.with_name(row)).collect();
        rows.sort_by_key(|row| row.number);
        Ok(rows)
    }

    async fn calls_without_result(&self, key: RunKey) -> Result<Vec<CallRow>, StoreError> {
        let tables = self.tables();
        let held = tables.calls.values().filter(|call| call.key == CallKeyState::Held);
        Ok(held.filter(|call| call.row.key == key).map(|call| call.row.clone()).collect())
    }

    async fn feed_of_all(&self, after: u64, limit: u64) -> Result<Vec<FeedRow>, StoreError> {
        Ok(self.tables().feed_after(after, limit, |_| true))
    }

    async fn feed_approvals(
        &self,
        to: Option<&str>,
        after: u64,
        upto: u64,
    ) -> Result<Vec<ApprovalRow>, StoreError> {
        let tables = self.tables();
        let entries = tables.feed_after(after, u64::MAX, |row| to.is_none_or(|to| row.to == to));
        let entries = entries.into_iter().take_while(|row| row.number <= upto);
        let approval = |row: FeedRow| {
            let number = row.number;
            row.entry
                .columns()
                .approval
                .and_then(|id| tables.approval_row(id))
                .map(|row| ApprovalRow { number, ..row })
        };
        Ok(entries.filter_map(approval).collect())
    }

    async fn feed_head(&self) -> Result<u64, StoreError> {
        Ok(self.tables().feed.next_number() - 1)
    }

    async fn permit_stream(&self, event_id: &str) -> Result<Option<PermitStream>, StoreError> {
        Ok(self.tables().permit_streams.get(&event_id.to_owned()).cloned())
    }

    async fn position(&self, reader: &str, session: SessionId, turn: u64) -> Result<u64, StoreError> {
        let key = PositionKey { reader: reader.to_owned(), turn: TurnKey { session, turn } };
        Ok(self.tables().positions.get(&key).copied().unwrap_or(0))
    }

    async fn audit(
        &self,
        filter: AuditFilter,
        from: AuditFrom,
        limit: u64,
    ) -> Result<Vec<AuditRow>, StoreError> {
        Ok(self.tables().audit_rows(&filter, from, limit))
    }

    async fn audit_head(&self) -> Result<AuditHead, StoreError> {
        self.tables().audit_head()
    }

    async fn check_audit(&self, after: AuditHead, upto: u64) -> Result<AuditCheck, StoreError> {
        Ok(self.tables().check_audit(after, upto))
    }

    async fn tally(&self) -> Result<Tally, StoreError> {
        Ok(self.tables().tally())
    }

    async fn old_records(
        &self,
        which: OldRecords,
        before: UnixSeconds,
        limit: u64,
    ) -> Result<Vec<Removable>, StoreError> {
        let mut old = self.tables().old_records(which, before)?;
        old.truncate(count(limit));
        Ok(old)
    }

    async fn finished_runs(
        &self,
        after: Option<FinishedRun>,
        limit: u64,
    ) -> Result<Vec<FinishedRun>, StoreError> {
        let place = |run: &FinishedRun| (run.ended_at, run.key);
        let after = after.as_ref().map(place);
        let runs = self.tables().finished_runs();
        Ok(runs
            .into_iter()
            .filter(|run| after.is_none_or(|after| place(run) > after))
            .take(count(limit))
            .collect())
    }
}
