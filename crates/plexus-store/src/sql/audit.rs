//! Reads and verifies the audit log. Its rules are in `crate::domain::audit_chain`, the contents of its entries in
//! `crate::domain::audit_entries`.

use std::io;
use std::ops::ControlFlow;

use plexus_protocol::audit::{AuditHead, AuditRow};

use super::columns::{Json, Text, Word, int};
use super::{Database, Row, statements};
use crate::domain::audit_chain::{self, Columns, StoredEntry};
use crate::page::Page;
use crate::rows::Stored;
use crate::{AuditCheck, AuditFilter, AuditFrom};

/// The last entry.
pub(crate) fn head(database: &dyn Database) -> Stored<AuditHead> {
    let last = database.one(database.dialect().audit_head, (), |row| {
        Ok(AuditHead { number: row.get(0)?, hash: row.get(1)? })
    })?;
    Ok(last.unwrap_or_else(AuditHead::start))
}

/// The entries that match `filter`, read in the direction of `from`.
pub(crate) fn rows(
    database: &dyn Database,
    filter: &AuditFilter,
    from: AuditFrom,
    limit: u64,
) -> Stored<Vec<AuditRow>> {
    // A session has fewer entries than a tool.
    let (sql, edge) = match (from, filter) {
        (AuditFrom::After(edge), AuditFilter { session: Some(_), .. }) => {
            (statements::AUDIT_OF_SESSION, edge)
        }
        (AuditFrom::After(edge), AuditFilter { tool_name: Some(_), .. }) => (statements::AUDIT_OF_TOOL, edge),
        (AuditFrom::After(edge), _) => (statements::AUDIT, edge),
        (AuditFrom::Before(edge), AuditFilter { session: Some(_), .. }) => {
            (statements::NEWEST_AUDIT_OF_SESSION, edge)
        }
        (AuditFrom::Before(edge), AuditFilter { tool_name: Some(_), .. }) => {
            (statements::NEWEST_AUDIT_OF_TOOL, edge)
        }
        (AuditFrom::Before(edge), _) => (statements::NEWEST_AUDIT, edge),
    };
    let matching = (
        int(edge),
        int(limit),
        filter.since.map(int),
        filter.until.map(int),
        filter.kind.map(Word),
        &filter.by,
        &filter.tool_name,
        filter.session.map(Text),
    );
    let mut page = Page::new();
    database.each(sql, matching, |row| {
        if !page.has_room_for(row.text("entry")?.len()) {
            return Ok(ControlFlow::Break(()));
        }
        let entry = match row.get::<Json<_>>("entry") {
            Ok(Json(entry)) => entry,
            // One entry, which a host with a role of its own may have written, does not hide all others.
            Err(error) => audit_chain::readable_part(&row.text("entry")?).ok_or(error)?,
        };
        page.push(AuditRow { number: row.get("number")?, hash: row.get("hash")?, entry });
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(page.rows())
}

/// Passes the entries after `after` up to `upto` to `write`, each as a line of JSON around the stored text. The inner
/// error is that of `write`.
pub(crate) fn lines(
    database: &dyn Database,
    after: u64,
    upto: u64,
    write: &mut impl FnMut(String) -> io::Result<()>,
) -> Stored<io::Result<()>> {
    let mut written = Ok(());
    database.each(statements::AUDIT_CHAIN, (int(after), int(upto)), |row| {
        let (number, hash, entry) = (row.get::<u64>(0)?, row.text(1)?, row.text(2)?);
        written = write(format!("{{\"number\":{number},\"hash\":\"{hash}\",\"entry\":{entry}}}"));
        Ok(if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    Ok(written)
}

/// Verifies the entries after `after` up to `upto`. If the log ends before `upto`, verifies that none is missing at its end.
pub(crate) fn check(database: &dyn Database, after: &AuditHead, upto: u64) -> Stored<AuditCheck> {
    // Entries and counter are read from one snapshot: the writer continues meanwhile.
    let _snapshot = database.snapshot()?;
    let mut head = after.clone();
    // Numbers start at 1. An inserted entry with a lower number must be found too.
    let from = if after.number == 0 { i64::MIN } else { int(after.number) };
    let mut broken = None;
    database.each(statements::AUDIT_CHAIN, (from, int(upto)), |row| {
        match verify(row, &head) {
            Ok(next) => head = next,
            Err(why) => {
                broken = Some(why);
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    if let Some(why) = broken {
        return Ok(AuditCheck::Broken { number: head.number + 1, why });
    }
    let given: Option<i64> = database.one(database.dialect().written_audit_entries, (), |row| row.get(0))?;
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
fn verify(row: &Row<'_>, before: &AuditHead) -> Result<AuditHead, String> {
    let stored = stored_entry(row).map_err(|error| format!("cannot be read ({error})"))?;
    audit_chain::verify(before, &stored)
}

fn stored_entry(row: &Row<'_>) -> Stored<StoredEntry> {
    Ok(StoredEntry {
        number: row.get("number")?,
        hash: row.get("hash")?,
        text: row.get("entry")?,
        columns: Columns {
            at: row.get("at")?,
            kind: row.get::<Word<_>>("kind")?.0,
            who: row.get("who")?,
            session: row.get("session")?,
            tool_name: row.get("tool_name")?,
        },
    })
}
