//! The record: one row per decision and per act of authority, written in the commit of the thing itself and chained to
//! the row before by its hash. The hash is SHA-256, in hex, over the hash before, the number and the entry as it is
//! stored, each on a line of its own. What an entry says of each sort of act is in `acts`.

use std::io;

use plexus_protocol::audit::{AuditEntry, AuditHead, AuditKind, AuditRow};
use plexus_protocol::{Decider, SessionId, UnixSeconds};
use rusqlite::{Connection, OptionalExtension, Result, Row};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::changes::Applying;
use super::columns::{Json, Text, Word, int};
use super::sql;
use crate::{AuditCheck, AuditFilter, AuditFrom, StoreError};

/// What one page of rows may hold, as text.
const PAGE_BYTES: usize = 1024 * 1024;

/// How far the record goes, as the writing thread knows it: read once, then kept while its transactions succeed.
#[derive(Debug, Clone, Default)]
pub(super) struct Chain {
    head: Option<AuditHead>,
}

impl Applying<'_> {
    /// Adds a row to the record.
    pub(super) fn record(&mut self, entry: &AuditEntry) -> std::result::Result<(), StoreError> {
        let last = match self.chain.head.take() {
            Some(head) => head,
            None => head(self.connection)?,
        };
        let number = last.number + 1;
        let text = serde_json::to_string(entry)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        let hash = link(&last.hash, number, &text);
        self.execute(
            "INSERT INTO audit (number, hash, at, kind, who, session, tool_name, entry) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            (
                number,
                &hash,
                entry.at,
                Word(entry.kind),
                entry.by.key(),
                entry.session_id.map(Text),
                &entry.tool_name,
                text,
            ),
        )?;
        let head = AuditHead { number, hash };
        self.made.audit = Some(head.clone());
        self.chain.head = Some(head);
        Ok(())
    }
}

