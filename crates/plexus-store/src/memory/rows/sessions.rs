//! Sessions and runs in memory.

use plexus_protocol::SessionId;

use super::super::tables::{Files, Run, Session, Tables};
use crate::rows::{NewRun, RunUpdate, SessionIdentity, SessionRows, SessionUpdate, Stored};
use crate::{RunKey, RunRow, RunState, SessionRow};

impl SessionRows for Tables {
    fn session(&self, id: SessionId) -> Stored<Option<SessionRow>> {
        Ok(self.sessions.get(&id).map(|session| session.row.clone()))
    }

    fn sessions_named(&self, name: &str) -> Stored<Vec<SessionRow>> {
        let is_named = |row: &&SessionRow| row.name.as_str() == name && row.deleted_at.is_none();
        Ok(self.sessions.values().map(|session| &session.row).filter(is_named).cloned().collect())
    }

    fn session_identity(&self, id: SessionId) -> Stored<Option<SessionIdentity>> {
        Ok(self.sessions.get(&id).map(|Session { row, .. }| SessionIdentity {
            name: row.name.clone(),
            answers_to: row.answers_to.clone(),
            host: row.host.clone(),
        }))
    }

    fn insert_session(&mut self, row: &SessionRow) -> Stored<()> {
        let ordinal = self.sessions.len();
        self.sessions.put(row.id, Session { ordinal, row: row.clone() });
        Ok(())
    }

    fn update_session(&mut self, id: SessionId, update: SessionUpdate<'_>) -> Stored<()> {
        self.sessions.update(&id, |Session { row, .. }| match update {
            SessionUpdate::Name(name) => row.name = name.clone(),
            SessionUpdate::Config(config) => row.config = config.clone(),
            SessionUpdate::Deleted { at, config } => {
                row.deleted_at = Some(at);
                row.config = config.clone();
            }
            SessionUpdate::LatestRun(run) => row.latest_run = run,
            SessionUpdate::LatestTurn { turn, woken_to } => {
                row.latest_turn = turn;
                row.woken_to = woken_to;
            }
            SessionUpdate::Head(head) => row.head = head,
            SessionUpdate::CostUsd(cost) => row.cost_usd = cost,
            SessionUpdate::Title(title) => row.title = Some(title.to_owned()),
            SessionUpdate::ArchivedAt(at) => row.archived_at = at,
        });
        Ok(())
    }

    fn run(&self, key: RunKey) -> Stored<Option<RunRow>> {
        Ok(self.runs.get(&key).map(|run| run.row.clone()))
    }

    fn has_open_run(&self, session: SessionId) -> Stored<bool> {
        let is_open = |run: &Run| run.row.key.session == session && run.row.state != RunState::Ended;
        Ok(self.runs.values().any(is_open))
    }

    fn insert_run(&mut self, run: &NewRun<'_>) -> Stored<()> {
        let NewRun { key, state, token_hash, created_at } = *run;
        let row = RunRow { key, state, process: None, journal_offset: 0, created_at };
        let token_hash = token_hash.map(str::to_owned);
        self.runs.put(key, Run { row, token_hash, ended_at: None, files: Files::Kept });
        Ok(())
    }

    fn update_run(&mut self, key: RunKey, update: RunUpdate<'_>) -> Stored<bool> {
        Ok(self.runs.update(&key, |run| match update {
            RunUpdate::Process { process, state } => {
                run.row.process = process.cloned();
                run.row.state = state;
            }
            RunUpdate::State(state) => run.row.state = state,
            RunUpdate::JournalOffset(offset) => run.row.journal_offset = offset,
            // Nothing reads the exit status back.
            RunUpdate::Ended { at, exit: _ } => {
                run.row.state = RunState::Ended;
                run.token_hash = None;
                run.ended_at = Some(at);
            }
        }))
    }

    fn mark_files_removed(&mut self, key: RunKey) -> Stored<bool> {
        let are_kept = self.runs.get(&key).is_some_and(|run| run.files == Files::Kept);
        Ok(are_kept && self.runs.update(&key, |run| run.files = Files::Removed))
    }
}
