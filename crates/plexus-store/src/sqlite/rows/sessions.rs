//! Sessions and runs in SQL.

use plexus_protocol::{AskedOf, SessionId, SessionName};

use super::super::columns::{Json, Text, Word};
use super::super::{reads, sql};
use super::SqliteRows;
use crate::rows::{NewRun, RunUpdate, SessionRows, SessionUpdate, Stored};
use crate::{RunKey, RunRow, SessionRow};

impl SessionRows for SqliteRows<'_> {
    fn session(&self, id: SessionId) -> Stored<Option<SessionRow>> {
        Ok(reads::session(self.connection, id)?)
    }

    fn sessions_named(&self, name: &str) -> Stored<Vec<SessionRow>> {
        Ok(reads::sessions_named(self.connection, name)?)
    }

    fn session_exists(&self, id: SessionId) -> Stored<bool> {
        self.value(sql::SESSION_EXISTS, [Text(id)])
    }

    fn answers_to(&self, id: SessionId) -> Stored<Option<AskedOf>> {
        let found: Option<Json<_>> =
            reads::one(self.connection, sql::ANSWERS_TO, [Text(id)], |row| row.get(0))?;
        Ok(found.map(|Json(answers_to)| answers_to))
    }

    fn session_name(&self, id: SessionId) -> Stored<Option<SessionName>> {
        let found: Option<Word<_>> =
            reads::one(self.connection, sql::SESSION_NAME, [Text(id)], |row| row.get(0))?;
        Ok(found.map(|Word(name)| name))
    }

    fn insert_session(&mut self, row: &SessionRow) -> Stored<()> {
        self.execute(
            "INSERT INTO sessions (id, name, answers_to, config, tree, head, beginning, created_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            (
                Text(row.id),
                row.name.as_str(),
                Json(&row.answers_to),
                Json(&row.config),
                Text(row.tree),
                Text(row.head),
                Text(row.beginning),
                row.created_at,
            ),
        )?;
        Ok(())
    }

    fn update_session(&mut self, id: SessionId, update: SessionUpdate<'_>) -> Stored<()> {
        let id = Text(id);
        match update {
            SessionUpdate::Name(name) => {
                self.execute("UPDATE sessions SET name = ?2 WHERE id = ?1", (id, name.as_str()))
            }
            SessionUpdate::Config(config) => {
                self.execute("UPDATE sessions SET config = ?2 WHERE id = ?1", (id, Json(config)))
            }
            SessionUpdate::Deleted { at, config } => self.execute(
                "UPDATE sessions SET deleted_at = ?2, config = ?3 WHERE id = ?1",
                (id, at, Json(config)),
            ),
            SessionUpdate::LatestRun(run) => {
                self.execute("UPDATE sessions SET latest_run = ?2 WHERE id = ?1", (id, run))
            }
            SessionUpdate::LatestTurn { turn, woken_to } => self.execute(
                "UPDATE sessions SET latest_turn = ?2, woken_to = ?3 WHERE id = ?1",
                (id, turn, woken_to),
            ),
            SessionUpdate::Head(head) => {
                self.execute("UPDATE sessions SET head = ?2 WHERE id = ?1", (id, Text(head)))
            }
            SessionUpdate::CostUsd(cost) => {
                self.execute("UPDATE sessions SET cost_usd = ?2 WHERE id = ?1", (id, cost))
            }
            SessionUpdate::Title(title) => {
                self.execute("UPDATE sessions SET title = ?2 WHERE id = ?1", (id, title))
            }
            SessionUpdate::ArchivedAt(at) => self.execute(
                "UPDATE sessions SET archived_at = ?2 WHERE id = ?1 AND archived_at IS NOT ?2",
                (id, at),
            ),
        }?;
        Ok(())
    }

    fn run(&self, key: RunKey) -> Stored<Option<RunRow>> {
        Ok(reads::run(self.connection, key)?)
    }

    fn has_open_run(&self, session: SessionId) -> Stored<bool> {
        self.value(sql::HAS_OPEN_RUN, [Text(session)])
    }

    fn insert_run(&mut self, run: &NewRun<'_>) -> Stored<()> {
        let NewRun { key, state, token_hash, created_at } = run;
        self.execute(
            "INSERT INTO runs (session, run, state, token_hash, created_at) VALUES (?1, ?2, ?3, ?4, ?5)",
            (Text(key.session), key.run, Word(state), token_hash, created_at),
        )?;
        Ok(())
    }

    fn update_run(&mut self, key: RunKey, update: RunUpdate<'_>) -> Stored<bool> {
        let (session, run) = (Text(key.session), key.run);
        let updated = match update {
            RunUpdate::Process { process, state } => self.execute(
                "UPDATE runs SET process = ?3, state = ?4 WHERE session = ?1 AND run = ?2",
                (session, run, Json(process), Word(state)),
            ),
            RunUpdate::State(state) => self.execute(
                "UPDATE runs SET state = ?3 WHERE session = ?1 AND run = ?2",
                (session, run, Word(state)),
            ),
            RunUpdate::JournalOffset(offset) => self.execute(
                "UPDATE runs SET journal_offset = ?3 WHERE session = ?1 AND run = ?2",
                (session, run, offset),
            ),
            RunUpdate::Ended { at, exit } => self.execute(
                "UPDATE runs SET state = 'ended', token_hash = NULL, exit = ?3, ended_at = ?4 \
                 WHERE session = ?1 AND run = ?2",
                (session, run, Json(exit), at),
            ),
        }?;
        Ok(updated > 0)
    }

    fn mark_files_removed(&mut self, key: RunKey) -> Stored<bool> {
        Ok(self.execute(sql::MARK_FILES_REMOVED, (Text(key.session), key.run))? > 0)
    }
}
