//! Git's lock of an index. Like git, the crate holds it while it changes the files of a working tree, so that no git
//! command of the user or of an agent changes the tree meanwhile. The lock file starts as a copy of the index;
//! recovery recognises it by that.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use git2::{Index, IndexTime};

use crate::checkout::Replacement;
use crate::commit::set;
use crate::error::at;
use crate::files::open_regular;
use crate::{Result, WorktreeError};

/// A locked index. Dropping it removes the lock and leaves the index as it was.
pub(crate) struct IndexLock {
    index: PathBuf,
    lock: PathBuf,
    held: bool,
}

impl IndexLock {
    /// Locks the index at a path.
    pub(crate) fn take(index: &Path) -> Result<Self> {
        let lock = with_suffix(index);
        let mut content = open_regular(index).map_err(at(index))?;
        let mut copy = File::create_new(&lock).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => WorktreeError::Refused(format!(
                "Another git command has locked the index. Try again; if no git command is running, delete {}",
                lock.display()
            )),
            _ => at(&lock)(error),
        })?;
        let locked = Self { index: index.to_owned(), lock, held: true };
        io::copy(&mut content, &mut copy).map_err(at(&locked.lock))?;
        Ok(locked)
    }

    /// Replaces the index by one with the new files.
    pub(crate) fn write(mut self, replacements: &[Replacement]) -> Result<()> {
        // While the index is locked, only a killed helper can have left this file.
        let _ = std::fs::remove_file(with_suffix(&self.lock));
        let mut index = Index::open(&self.lock)?;
        if index.has_conflicts() {
            return Err(WorktreeError::Refused(format!(
                "{} has unresolved conflicts. Resolve them first",
                self.index.display()
            )));
        }
        forget_recent(&mut index, &self.index)?;
        for replacement in replacements.iter().filter(|replacement| replacement.new.is_none()) {
            set(&mut index, &replacement.path, None)?;
        }
        for replacement in replacements.iter().filter(|replacement| replacement.new.is_some()) {
            set(&mut index, &replacement.path, replacement.new)?;
        }
        index.write()?;
        File::open(&self.lock).and_then(|file| file.sync_all()).map_err(at(&self.lock))?;
        std::fs::rename(&self.lock, &self.index).map_err(at(&self.index))?;
        // From now on, a lock with this name is another command's.
        self.held = false;
        Ok(())
    }
}

impl Drop for IndexLock {
    fn drop(&mut self) {
        if self.held {
            let _ = std::fs::remove_file(&self.lock);
        }
    }
}

/// Makes git compare the content of files that may have changed after the index was written, but with the same
/// modification time. The new index has a later time, so git would otherwise treat them as unchanged.
fn forget_recent(index: &mut Index, written: &Path) -> Result<()> {
    let written = written.metadata().and_then(|metadata| metadata.modified()).map_err(at(written))?;
    let written = written.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let is_recent = |time: IndexTime| u64::try_from(time.seconds()).is_ok_and(|time| time >= written);
    let recent: Vec<_> = index.iter().filter(|entry| is_recent(entry.mtime)).collect();
    for mut entry in recent {
        entry.file_size = 0;
        entry.mtime = IndexTime::new(0, 0);
        index.add(&entry)?;
    }
    Ok(())
}

/// Deletes the lock of an interrupted update: an exact copy of the index, or an index with all the new files. A lock of
/// git itself is empty until git writes the new index.
pub(crate) fn delete_own_index_lock(index: &Path, replacements: &[Replacement]) {
    let lock = with_suffix(index);
    let read = |path: &Path| {
        let mut content = Vec::new();
        open_regular(path)
            .and_then(|mut file| io::Read::read_to_end(&mut file, &mut content))
            .ok()
            .map(|_| content)
    };
    let Some(content) = read(&lock) else { return };
    let is_copy = !content.is_empty() && read(index).as_ref() == Some(&content);
    if is_copy || has_all(&lock, replacements) {
        let _ = std::fs::remove_file(with_suffix(&lock));
        let _ = std::fs::remove_file(&lock);
    }
}

fn has_all(index: &Path, replacements: &[Replacement]) -> bool {
    let Ok(index) = Index::open(index) else { return false };
    !index.is_empty()
        && replacements.iter().all(|file| {
            let entry = index.get_path(&file.path, 0);
            entry.map(|entry| (entry.mode, entry.id)) == file.new.map(|new| (new.mode, new.id))
        })
}

fn with_suffix(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_locked_once_and_keeps_its_content_until_it_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index");
        Index::open(&path).unwrap().write().unwrap();
        let before = std::fs::read(&path).unwrap();
        let locked = IndexLock::take(&path).unwrap();
        let refused = IndexLock::take(&path).map(drop).unwrap_err().to_string();
        assert!(refused.contains("index.lock"), "{refused}");
        drop(locked);
        assert_eq!(std::fs::read(&path).unwrap(), before);
        IndexLock::take(&path).unwrap().write(&[]).unwrap();
        assert!(!with_suffix(&path).exists());
    }

    #[test]
    fn only_the_lock_of_an_update_is_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index");
        Index::open(&path).unwrap().write().unwrap();
        let lock = with_suffix(&path);
        for (content, is_own) in
            [(Vec::new(), false), (b"DIRC".to_vec(), false), (std::fs::read(&path).unwrap(), true)]
        {
            std::fs::write(&lock, content).unwrap();
            delete_own_index_lock(&path, &[]);
            assert_eq!(lock.exists(), !is_own);
        }
    }
}
