//! The lifecycle of a run. A run starts once and ends once.

use serde_json::Value;

use super::{Commit, no_such};
use crate::rows::{NewRun, RunUpdate, SessionUpdate, Stored};
use crate::{RunKey, RunProcess, RunRow, RunState, TokenKey};

impl Commit<'_> {
    pub(super) fn start_run(&mut self, key: RunKey, state: RunState, token_hash: Option<&str>) -> Stored<()> {
        self.existing_session(key.session)?;
        self.rows.update_session(key.session, SessionUpdate::LatestRun(key.run))?;
        self.rows.insert_run(&NewRun { key, state, token_hash, created_at: self.at })
    }

    pub(super) fn run_process(&mut self, key: RunKey, process: Option<&RunProcess>) -> Stored<()> {
        let state = match self.run(key)?.state {
            RunState::Ended => RunState::Ended,
            _ => RunState::Running,
        };
        self.rows.update_run(key, RunUpdate::Process { process, state }).map(drop)
    }

    /// A run that has ended stays ended, even if a late change names another state.
    pub(super) fn run_state(&mut self, key: RunKey, state: RunState) -> Stored<()> {
        if self.run(key)?.state == RunState::Ended {
            return Ok(());
        }
        self.rows.update_run(key, RunUpdate::State(state)).map(drop)
    }

    /// Stores only the first end of a run. Each end publishes the run's token, so that every connection with it is closed.
    pub(super) fn end_run(&mut self, key: RunKey, exit: &Value) -> Stored<()> {
        if self.run(key)?.state != RunState::Ended {
            self.rows.update_run(key, RunUpdate::Ended { at: self.at, exit })?;
        }
        self.published.ended_tokens.push(TokenKey::Run(key));
        Ok(())
    }

    pub(super) fn journal_offset(&mut self, key: RunKey, offset: u64) -> Stored<()> {
        let updated = self.rows.update_run(key, RunUpdate::JournalOffset(offset))?;
        updated.then_some(()).ok_or_else(|| no_such(key.session))
    }

    fn run(&self, key: RunKey) -> Stored<RunRow> {
        self.rows.run(key)?.ok_or_else(|| no_such(key.session))
    }
}
