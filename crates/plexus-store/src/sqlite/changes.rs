//! Does the changes of one commit, inside the savepoint that the writer has opened for it. Here are sessions, runs,
//! turns, events, trees and positions; what concerns approvals is in `approvals`, what removes in `removals`.
//!
//! Whether a change fits is looked up before it is done: only one thread writes, so nothing can come in between.
//! Where a run or a turn that should be there is not, the whole is refused with `NoSuchSession`.

use plexus_protocol::budget::BudgetLimit;
use plexus_protocol::{ApprovalId, ApprovalStatus, AskedOf, Event, SessionId, SessionName, UnixSeconds};
use rusqlite::{Connection, Params};
use serde_json::{Value, json};

use super::audit::Chain;
use super::columns::{Json, Text, Word, int};
use super::reads;
use crate::{
    Begins, Change, Committed, EventRow, FeedKind, FeedRow, NewSession, Refusal, RuleChange, RunKey,
    RunState, SessionConfig, SessionRow, StoreError, TurnStatus,
};

/// Trees are a few levels deep; this only stops a walk over a damaged store.
pub(super) const MAX_DEPTH: usize = 64;

/// What another turn needs some of.
const OF_A_TURN: [BudgetLimit; 3] = [BudgetLimit::Turns, BudgetLimit::CostUsd, BudgetLimit::WallSecs];

/// Does all of `changes`, or fails with some of them done: the caller rolls back.
pub(super) fn apply(
    connection: &Connection,
    chain: &mut Chain,
    at: UnixSeconds,
    changes: &[Change],
) -> Result<Committed, StoreError> {
    let mut applying = Applying { connection, chain, at, made: Committed::default(), approvals: Vec::new() };
    for change in changes {
        applying.apply(change)?;
    }
    applying.finish()
}

/// One commit under way.
pub(super) struct Applying<'a> {
    pub(super) connection: &'a Connection,
    pub(super) chain: &'a mut Chain,
    pub(super) at: UnixSeconds,
    pub(super) made: Committed,
    /// The approvals this commit has asked or ended; read when all is done.
    approvals: Vec<ApprovalId>,
}

