//! Sessions and runs in SQL.

use plexus_protocol::{HostName, SessionId};

use super::super::columns::{Json, Text, Word};
use super::super::{Row, reads, statements};
use super::SqlRows;
use crate::rows::{NewRun, RunUpdate, SessionIdentity, SessionRows, SessionUpdate, Stored};
use crate::{RunKey, RunRow, SessionRow};

impl SessionRows for SqlRows<'_> {
    fn session(&self, id: SessionId) -> Stored<Option<SessionRow>> {
        reads::session(self.database, id)
    }

    fn sessions_named(&self, name: &str) -> Stored<Vec<SessionRow>> {
        reads::sessions_named(self.database, name)
    }

    fn session_identity(&self, id: SessionId) -> Stored<Option<SessionIdentity>> {
        self.database.one(statements::SESSION_IDENTITY, [Text(id)], identity)
    }

    fn insert_session(&mut self, row: &SessionRow) -> Stored<()> {
        self.write(
            "INSERT INTO sessions (id, name, answers_to, config, tree, head, beginning, created_at, host) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            (
                Text(row.id),
                row.name.as_str(),
                Json(&row.answers_to),
                Json(&row.config),
                Text(row.tree),
                Text(row.head),
                Text(row.beginning),
                row.created_at,
                row.host.as_ref().map(HostName::as_str),
            ),
        )
    }

    fn update_session(&mut self, id: SessionId, update: SessionUpdate<'_>) -> Stored<()> {
        let id = Text(id);
        match update {
            SessionUpdate::Name(name) => {
                self.write("UPDATE sessions SET name = ?2 WHERE id = ?1", (id, name.as_str()))
            }
            SessionUpdate::Config(config) => {
                self.write("UPDATE sessions SET config = ?2 WHERE id = ?1", (id, Json(config)))
            }
            SessionUpdate::Deleted { at, config } => self.write(
                "UPDATE sessions SET deleted_at = ?2, config = ?3 WHERE id = ?1",
                (id, at, Json(config)),
            ),
            SessionUpdate::LatestRun(run) => {
                self.write("UPDATE sessions SET latest_run = ?2 WHERE id = ?1", (id, run))
            }
            SessionUpdate::LatestTurn { turn, woken_to } => self.write(
                "UPDATE sessions SET latest_turn = ?2, woken_to = ?3 WHERE id = ?1",
                (id, turn, woken_to),
            ),
            SessionUpdate::Head(head) => {
                self.write("UPDATE sessions SET head = ?2 WHERE id = ?1", (id, Text(head)))
            }
            SessionUpdate::CostUsd(cost) => {
                self.write("UPDATE sessions SET cost_usd = ?2 WHERE id = ?1", (id, cost))
            }
            SessionUpdate::Title(title) => {
                self.write("UPDATE sessions SET title = ?2 WHERE id = ?1", (id, title))
            }
            SessionUpdate::ArchivedAt(at) => self.write(
                "UPDATE sessions SET archived_at = ?2 WHERE id = ?1 AND archived_at IS DISTINCT FROM ?2",
                (id, at),
            ),
        }
    }

    fn run(&self, key: RunKey) -> Stored<Option<RunRow>> {
        reads::run(self.database, key)
    }

    fn has_open_run(&self, session: SessionId) -> Stored<bool> {
        self.value(statements::HAS_OPEN_RUN, [Text(session)])
    }

    fn insert_run(&mut self, run: &NewRun<'_>) -> Stored<()> {
        let NewRun { key, state, token_hash, created_at } = run;
        self.write(
            "INSERT INTO runs (session, run, state, token_hash, created_at) VALUES (?1, ?2, ?3, ?4, ?5)",
            (Text(key.session), key.run, Word(state), token_hash, created_at),
        )
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
        Ok(self.execute(statements::MARK_FILES_REMOVED, (Text(key.session), key.run))? > 0)
    }
}

/// The identity of the session in a row.
pub(super) fn identity(row: &Row<'_>) -> Stored<SessionIdentity> {
    Ok(SessionIdentity {
        name: row.get::<Word<_>>("name")?.0,
        answers_to: row.get::<Json<_>>("answers_to")?.0,
        host: row.get::<Option<Word<_>>>("host")?.map(|host| host.0),
    })
}
