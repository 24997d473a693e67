//! Reads and verifies the audit log. Its rules are in `crate::domain::audit_chain`, the contents of its entries in
//! `crate::domain::audit_entries`.

use std::io;

use plexus_protocol::audit::{AuditHead, AuditRow};
use rusqlite::{Connection, OptionalExtension, Result, Row};

use super::columns::{Json, Text, Word, int};
use super::sql;
use crate::domain::audit_chain::{self, Columns, StoredEntry};
use crate::page::Page;
use crate::{AuditCheck, AuditFilter, AuditFrom};

/// The head of the audit log as the writing thread knows it: read once, then kept in memory while transactions succeed. So a log
/// that is rewritten under a running hub breaks at the next entry.
#[derive(Debug, Clone, Default)]
pub(super) struct Chain {
    head: Option<AuditHead>,
}

impl Chain {
    pub(super) fn head(&self) -> Option<&AuditHead> {
        self.head.as_ref()
    }

    pub(super) fn append(&mut self, head: &AuditHead) {
        self.head = Some(head.clone());
    }
}

/// The last entry.
pub(super) fn head(connection: &Connection) -> Result<AuditHead> {
    let last = connection
        .prepare_cached(sql::AUDIT_HEAD)?
        .query_row([], |row| Ok(AuditHead { number: row.get(0)?, hash: row.get(1)? }))
        .optional()?;
    Ok(last.unwrap_or_else(AuditHead::start))
}

/// The entries that match `filter`, read in the direction of `from`.
pub(super) fn rows(
    connection: &Connection,
    filter: &AuditFilter,
    from: AuditFrom,
    limit: u64,
) -> Result<Vec<AuditRow>> {
    // A session has fewer entries than a tool.
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
    let mut page = Page::new();
    while let Some(row) = found.next()? {
        if !page.has_room_for(row.get_ref("entry")?.as_str()?.len()) {
            break;
        }
        let entry = row.get::<_, Json<_>>("entry")?.0;
        page.push(AuditRow { number: row.get("number")?, hash: row.get("hash")?, entry });
    }
    Ok(page.rows())
}

/// Passes the entries after `after` up to `upto` to `write`, each as a line of JSON around the stored text. The inner
/// error is that of `write`.
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

/// Verifies the entries after `after` up to `upto`. If the log ends before `upto`, verifies that none is missing at its end.
pub(super) fn check(connection: &Connection, after: &AuditHead, upto: u64) -> Result<AuditCheck> {
    // Entries and counter are read from one snapshot: the writer continues meanwhile.
    let moment = connection.unchecked_transaction()?;
    let mut head = after.clone();
    let mut statement = moment.prepare_cached(sql::AUDIT_CHAIN)?;
    // Numbers start at 1. An inserted entry with a lower number must be found too.
    let from = if after.number == 0 { i64::MIN } else { int(after.number) };
    let mut rows = statement.query((from, int(upto)))?;
    while let Some(row) = rows.next()? {
        match verify(row, &head) {
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
            Some(given) if given > int(head.number) => {
                format!("is missing, although {given} entries were written")
            }
            _ => "would be next, but the count of written entries was changed".to_owned(),
        };
        return Ok(AuditCheck::Broken { number: head.number + 1, why });
    }
    Ok(AuditCheck::Fits(head))
}

/// The head after this row, or what is wrong with the row.
fn verify(row: &Row<'_>, before: &AuditHead) -> std::result::Result<AuditHead, String> {
    let stored = stored_entry(row).map_err(|error| format!("cannot be read: {error}"))?;
    audit_chain::verify(before, &stored)
}

fn stored_entry(row: &Row<'_>) -> Result<StoredEntry> {
    Ok(StoredEntry {
        number: row.get("number")?,
        hash: row.get("hash")?,
        text: row.get("entry")?,
        columns: Columns {
            at: row.get("at")?,
            kind: row.get::<_, Word<_>>("kind")?.0,
            who: row.get("who")?,
            session: row.get("session")?,
            tool_name: row.get("tool_name")?,
        },
    })
}
