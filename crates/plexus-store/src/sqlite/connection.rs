//! Opens the database file. No other module does, so every connection has the same settings, and no file is written before it
//! is known to belong to Plexus. `schema` and `examine` check its contents.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::{examine, schema};
use crate::StoreError;

/// The failures that a durable commit survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Durability {
    /// A power loss: each group of commits is synced to the disk.
    Full,
    /// The death of the process, but not always a power loss.
    Normal,
}

impl Durability {
    fn synchronous(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::Normal => "NORMAL",
        }
    }
}

const MAGIC: &[u8] = b"SQLite format 3\0";
/// How long a connection waits for a lock of another process, such as a backup.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// A little more than the number of different statements.
const CACHED_STATEMENTS: usize = 128;
/// The memory for pages that the writing connection reads again. It is taken as the pages are read.
const WRITER_CACHE_KIB: i64 = 8 * 1024;
/// The size to which the write-ahead log is truncated after a burst.
const MAX_WAL_BYTES: u32 = 16 * 1024 * 1024;

/// What a user can do about a damaged file.
pub(super) const INSTEAD_OF_DAMAGED: &str =
    "replace it with a good copy, move it away to start with an empty one, or use another data directory";

/// Creates the file if it does not exist, and refuses any file other than an intact Plexus database.
///
/// Must be called before the first connection: closing a file that SQLite has open in the same process drops its locks.
pub(super) fn prepare(path: &Path) -> Result<(), StoreError> {
    match create_or_inspect(path) {
        Ok(Contents::Possible) => examine::examine(path).map_err(|error| describe(path, error)),
        Ok(Contents::Foreign) => {
            Err(unusable(path, "is not a SQLite database: move it away, or use another data directory"))
        }
        Err(error) => Err(unusable(path, &format!("cannot be opened: {error}"))),
    }
}

/// The connection that writes. Refuses a file of another program, and migrates an older database.
pub(super) fn writer(path: &Path, durability: Durability) -> Result<Connection, StoreError> {
    open_to_write(path, durability).map_err(|error| describe(path, error))
}

fn open_to_write(path: &Path, durability: Durability) -> Result<Connection, Opening> {
    let mut connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // Nothing may change the file before it is known to belong to Plexus, not even SQLite's checkpoint on close.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    schema::check(&connection)?;
    if connection.is_readonly("main")? {
        return Err(Opening::Refused("cannot be written".to_owned()));
    }
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;

    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        return Err(Opening::Refused(format!(
            "cannot use WAL (journal mode {mode}): its file system does not support it; use another data \
             directory"
        )));
    }
    connection.pragma_update(None, "synchronous", durability.synchronous())?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    connection.pragma_update(None, "journal_size_limit", MAX_WAL_BYTES)?;
    schema::migrate(&mut connection)?;
    set_private(path)
        .map_err(|error| Opening::Refused(format!("cannot be made accessible to its owner only: {error}")))?;
    Ok(connection)
}

/// A read-only connection to a prepared file.
pub(super) fn reader(path: &Path) -> Result<Connection, StoreError> {
    Ok(open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?)
}

#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub(super) fn open(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    // Otherwise SQLite prepares some statements again for each new parameter.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    #[cfg(debug_assertions)]
    super::work_count::count_statements(&connection);
    Ok(connection)
}

/// Applies to the database and SQLite's files beside it.
fn set_private(path: &Path) -> io::Result<()> {
    for suffix in ["", "-wal", "-shm"] {
        let mut file = path.as_os_str().to_owned();
        file.push(suffix);
        match fs::set_permissions(file, Permissions::from_mode(0o600)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Why a file could not be prepared.
pub(super) enum Opening {
    /// We may not use it.
    Refused(String),
    /// It belongs to Plexus, but is damaged.
    Damaged(String),
    /// SQLite failed.
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for Opening {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

enum Contents {
    /// Empty, or a SQLite database.
    Possible,
    /// Something else.
    Foreign,
}

fn create_or_inspect(path: &Path) -> io::Result<Contents> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => return Ok(Contents::Possible),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let mut head = Vec::new();
    File::open(path)?.take(MAGIC.len() as u64).read_to_end(&mut head)?;
    // A hub that is killed while it creates the file leaves an empty one.
    Ok(if head.is_empty() || head == MAGIC { Contents::Possible } else { Contents::Foreign })
}

/// The error for the user who starts the hub.
pub(super) fn describe(path: &Path, error: Opening) -> StoreError {
    let damaged = |what: &str| unusable(path, &format!("is damaged ({what}): {INSTEAD_OF_DAMAGED}"));
    match error {
        Opening::Refused(why) => unusable(path, &why),
        Opening::Damaged(what) => damaged(&what),
        Opening::Sqlite(error) => match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => damaged(&error.to_string()),
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => {
                unusable(path, &format!("cannot be opened: {error}"))
            }
            _ => StoreError::Unavailable(format!("{}: {error}", path.display())),
        },
    }
}

fn unusable(path: &Path, why: &str) -> StoreError {
    StoreError::Unusable(format!("{} {why} (it was not changed)", path.display()))
}
