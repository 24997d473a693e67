//! Reads the audit log from a database file, without a hub. The file is never written, and a hub may have it open.

use std::io;
use std::path::{Path, PathBuf};

use plexus_protocol::audit::{AuditHead, VerifyResult};
use rusqlite::{Connection, OpenFlags};

use super::connection::{self, Opening};
use super::schema;
use crate::sql::audit;
use crate::{AuditCheck, StoreError};

/// How many entries one read transaction covers. A long transaction keeps a running hub from checkpointing its write-ahead log.
const PAGE: u64 = 1000;

/// The audit log in a database file.
pub struct AuditFile {
    connection: Connection,
    path: PathBuf,
}

impl AuditFile {
    /// Opens the file for reading.
    ///
    /// # Errors
    /// If it does not exist, belongs to another program, or was written by a newer Plexus or by one without an audit log.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let open = || -> Result<Connection, Opening> {
            let connection = connection::open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
            schema::check(&connection)?;
            if !connection.table_exists(None, "audit")? {
                let why = "has no audit log, because an older version of plexus created it; the next `plexus \
                    serve` adds one";
                return Err(Opening::Refused(why.to_owned()));
            }
            Ok(connection)
        };
        let connection = open().map_err(|error| connection::describe(path, error))?;
        Ok(Self { connection, path: path.to_owned() })
    }

    /// Verifies the whole log, and that it contains every head that was `kept` elsewhere, in the order in which they were kept.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn verify(&self, kept: impl IntoIterator<Item = AuditHead>) -> Result<VerifyResult, StoreError> {
        let broken = |number, why: &str| Ok(VerifyResult::Broken { number, why: why.to_owned() });
        let mut head = AuditHead::start();
        for kept in kept {
            if kept.number < head.number {
                return broken(
                    kept.number,
                    "became the last entry again after a later one: the log was truncated",
                );
            }
            match self.walk(head, kept.number)? {
                AuditCheck::Broken { number, why } => return Ok(VerifyResult::Broken { number, why }),
                AuditCheck::Fits(end) if end.number < kept.number => {
                    return broken(
                        end.number + 1,
                        "is missing, although its head, or that of a later entry, was kept",
                    );
                }
                AuditCheck::Fits(end) if end.hash != kept.hash => {
                    return broken(kept.number, "differs from the kept head");
                }
                AuditCheck::Fits(end) => head = end,
            }
        }
        Ok(match self.walk(head, u64::MAX)? {
            AuditCheck::Fits(head) => VerifyResult::Ok { rows: head.number, head },
            AuditCheck::Broken { number, why } => VerifyResult::Broken { number, why },
        })
    }

    /// Passes each entry to `write` as a line of JSON that contains the stored text. The inner error says why the export stopped:
    /// at an invalid entry, or because `write` failed.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn export(
        &self,
        mut write: impl FnMut(String) -> io::Result<()>,
    ) -> Result<Result<(), String>, StoreError> {
        let mut head = AuditHead::start();
        loop {
            let upto = head.number + PAGE;
            let from = head.number;
            match self.check(&head, upto)? {
                AuditCheck::Fits(end) => head = end,
                AuditCheck::Broken { number, why } => {
                    return Ok(Err(format!("the audit log was changed: entry {number} {why}")));
                }
            }
            let written = audit::lines(&self.connection, from, head.number, &mut write);
            match written.map_err(|error| self.in_file(error))? {
                Ok(()) if head.number == upto => {}
                Ok(()) => return Ok(Ok(())),
                Err(error) => return Ok(Err(format!("the audit log cannot be exported: {error}"))),
            }
        }
    }

    /// Verifies the entries after `head` up to `upto` or the end, one page at a time.
    fn walk(&self, mut head: AuditHead, upto: u64) -> Result<AuditCheck, StoreError> {
        loop {
            let page = head.number.saturating_add(PAGE).min(upto);
            match self.check(&head, page)? {
                AuditCheck::Fits(end) if end.number == page && page < upto => head = end,
                found => return Ok(found),
            }
        }
    }

    fn check(&self, after: &AuditHead, upto: u64) -> Result<AuditCheck, StoreError> {
        audit::check(&self.connection, after, upto).map_err(|error| self.in_file(error))
    }

    fn in_file(&self, error: StoreError) -> StoreError {
        error.in_file(&self.path)
    }
}
