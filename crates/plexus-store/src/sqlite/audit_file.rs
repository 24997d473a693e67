//! The record of a store that nobody needs to serve: read from the file alone, which is never written to, whether or not
//! a hub has it open.

use std::io;
use std::path::{Path, PathBuf};

use plexus_protocol::audit::{AuditHead, VerifyResult};
use rusqlite::{Connection, OpenFlags};

use super::connection::{self, Opening};
use super::{audit, schema};
use crate::{AuditCheck, StoreError};

/// How many rows are read in one go; a reader that stays too long keeps the log of a running hub from being tidied up.
const PAGE: u64 = 1000;

/// The record in a database file.
pub struct AuditFile {
    connection: Connection,
    path: PathBuf,
}

impl AuditFile {
    /// Opens the file to read it.
    ///
    /// # Errors
    /// When it is not there, not ours, newer than this program, or from before there was a record.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let open = || -> Result<Connection, Opening> {
            let connection = connection::open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
            schema::check(&connection)?;
            if !connection.table_exists(None, "audit")? {
                let why = "holds no record: an older plexus wrote it, and the next `plexus serve` begins one";
                return Err(Opening::Refused(why.to_owned()));
            }
            Ok(connection)
        };
        let connection = open().map_err(|error| connection::told(path, error))?;
        Ok(Self { connection, path: path.to_owned() })
    }

    /// Whether all of the record is what was written, and holds every one of the heads that were `kept` of it elsewhere,
    /// in the order in which they were kept.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn verify(&self, kept: impl IntoIterator<Item = AuditHead>) -> Result<VerifyResult, StoreError> {
        let broken = |number, why: &str| Ok(VerifyResult::Broken { number, why: why.to_owned() });
        let mut head = AuditHead::start();
        for kept in kept {
            if kept.number < head.number {
                return broken(
                    kept.number,
                    "was kept as the last when there had been more: the record was cut",
                );
            }
            match self.walk(head, kept.number)? {
                AuditCheck::Broken { number, why } => return Ok(VerifyResult::Broken { number, why }),
                AuditCheck::Fits(end) if end.number < kept.number => {
                    return broken(end.number + 1, "is missing: a head was kept of a row after it");
                }
                AuditCheck::Fits(end) if end.hash != kept.hash => {
                    return broken(kept.number, "is not the one that it was when its head was kept");
                }
                AuditCheck::Fits(end) => head = end,
            }
        }
        Ok(match self.walk(head, u64::MAX)? {
            AuditCheck::Fits(head) => VerifyResult::Ok { rows: head.number, head },
            AuditCheck::Broken { number, why } => VerifyResult::Broken { number, why },
        })
    }

    /// Hands each row to `write` as a line of JSON, with its entry exactly as it is stored. The inner error says why it
    /// broke off: at a row that does not fit, or because nobody takes the lines any more.
    ///
    /// # Errors
    /// When the file cannot be read.
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
                    return Ok(Err(format!("the record is not what was written: row {number} {why}")));
                }
            }
            let written = audit::lines(&self.connection, from, head.number, &mut write);
            match written.map_err(|error| self.told(error))? {
                Ok(()) if head.number == upto => {}
                Ok(()) => return Ok(Ok(())),
                Err(error) => return Ok(Err(format!("the record cannot be written out: {error}"))),
            }
        }
    }

    /// Looks over the rows after `head` up to `upto`, or to the end, a page at a time.
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
        audit::check(&self.connection, after, upto).map_err(|error| self.told(error))
    }

    fn told(&self, error: rusqlite::Error) -> StoreError {
        StoreError::from(error).in_file(&self.path)
    }
}