fn link(before: &str, number: u64, entry: &str) -> String {
    let digest = Sha256::new()
        .chain_update(before)
        .chain_update(format!("\n{number}\n"))
        .chain_update(entry)
        .finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The last row.
pub(super) fn head(connection: &Connection) -> Result<AuditHead> {
    let last = connection
        .prepare_cached(sql::AUDIT_HEAD)?
        .query_row([], |row| Ok(AuditHead { number: row.get(0)?, hash: row.get(1)? }))
        .optional()?;
    Ok(last.unwrap_or_else(AuditHead::start))
}

/// The rows that `filter` lets pass, read in the direction of `from`.
pub(super) fn rows(
    connection: &Connection,
    filter: &AuditFilter,
    from: AuditFrom,
    limit: u64,
) -> Result<Vec<AuditRow>> {
    // A session's rows are fewer than a tool's.
    let (sql, edge) = match (from, filter) {
        (AuditFrom::After(edge), AuditFilter { session: Some(_), .. }) => (sql::AUDIT_OF_SESSION, edge),
        (AuditFrom::After(edge), AuditFilter { tool_name: Some(_), .. }) => (sql::AUDIT_OF_TOOL, edge),
        (AuditFrom::After(edge), _) => (sql::AUDIT, edge),
        (AuditFrom::Before(edge), AuditFilter { session: Some(_), .. }) => {
            (sql::NEWEST_AUDIT_OF_SESSION, edge)
        }
        (AuditFrom::Before(edge), AuditFilter { tool_name: Some(_), .. }) => {
            (sql::NEWEST_AUDIT_OF_TOOL, edge)
        }
        (AuditFrom::Before(edge), _) => (sql::NEWEST_AUDIT, edge),
    };
    let mut statement = connection.prepare_cached(sql)?;
    let mut found = statement.query((
        int(edge),
        int(limit),
        filter.since.map(int),
        filter.until.map(int),
        filter.kind.map(Word),
        &filter.by,
        &filter.tool_name,
        filter.session.map(Text),
    ))?;
    let (mut rows, mut bytes) = (Vec::new(), 0);
    while let Some(row) = found.next()? {
        bytes += row.get_ref("entry")?.as_str()?.len();
        if bytes > PAGE_BYTES && !rows.is_empty() {
            break;
        }
        let entry = row.get::<_, Json<_>>("entry")?.0;
        rows.push(AuditRow { number: row.get("number")?, hash: row.get("hash")?, entry });
    }
    Ok(rows)
}

/// Hands the rows after `after` up to `upto` to `write`, each as a line of JSON around the entry as it is stored. The
/// inner error is that of `write`.
pub(super) fn lines(
    connection: &Connection,
    after: u64,
    upto: u64,
    write: &mut impl FnMut(String) -> io::Result<()>,
) -> Result<io::Result<()>> {
    let mut statement = connection.prepare_cached(sql::AUDIT_CHAIN)?;
    let mut rows = statement.query((int(after), int(upto)))?;
    while let Some(row) = rows.next()? {
        let (number, hash, entry): (u64, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        if let Err(error) = write(format!("{{\"number\":{number},\"hash\":\"{hash}\",\"entry\":{entry}}}")) {
            return Ok(Err(error));
        }
    }
    Ok(Ok(()))
}

/// Whether the rows after `after` up to `upto` are those that were written, and, where they end before that, whether
/// none is missing there.
pub(super) fn check(connection: &Connection, after: &AuditHead, upto: u64) -> Result<AuditCheck> {
    // One moment's rows and counter: the writer goes on meanwhile.
    let moment = connection.unchecked_transaction()?;
    let mut head = after.clone();
    let mut statement = moment.prepare_cached(sql::AUDIT_CHAIN)?;
    // Numbers begin at 1; what someone put before that must not be passed over.
    let from = if after.number == 0 { i64::MIN } else { int(after.number) };
    let mut rows = statement.query((from, int(upto)))?;
    while let Some(row) = rows.next()? {
        match fits(row, &head) {
            Ok(next) => head = next,
            Err(why) => return Ok(AuditCheck::Broken { number: head.number + 1, why }),
        }
    }
    let given: Option<i64> = moment
        .prepare_cached("SELECT seq FROM sqlite_sequence WHERE name = 'audit'")?
        .query_row([], |row| row.get(0))
        .optional()?;
    if head.number < upto && given.unwrap_or(0) != int(head.number) {
        let why = match given {
            Some(given) if given > int(head.number) => format!("is missing: {given} rows were written"),
            _ => "would be the next, but the count of the rows that were written was changed".to_owned(),
        };
        return Ok(AuditCheck::Broken { number: head.number + 1, why });
    }
    Ok(AuditCheck::Fits(head))
}

/// The parts of an entry that stand in columns of their own.
#[derive(Deserialize)]
struct Repeated {
    at: UnixSeconds,
    kind: AuditKind,
    by: Decider,
    session_id: Option<SessionId>,
    tool_name: Option<String>,
}

/// The head that this row makes of the one before; else what is wrong with it.
fn fits(row: &Row<'_>, before: &AuditHead) -> std::result::Result<AuditHead, String> {
    let unreadable = |error: rusqlite::Error| format!("cannot be read: {error}");
    let expected = before.number + 1;
    let number: i64 = row.get("number").map_err(unreadable)?;
    if number != int(expected) {
        return Err(if number > int(expected) {
            "is missing".to_owned()
        } else {
            format!("is not the first: there is a row {number}")
        });
    }
    let text: String = row.get("entry").map_err(unreadable)?;
    let hash: String = row.get("hash").map_err(unreadable)?;
    if link(&before.hash, expected, &text) != hash {
        return Err("does not fit its hash and the row before".to_owned());
    }
    let Json(entry): Json<Repeated> = row.get("entry").map_err(unreadable)?;
    let column = |name: &str| row.get::<_, Option<String>>(name).map_err(unreadable);
    let kind: Word<AuditKind> = row.get("kind").map_err(unreadable)?;
    let same = row.get::<_, u64>("at").map_err(unreadable)? == entry.at
        && kind.0 == entry.kind
        && column("who")? == Some(entry.by.key())
        && column("session")? == entry.session_id.map(|id| id.to_string())
        && column("tool_name")? == entry.tool_name;
    if same {
        Ok(AuditHead { number: expected, hash })
    } else {
        Err("has a column that does not say what its entry says".to_owned())
    }
}
