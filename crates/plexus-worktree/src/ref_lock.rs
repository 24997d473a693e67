//! Git's lock of a branch, and the move of the branch to its new commit. libgit2 creates such a lock empty, so recovery
//! could not tell it from the lock of a running git, and it follows links when it writes the branch and the reflog. This
//! lock has the id of the new commit as its content from the first moment, and no link is followed.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use git2::Repository;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, openat, renameat, renameat_with, unlinkat};
use rustix::io::Errno;

use crate::checkout::temporary;
use crate::error::at;
use crate::files::read_at_most;
use crate::person::signature;
use crate::swap::created_dir;
use crate::update::BranchUpdate;
use crate::{Result, WorktreeError};

/// A locked branch. Dropping it removes the lock and leaves the branch as it was.
pub(crate) struct RefLock {
    dir: OwnedFd,
    name: OsString,
    lock: OsString,
    path: PathBuf,
    /// The reflogs of the branch and, if it is checked out in the main working tree, of HEAD.
    logs: Vec<File>,
    log_line: String,
    held: bool,
}

impl RefLock {
    /// Locks the branch of an update.
    pub(crate) fn take(repo: &Repository, update: &BranchUpdate) -> Result<Self> {
        let root = Path::new(&update.repo);
        let reference = Path::new("refs/heads").join(&update.branch);
        let path = root.join(&reference);
        let log_line = log_line(update)?;
        let (dir, name) = created_dir(root, &reference).map_err(at(&path))?;
        let (name, lock) = (name.to_owned(), with_suffix(name.to_owned()));
        create_lock(root, &dir, &lock, update).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => locked(update),
            _ => at(&path)(error),
        })?;
        let mut locked = Self { dir, name, lock, path, logs: Vec::new(), log_line, held: true };
        let head = repo.find_reference("HEAD")?;
        let is_head = head.symbolic_target()? == reference.to_str();
        let mut logs = vec![Path::new("logs").join(&reference)];
        logs.extend(is_head.then(|| PathBuf::from("logs/HEAD")));
        let creates_logs = creates_logs(repo)?;
        for log in logs.iter().filter(|log| creates_logs || root.join(log).symlink_metadata().is_ok()) {
            locked.logs.push(open_log(root, log).map_err(at(&root.join(log)))?);
        }
        delete_empty_dir(&locked.dir, &locked.name);
        Ok(locked)
    }

    /// Moves the branch to its new commit.
    pub(crate) fn commit(mut self) -> Result<()> {
        let written = self.logs.iter_mut().try_for_each(|log| {
            log.write_all(self.log_line.as_bytes())?;
            log.sync_all()
        });
        written.map_err(at(&self.path))?;
        let renamed = renameat(&self.dir, &self.lock, &self.dir, &self.name);
        renamed.map_err(|error| at(&self.path)(error.into()))?;
        // From now on, a lock with this name is another command's.
        self.held = false;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = openat(&self.dir, ".", flags, Mode::empty()).map_err(io::Error::from);
        dir.and_then(|dir| File::from(dir).sync_all()).map_err(at(&self.path))
    }
}

impl Drop for RefLock {
    fn drop(&mut self) {
        if self.held {
            let _ = unlinkat(&self.dir, &self.lock, AtFlags::empty());
        }
    }
}

/// Creates the lock file with its content in one step.
fn create_lock(root: &Path, dir: &OwnedFd, lock: &OsString, update: &BranchUpdate) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let git_dir = openat(CWD, root, flags, Mode::empty())?;
    let draft = temporary(&update.new);
    match unlinkat(&git_dir, &draft, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(&git_dir, &draft, flags, Mode::from_raw_mode(0o666))?);
    let written = file.write_all(format!("{}\n", update.new).as_bytes()).and_then(|()| file.sync_all());
    let renamed =
        written.and_then(|()| Ok(renameat_with(&git_dir, &draft, dir, lock, RenameFlags::NOREPLACE)?));
    if renamed.is_err() {
        let _ = unlinkat(&git_dir, &draft, AtFlags::empty());
    }
    renamed
}

/// Opens a reflog without following links, and creates it if it is missing.
fn open_log(root: &Path, log: &Path) -> io::Result<File> {
    let (dir, name) = created_dir(root, log)?;
    delete_empty_dir(&dir, name);
    let flags = OFlags::WRONLY
        | OFlags::APPEND
        | OFlags::CREATE
        | OFlags::NOFOLLOW
        | OFlags::NONBLOCK
        | OFlags::CLOEXEC;
    let file = File::from(openat(&dir, name, flags, Mode::from_raw_mode(0o666))?);
    let metadata = file.metadata()?;
    if metadata.is_file() && metadata.nlink() == 1 {
        Ok(file)
    } else {
        Err(io::ErrorKind::InvalidInput.into())
    }
}

/// Git leaves an empty directory where a branch like `name/x` was. Everything else stays.
fn delete_empty_dir(dir: &OwnedFd, name: &OsStr) {
    let _ = unlinkat(dir, name, AtFlags::REMOVEDIR);
}

/// Whether git creates reflogs in this repository.
fn creates_logs(repo: &Repository) -> Result<bool> {
    let settings = repo.config()?.snapshot()?;
    Ok(match settings.get_str("core.logAllRefUpdates") {
        Ok("always") => true,
        Ok(_) => settings.get_bool("core.logAllRefUpdates").unwrap_or(true),
        Err(_) => !repo.is_bare(),
    })
}

fn log_line(update: &BranchUpdate) -> Result<String> {
    let by = signature(&update.by)?;
    let (name, email, when) = (by.name()?, by.email()?, by.when());
    let offset = when.offset_minutes().abs();
    Ok(format!(
        "{} {} {name} <{email}> {} {}{:02}{:02}\t{}\n",
        update.old,
        update.new,
        when.seconds(),
        when.sign(),
        offset / 60,
        offset % 60,
        update.reason.replace(char::is_control, " ")
    ))
}

fn locked(update: &BranchUpdate) -> WorktreeError {
    WorktreeError::Refused(format!(
        "`{}` is locked by another git command. Try again; if no git command is running, delete {}",
        update.branch,
        lock_file(update).display()
    ))
}

/// Deletes the lock of an interrupted update. Only such a lock contains the new commit.
pub(crate) fn delete_own_lock(update: &BranchUpdate) {
    let path = lock_file(update);
    if let Ok(Some(content)) = read_at_most(&path, 100)
        && content.trim_ascii() == update.new.as_bytes()
    {
        let _ = std::fs::remove_file(path);
    }
    let _ = std::fs::remove_file(Path::new(&update.repo).join(temporary(&update.new)));
}

/// The file by which git locks the branch.
fn lock_file(update: &BranchUpdate) -> PathBuf {
    let reference = Path::new(&update.repo).join("refs/heads").join(&update.branch);
    with_suffix(reference.into_os_string()).into()
}

fn with_suffix(mut path: OsString) -> OsString {
    path.push(".lock");
    path
}