impl Applying<'_> {
    fn apply(&mut self, change: &Change) -> Result<(), StoreError> {
        match change {
            Change::CreateSession(new) => self.create_session(new),
            Change::RenameSession(id, name) => self.rename_session(*id, name),
            Change::Configure(id, config) => self.configure(*id, config),
            Change::DeleteSession(id) => self.delete_session(*id),
            Change::BeginRun { key, state, token_hash } => {
                self.begin_run(*key, *state, token_hash.as_deref())
            }
            Change::RunProcess(key, process) => self.run_process(*key, process),
            Change::RunState(key, RunState::Ended) => self.end_run(*key, &Value::Null),
            Change::RunState(key, state) => self.run_state(*key, *state),
            Change::EndRun(key, exit) => self.end_run(*key, exit),
            Change::Offset(key, offset) => self.offset(*key, *offset),
            Change::BeginTurn { session, turn, prompt, woken_to } => {
                self.begin_turn(*session, *turn, prompt, *woken_to)
            }
            Change::BindTurn { session, turn, run, prompt_uuid } => {
                self.bind_turn(*session, *turn, *run, prompt_uuid)
            }
            Change::Progress(session, turn, progress) => self.progress(*session, *turn, progress),
            Change::Event(session, turn, event) => self.event(*session, *turn, event),
            Change::AddNode(session, node) => self.add_node(*session, node),
            Change::ExtendNode { node, blocks, uuid } => self.extend_node(*node, blocks, uuid.as_deref()),
            Change::EndTurn { session, turn, status, last, summary, cost_usd } => {
                let ending =
                    Ending { status: *status, last, summary: summary.as_deref(), cost_usd: *cost_usd };
                self.end_turn(*session, *turn, &ending)
            }
            Change::Call(call, seen) => self.call(call, seen),
            Change::Release(call, seen) => self.release(call, seen),
            Change::SetBudget(session, limits) => self.set_budget(*session, limits),
            Change::Spend(session, limit, amount) => self.spend(*session, *limit, *amount),
            Change::CheckBudget(session) => self.check_left(*session, &OF_A_TURN),
            Change::AskBudget(session) => self.ask_budget(*session),
            Change::Ask(new) => self.ask(new),
            Change::Resolve { approval, status, decision } => self.resolve(*approval, *status, decision),
            Change::ResolveIfPending { approval, status, decision } => {
                if *status == ApprovalStatus::Expired && !self.is_due(*approval)? {
                    return Ok(());
                }
                match self.resolve(*approval, *status, decision) {
                    Err(StoreError::Refused(Refusal::AlreadyResolved(_))) => Ok(()),
                    other => other,
                }
            }
            Change::PassOn { approval, passed, to, passes_on_at } => {
                self.pass_on(*approval, passed, to, *passes_on_at)
            }
            Change::Extend { approval, expires_at } => self.extend(*approval, *expires_at),
            Change::Delivered(approval) => self.delivered(*approval),
            Change::Settle(key, tool_use_id) => self.settle(*key, tool_use_id),
            Change::MakeRule(rule) => self.make_rule(rule),
            Change::RevokeRule { number, by } => self.revoke_rule(*number, by),
            Change::MakeToken { token, hash, by } => self.make_token(token, hash, by),
            Change::RevokeToken { name, by } => self.revoke_token(name, by),
            Change::Stream(stream) => self.stream(stream),
            Change::Position { reader, session, turn, position } => {
                self.position(reader, *session, *turn, *position)
            }
            Change::Record(entry) => self.record(entry),
            Change::Remove(what) => self.remove(what),
            Change::Notice { to, session, data } => {
                self.known(*session)?;
                self.feed(to, FeedKind::Notice, *session, About::default(), data.clone()).map(drop)
            }
        }
    }

    fn finish(mut self) -> Result<Committed, StoreError> {
        for id in self.approvals {
            self.made.approvals.extend(reads::approval(self.connection, id)?);
        }
        Ok(self.made)
    }

    fn create_session(&mut self, new: &NewSession) -> Result<(), StoreError> {
        self.free(&new.name, new.id)?;
        // Whoever deletes a session deletes what is below it; nothing comes in between.
        if let AskedOf::Session { id } = new.answers_to {
            if self.session(id)?.deleted_at.is_some() {
                return Err(Refusal::NoSuchSession(id).into());
            }
            self.check_left(id, &[BudgetLimit::Children])?;
            self.spend(id, BudgetLimit::Children, 1)?;
        }
        let tree = Text(new.tree);
        if new.begins == Begins::NewTree {
            self.plant(new.tree, new.head)?;
        }
        self.execute(
            "INSERT INTO sessions (id, name, answers_to, config, tree, head, beginning, created_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7)",
            (
                Text(new.id),
                new.name.as_str(),
                Json(&new.answers_to),
                Json(&new.config),
                &tree,
                Text(new.head),
                self.at,
            ),
        )?;
        self.made_session(new)
    }

    fn rename_session(&self, id: SessionId, name: &SessionName) -> Result<(), StoreError> {
        self.free(name, id)?;
        let renamed = self.execute(
            "UPDATE sessions SET name = ?2 WHERE id = ?1 AND deleted_at IS NULL",
            (Text(id), name.as_str()),
        )?;
        there(renamed, id)
    }

    fn configure(&self, id: SessionId, config: &SessionConfig) -> Result<(), StoreError> {
        let configured = self.execute(
            "UPDATE sessions SET config = ?2 WHERE id = ?1 AND deleted_at IS NULL",
            (Text(id), Json(config)),
        )?;
        there(configured, id)
    }

    /// What it was given to reach its servers goes with it; its processes have it for as long as they run.
    fn delete_session(&mut self, id: SessionId) -> Result<(), StoreError> {
        self.give_back(id)?;
        let deleted = self.execute(
            "UPDATE sessions SET deleted_at = ?2, config = json_remove(config, '$.mcp_servers', '$.project') \
             WHERE id = ?1 AND deleted_at IS NULL",
            (Text(id), self.at),
        )?;
        there(deleted, id)
    }

    fn begin_run(&self, key: RunKey, state: RunState, token_hash: Option<&str>) -> Result<(), StoreError> {
        let latest = self.execute(
            "UPDATE sessions SET latest_run = ?2 WHERE id = ?1 AND deleted_at IS NULL",
            (Text(key.session), key.run),
        )?;
        there(latest, key.session)?;
        self.execute(
            "INSERT INTO runs (session, run, state, token_hash, created_at) VALUES (?1, ?2, ?3, ?4, ?5)",
            (Text(key.session), key.run, Word(state), token_hash, self.at),
        )?;
        Ok(())
    }

    fn run_process(&self, key: RunKey, process: &Value) -> Result<(), StoreError> {
        let known = self.execute(
            "UPDATE runs SET process = ?3, state = iif(state = 'ended', state, 'running') \
             WHERE session = ?1 AND run = ?2",
            (Text(key.session), key.run, Json(process)),
        )?;
        there(known, key.session)
    }

    /// Over is over: a run that has ended is not moved on by someone who came late.
    fn run_state(&self, key: RunKey, state: RunState) -> Result<(), StoreError> {
        let moved = self.execute(
            "UPDATE runs SET state = iif(state = 'ended', state, ?3) WHERE session = ?1 AND run = ?2",
            (Text(key.session), key.run, Word(state)),
        )?;
        there(moved, key.session)
    }

    fn end_run(&mut self, key: RunKey, exit: &Value) -> Result<(), StoreError> {
        let ended = self.execute(
            "UPDATE runs SET state = 'ended', token_hash = NULL, exit = coalesce(exit, ?3), \
             ended_at = coalesce(ended_at, ?4) WHERE session = ?1 AND run = ?2",
            (Text(key.session), key.run, Json(exit), self.at),
        )?;
        self.ended_token(format!("run:{}:{}", key.session, key.run));
        there(ended, key.session)
    }

    fn offset(&self, key: RunKey, offset: u64) -> Result<(), StoreError> {
        let moved = self.execute(
            "UPDATE runs SET journal_offset = ?3 WHERE session = ?1 AND run = ?2",
            (Text(key.session), key.run, offset),
        )?;
        there(moved, key.session)
    }

    fn begin_turn(
        &mut self,
        session: SessionId,
        turn: u64,
        prompt: &str,
        woken_to: Option<u64>,
    ) -> Result<(), StoreError> {
        let row = self.session(session)?;
        if row.deleted_at.is_some() {
            return Err(Refusal::NoSuchSession(session).into());
        }
        let latest = reads::turn(self.connection, session, row.latest_turn)?;
        let running = latest.is_some_and(|latest| latest.status == TurnStatus::Running);
        if running || turn != row.latest_turn + 1 {
            return Err(Refusal::TurnInProgress(row.latest_turn).into());
        }
        self.execute(
            "INSERT INTO turns (session, turn, prompt, started_at) VALUES (?1, ?2, ?3, ?4)",
            (Text(session), turn, prompt, self.at),
        )?;
        self.execute(
            "UPDATE sessions SET latest_turn = ?2, woken_to = max(woken_to, coalesce(?3, 0)) WHERE id = ?1",
            (Text(session), turn, woken_to),
        )?;
        self.spend(session, BudgetLimit::Turns, 1)
    }

    fn bind_turn(
        &self,
        session: SessionId,
        turn: u64,
        run: u32,
        prompt_uuid: &str,
    ) -> Result<(), StoreError> {
        let bound = self.execute(
            "UPDATE turns SET run = ?3, prompt_uuid = ?4 WHERE session = ?1 AND turn = ?2",
            (Text(session), turn, run, prompt_uuid),
        )?;
        there(bound, session)
    }

    fn progress(&self, session: SessionId, turn: u64, progress: &Value) -> Result<(), StoreError> {
        let kept = self.execute(
            "UPDATE turns SET progress = ?3 WHERE session = ?1 AND turn = ?2",
            (Text(session), turn, Json(progress)),
        )?;
        there(kept, session)
    }

    fn end_turn(&mut self, session: SessionId, turn: u64, ending: &Ending<'_>) -> Result<(), StoreError> {
        let Ending { status, last, summary, cost_usd } = *ending;
        let ended = self.execute(
            "UPDATE turns SET status = ?3, ended_at = ?4, head = (SELECT head FROM sessions WHERE id = ?1) \
             WHERE session = ?1 AND turn = ?2 AND status = 'running'",
            (Text(session), turn, Word(status), self.at),
        )?;
        if ended == 0 {
            return Ok(());
        }
        self.event(session, turn, last)?;
        self.execute(
            "UPDATE sessions SET cost_usd = cost_usd + ?2 WHERE id = ?1",
            (Text(session), cost_usd),
        )?;
        self.waits_no_more(session)?;
        if let Some(cost) = BudgetLimit::CostUsd.units(cost_usd) {
            self.spend(session, BudgetLimit::CostUsd, cost)?;
        }
        for to in self.told_of_ends(session)? {
            let about = About { turn: Some(turn), ..About::default() };
            let data = json!({"status": status, "summary": summary});
            self.feed(&to, FeedKind::Finished, session, about, data)?;
        }
        Ok(())
    }

    /// Whoever answers for a session, and every agent above. The operator, who stands above all, is told of what it made
    /// itself: the rest is for those who made it.
    pub(super) fn told_of_ends(&self, session: SessionId) -> Result<Vec<String>, StoreError> {
        let mut answers_to = self.session(session)?.answers_to;
        let mut told = vec![answers_to.key()];
        while let AskedOf::Session { id } = answers_to
            && told.len() < MAX_DEPTH
            && let Some(above) = reads::session(self.connection, id)?
        {
            answers_to = above.answers_to;
            if answers_to != AskedOf::Operator {
                told.push(answers_to.key());
            }
        }
        Ok(told)
    }

    fn position(&self, reader: &str, session: SessionId, turn: u64, position: u64) -> Result<(), StoreError> {
        self.known(session)?;
        self.execute(
            "INSERT INTO positions (reader, session, turn, position) VALUES (?1, ?2, ?3, ?4) \
             ON CONFLICT DO UPDATE SET position = excluded.position",
            (reader, Text(session), int(turn), int(position)),
        )?;
        Ok(())
    }

    /// Appends an event under the next free number of its turn.
    pub(super) fn event(&mut self, session: SessionId, turn: u64, event: &Event) -> Result<(), StoreError> {
        self.known(session)?;
        let event = serde_json::to_value(event)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        let seq = reads::event_count(self.connection, session, turn)?;
        self.execute(
            "INSERT INTO events (session, turn, seq, event, at) VALUES (?1, ?2, ?3, ?4, ?5)",
            (Text(session), turn, seq, Json(&event), self.at),
        )?;
        self.made.events.push(EventRow { session, turn, seq, event, at: self.at });
        Ok(())
    }

    /// Appends a feed entry and returns its number.
    pub(super) fn feed(
        &mut self,
        to: &str,
        kind: FeedKind,
        session: SessionId,
        about: About,
        data: Value,
    ) -> Result<u64, StoreError> {
        let number = self
            .connection
            .prepare_cached(
                "INSERT INTO feed (addressee, kind, session, approval, turn, data, at) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING number",
            )?
            .query_row(
                (to, Word(kind), Text(session), about.approval.map(Text), about.turn, Json(&data), self.at),
                |row| row.get(0),
            )?;
        self.made.feed.push(FeedRow {
            number,
            to: to.to_owned(),
            kind,
            session,
            approval: about.approval,
            turn: about.turn,
            data,
        });
        Ok(number)
    }

    /// Remembers to return this approval as it is at the end of the commit.
    pub(super) fn made_approval(&mut self, id: ApprovalId) {
        if !self.approvals.contains(&id) {
            self.approvals.push(id);
        }
    }

    /// Remembers to tell what became of a rule.
    pub(super) fn changed_rule(&mut self, change: RuleChange) {
        self.made.rules.push(change);
    }

    /// Remembers to tell that a token is good for nothing any more.
    pub(super) fn ended_token(&mut self, key: String) {
        self.made.ended_tokens.push(key);
    }

    /// Counts what this commit removed.
    pub(super) fn removed(&mut self, rows: usize) {
        self.made.removed += rows;
    }

    /// Whether the session is there. It may be deleted: what its child still does is recorded.
    pub(super) fn known(&self, id: SessionId) -> Result<(), StoreError> {
        let sql = "SELECT count(*) FROM sessions WHERE id = ?1";
        let known = self.connection.prepare_cached(sql)?.query_row([Text(id)], |row| row.get(0))?;
        there(known, id)
    }

    pub(super) fn session(&self, id: SessionId) -> Result<SessionRow, StoreError> {
        reads::session(self.connection, id)?.ok_or_else(|| Refusal::NoSuchSession(id).into())
    }

    pub(super) fn execute(&self, sql: &str, params: impl Params) -> Result<usize, StoreError> {
        Ok(self.connection.prepare_cached(sql)?.execute(params)?)
    }

    /// Whether no other living session has this name.
    fn free(&self, name: &SessionName, own: SessionId) -> Result<(), StoreError> {
        match reads::session_named(self.connection, name.as_str())? {
            Some(other) if other.id != own => Err(Refusal::NameTaken(name.to_string()).into()),
            _ => Ok(()),
        }
    }
}

/// How a turn ends.
struct Ending<'a> {
    status: TurnStatus,
    last: &'a Event,
    summary: Option<&'a str>,
    cost_usd: f64,
}

/// What a feed entry is about, besides its session.
#[derive(Default)]
pub(super) struct About {
    pub(super) approval: Option<ApprovalId>,
    pub(super) turn: Option<u64>,
}

fn there(rows: usize, session: SessionId) -> Result<(), StoreError> {
    if rows == 0 { Err(Refusal::NoSuchSession(session).into()) } else { Ok(()) }
}
