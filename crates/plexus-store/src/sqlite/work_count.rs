//! Counts the work of all stores in this process, for the test that limits it. It exists in debug builds only. Writes and syncs are counted
//! by `faulty_disk`, once a test has taken the [`Disk`](super::faulty_disk::Disk).

use std::ffi::{c_int, c_uint, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rusqlite::{Connection, ffi};

static COMMITS: AtomicU64 = AtomicU64::new(0);
static STATEMENTS: AtomicU64 = AtomicU64::new(0);
static SYNCS: AtomicU64 = AtomicU64::new(0);
static WRITTEN_BYTES: AtomicU64 = AtomicU64::new(0);

/// The work since the process started.
#[derive(Debug, Clone, Copy)]
pub struct WorkCount {
    /// Commits, several of which may share a transaction.
    pub commits: u64,
    /// SQL statements that were started.
    pub statements: u64,
    /// Syncs of a database or its log.
    pub syncs: u64,
    /// Bytes written to a database or its log.
    pub written_bytes: u64,
}

impl WorkCount {
    /// The work so far.
    pub fn now() -> Self {
        Self {
            commits: COMMITS.load(Relaxed),
            statements: STATEMENTS.load(Relaxed),
            syncs: SYNCS.load(Relaxed),
            written_bytes: WRITTEN_BYTES.load(Relaxed),
        }
    }
}

pub(crate) fn count_commit() {
    COMMITS.fetch_add(1, Relaxed);
}

pub(super) fn count_write(bytes: c_int) {
    WRITTEN_BYTES.fetch_add(u64::try_from(bytes).unwrap_or(0), Relaxed);
}

pub(super) fn count_sync() {
    SYNCS.fetch_add(1, Relaxed);
}

/// Counts the statements of a connection.
pub(super) fn count_statements(connection: &Connection) {
    // SAFETY: the handle is valid, and the callback uses none of its arguments.
    unsafe {
        ffi::sqlite3_trace_v2(
            connection.handle(),
            ffi::SQLITE_TRACE_STMT as c_uint,
            Some(statement_started),
            ptr::null_mut(),
        );
    }
}

unsafe extern "C" fn statement_started(
    _event: c_uint,
    _context: *mut c_void,
    _statement: *mut c_void,
    _text: *mut c_void,
) -> c_int {
    STATEMENTS.fetch_add(1, Relaxed);
    0
}
