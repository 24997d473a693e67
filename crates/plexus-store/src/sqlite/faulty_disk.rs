//! Injects disk faults, for tests. It exists in debug builds only. It replaces SQLite's default VFS with one that forwards
//! all operations to the real one, except for faulty writes and syncs of databases and their logs. A test controls it through
//! [`Disk`], of which a process has one at a time; a hub is controlled through the file that `PLEXUS_STORE_FAULT_FILE` names.

use std::ffi::{c_char, c_int, c_void};
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU32, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use rusqlite::ffi;

use super::work_count;

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The disk is full after half of a write.
    NoSpace = 1,
    /// A write fails.
    BrokenWrite,
    /// A sync fails.
    BrokenSync,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::NoSpace, Self::BrokenWrite, Self::BrokenSync];

    /// Its name in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoSpace => "no space",
            Self::BrokenWrite => "broken write",
            Self::BrokenSync => "broken sync",
        }
    }
}

/// The disk of one test.
pub struct Disk(#[expect(dead_code, reason = "it is held")] MutexGuard<'static, ()>);

static FAULT: AtomicU8 = AtomicU8::new(0);
/// How many operations succeed before the fault.
static REMAINING: AtomicI64 = AtomicI64::new(0);
static REAL: OnceLock<Real> = OnceLock::new();
static FILE: OnceLock<Option<PathBuf>> = OnceLock::new();

/// Installs the faulty disk if the environment names a file. While that file exists it contains `N FAULT`, such as
/// `3 no space`: then every third write fails. Must be called before the first connection.
pub(super) fn install_from_environment() {
    if FILE.get_or_init(|| std::env::var_os("PLEXUS_STORE_FAULT_FILE").map(Into::into)).is_some() {
        REAL.get_or_init(install);
    }
}

/// The real VFS, and how its files write and sync.
struct Real {
    vfs: *mut ffi::sqlite3_vfs,
    methods: OnceLock<ffi::sqlite3_io_methods>,
    /// The same methods with our own writes and syncs, one table for each kind of file.
    faulty: Mutex<Vec<(usize, &'static ffi::sqlite3_io_methods)>>,
}

// SAFETY: SQLite's own VFS is never removed and may be called from any thread; the rest is plain data.
unsafe impl Send for Real {}
// SAFETY: as above.
unsafe impl Sync for Real {}

impl Disk {
    /// Takes the disk, without a fault.
    pub fn take() -> Self {
        static ONE_TEST: Mutex<()> = Mutex::new(());
        let held = ONE_TEST.lock().unwrap_or_else(PoisonError::into_inner);
        REAL.get_or_init(install);
        let disk = Self(held);
        disk.repair();
        disk
    }

    /// Lets this many operations of the faulty kind succeed, then all of them fail.
    pub fn fail(&self, fault: Fault, after: u32) {
        REMAINING.store(after.into(), SeqCst);
        FAULT.store(fault as u8, SeqCst);
    }

    /// Ends the fault.
    pub fn repair(&self) {
        FAULT.store(0, SeqCst);
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.repair();
    }
}

fn fails(fault: Fault) -> bool {
    FAULT.load(SeqCst) == fault as u8 && REMAINING.fetch_sub(1, SeqCst) <= 0 || fails_by_file(fault)
}

fn fails_by_file(fault: Fault) -> bool {
    static OPERATIONS: AtomicU32 = AtomicU32::new(0);
    let Some(file) = FILE.get().and_then(Option::as_ref) else { return false };
    let Ok(configured) = std::fs::read_to_string(file) else { return false };
    let Some((every, what)) = configured.trim().split_once(' ') else { return false };
    let every: u32 = every.parse().unwrap_or(1);
    what == fault.as_str() && OPERATIONS.fetch_add(1, SeqCst).is_multiple_of(every.max(1))
}

fn install() -> Real {
    // SAFETY: finding the default VFS has no preconditions. It is a plain struct of pointers that are never freed, and the
    // registered copy is never freed either.
    unsafe {
        let vfs = ffi::sqlite3_vfs_find(ptr::null());
        assert!(!vfs.is_null());
        let mut ours = Box::new(*vfs);
        ours.zName = c"faulty".as_ptr();
        ours.pNext = ptr::null_mut();
        ours.xOpen = Some(open);
        assert_eq!(ffi::sqlite3_vfs_register(Box::leak(ours), 1), ffi::SQLITE_OK);
        Real { vfs, methods: OnceLock::new(), faulty: Mutex::default() }
    }
}

unsafe extern "C" fn open(
    _vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    let Some(real) = REAL.get() else { return ffi::SQLITE_CANTOPEN };
    // SAFETY: SQLite called this function as it would call the real one, so the same arguments may be passed on. The methods
    // that it set are never freed. They are replaced only by a table that is never freed and differs in two functions.
    unsafe {
        let Some(open_file) = (*real.vfs).xOpen else { return ffi::SQLITE_CANTOPEN };
        let opened = open_file(real.vfs, name, file, flags, out);
        let ours = flags & (ffi::SQLITE_OPEN_MAIN_DB | ffi::SQLITE_OPEN_WAL) != 0;
        if opened == ffi::SQLITE_OK && ours {
            (*file).pMethods = real.faulty(&*(*file).pMethods);
        }
        opened
    }
}

impl Real {
    fn faulty(&self, methods: &'static ffi::sqlite3_io_methods) -> *const ffi::sqlite3_io_methods {
        self.methods.get_or_init(|| *methods);
        let mut known = self.faulty.lock().unwrap_or_else(PoisonError::into_inner);
        let place = ptr::from_ref(methods) as usize;
        if let Some((_, faulty)) = known.iter().find(|(of, _)| *of == place) {
            return *faulty;
        }
        let mut faulty = Box::new(*methods);
        faulty.xWrite = Some(write);
        faulty.xSync = Some(sync);
        let faulty: &'static _ = Box::leak(faulty);
        known.push((place, faulty));
        faulty
    }
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    bytes: *const c_void,
    count: c_int,
    at: ffi::sqlite3_int64,
) -> c_int {
    let Some(write) = REAL.get().and_then(|real| real.methods.get()?.xWrite) else {
        return ffi::SQLITE_IOERR_WRITE;
    };
    if fails(Fault::BrokenWrite) {
        return ffi::SQLITE_IOERR_WRITE;
    }
    let no_space = fails(Fault::NoSpace);
    let count = if no_space { count / 2 } else { count };
    work_count::count_write(count);
    // SAFETY: the arguments of SQLite's own call, with no more bytes than it passed.
    let written = unsafe { write(file, bytes, count, at) };
    if no_space { ffi::SQLITE_FULL } else { written }
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    let Some(sync) = REAL.get().and_then(|real| real.methods.get()?.xSync) else {
        return ffi::SQLITE_IOERR_FSYNC;
    };
    if fails(Fault::BrokenSync) {
        return ffi::SQLITE_IOERR_FSYNC;
    }
    work_count::count_sync();
    // SAFETY: the arguments of SQLite's own call.
    unsafe { sync(file, flags) }
}
