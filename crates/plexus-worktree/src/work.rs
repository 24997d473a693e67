//! The work of a session in its worktree: the files that differ from the base, and the content of its branch. `changes`,
//! `diff`, `commit` and `push` use the same list, so that they always agree.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use git2::{DiffOptions, Oid, Repository};
use plexus_protocol::worktree::Worktree;

use crate::changes::branch_tip;
use crate::comparison::{Comparison, Difference};
use crate::current::{Current, Entry, GITLINK, LINK, has_crlf};
use crate::lines::MAX_FILE_BYTES;
use crate::objects::open_objects;
use crate::trees::check_new_trees;
use crate::{InitialState, Result, WorktreeError, open};

/// The largest file that is read as a whole, and that a commit may contain.
pub(crate) const MAX_COMMIT_FILE: u64 = 100 * 1024 * 1024;
/// The maximum number of files that the commits of a session may change.
const MAX_COMMITTED: usize = 100_000;

/// The work of a session.
pub(crate) struct Work {
    pub(crate) comparison: Comparison,
    /// The objects of the repository, for everything that depends on the parents of commits.
    pub(crate) objects: Repository,
    root: PathBuf,
    /// The head of the branch, unless the branch was deleted.
    pub(crate) tip: Option<Oid>,
    /// The files in which the head of the branch differs from the base; `None` for a deleted file. The paths are compared
    /// as bytes: as a [`Path`], `a//b` would equal `a/b`.
    committed: BTreeMap<OsString, Option<Entry>>,
    /// The files in which the worktree differs from the base, by path.
    pub(crate) differences: Vec<Difference>,
}

impl Work {
    pub(crate) fn of(worktree: &Worktree, initial_state: &InitialState) -> Result<Self> {
        let tip = branch_tip(&open(&worktree.repo)?, worktree)?;
        Self::at(worktree, initial_state, tip)
    }

    /// The work that is left to commit on top of `tip`.
    pub(crate) fn at(worktree: &Worktree, initial_state: &InitialState, tip: Option<Oid>) -> Result<Self> {
        let comparison = Comparison::at(worktree, initial_state)?;
        let differences = comparison.differences()?;
        let objects = open_objects(&worktree.repo)?;
        let committed = match tip {
            Some(tip) => {
                check_new_trees(&objects, comparison.base, tip)?;
                committed(&comparison, tip)?
            }
            None => BTreeMap::new(),
        };
        let root = PathBuf::from(&worktree.path);
        let mut work = Self { comparison, objects, root, tip, committed, differences };
        work.add_committed()?;
        work.differences.sort_by(|a, b| a.path.as_os_str().as_bytes().cmp(b.path.as_os_str().as_bytes()));
        Ok(work)
    }

    /// Adds committed files that the scan leaves out: ignored files, files of the baseline, and submodules.
    fn add_committed(&mut self) -> Result<()> {
        let base = self.comparison.repo.find_commit(self.comparison.base)?.tree()?;
        let seen: BTreeSet<&OsStr> =
            self.differences.iter().map(|difference| difference.path.as_os_str()).collect();
        let mut more = Vec::new();
        for path in self.committed.keys().filter(|path| !seen.contains(path.as_os_str())).map(Path::new) {
            let old =
                base.get_path(path).ok().map(|entry| Entry { mode: entry.filemode() as u32, id: entry.id() });
            let now = self.read_for_commit(path)?;
            if !now.is(old)? {
                let old = old.filter(|old| old.mode != GITLINK).map(|old| old.id);
                let exists = !matches!(now, Current::Missing);
                more.push(Difference { path: path.to_owned(), old, exists, untracked: false });
            }
        }
        self.differences.extend(more);
        Ok(())
    }

    /// The current content at a path, up to the size that a commit may contain. For a submodule it is the committed
    /// version, because the scan does not look into submodules.
    ///
    /// The content has the line endings that git would store. So a review shows, and compares with the branch, exactly the
    /// bytes that a commit stores.
    pub(crate) fn read_for_commit(&self, path: &Path) -> Result<Current> {
        Ok(self.read(path, MAX_COMMIT_FILE)?.0)
    }

    /// Like [`Self::read_for_commit`], and says whether the line endings were converted.
    pub(crate) fn read_converted(&self, path: &Path) -> Result<(Current, bool)> {
        self.read(path, MAX_COMMIT_FILE)
    }

    /// The current content at a path, up to the size that a diff shows.
    pub(crate) fn read_for_diff(&self, path: &Path) -> Result<Current> {
        Ok(self.read(path, MAX_FILE_BYTES)?.0)
    }

    /// The present size of the file at a path; 0 if there is none. Only to avoid reading it: it may change at any time.
    pub(crate) fn size(&self, path: &Path) -> u64 {
        self.root.join(path).symlink_metadata().map_or(0, |metadata| metadata.len())
    }

    fn read(&self, path: &Path, limit: u64) -> Result<(Current, bool)> {
        if let Some(Entry { mode: GITLINK, id }) = self.committed(path) {
            let content = format!("Subproject commit {id}\n").into_bytes();
            return Ok((Current::File { mode: GITLINK, content }, false));
        }
        match Current::read(&self.root, path, limit)? {
            Current::File { mode, content } if mode != LINK && has_crlf(&content) => {
                // If git refuses the conversion, the file is shown as it is, and a commit reports the error.
                match self.comparison.as_stored(path, &content) {
                    Ok(stored) if !has_crlf(&stored) => Ok((Current::File { mode, content: stored }, true)),
                    _ => Ok((Current::File { mode, content }, false)),
                }
            }
            current => Ok((current, false)),
        }
    }

    /// The version of a file in the base.
    pub(crate) fn base_entry(&self, path: &Path) -> Result<Option<Entry>> {
        let base = self.comparison.repo.find_commit(self.comparison.base)?.tree()?;
        let found = base.get_path(path).ok();
        Ok(found.map(|entry| Entry { mode: entry.filemode() as u32, id: entry.id() }))
    }

    /// The version of a file in the head of the branch, if the branch changed the file.
    fn committed(&self, path: &Path) -> Option<Entry> {
        self.committed.get(path.as_os_str()).copied().flatten()
    }

    /// Whether the head of the branch has this content at a path. A file that was not read counts as committed if its
    /// size is the same.
    pub(crate) fn is_committed(&self, path: &Path, now: &Current) -> Result<bool> {
        if matches!(now, Current::File { mode: GITLINK, .. }) {
            return Ok(true);
        }
        let repo = &self.comparison.repo;
        let entry = match self.committed.get(path.as_os_str()) {
            Some(entry) => *entry,
            None => self.base_entry(path)?,
        };
        match (now, entry) {
            (Current::TooLarge(size), Some(entry)) => {
                Ok(repo.odb()?.read_header(entry.id).is_ok_and(|(stored, _)| stored as u64 == *size))
            }
            _ => now.is(entry),
        }
    }

    /// The paths that the branch changed, and that the worktree has reverted to the base without a commit.
    pub(crate) fn undone(&self) -> impl Iterator<Item = &Path> {
        let is_shown = |path: &OsStr| {
            let key = path.as_bytes();
            self.differences.binary_search_by(|seen| seen.path.as_os_str().as_bytes().cmp(key)).is_ok()
        };
        self.committed.keys().filter(move |path| !is_shown(path)).map(Path::new)
    }

    /// Whether the branch changed a file.
    pub(crate) fn has_committed(&self, path: &Path) -> bool {
        self.committed.contains_key(path.as_os_str())
    }
}

fn committed(comparison: &Comparison, tip: Oid) -> Result<BTreeMap<OsString, Option<Entry>>> {
    let repo = &comparison.repo;
    if tip == comparison.base {
        return Ok(BTreeMap::new());
    }
    let (old, new) = (repo.find_commit(comparison.base)?.tree()?, repo.find_commit(tip)?.tree()?);
    let mut options = DiffOptions::new();
    options.include_typechange(true).disable_pathspec_match(true);
    let diff = repo.diff_tree_to_tree(Some(&old), Some(&new), Some(&mut options))?;
    if diff.deltas().len() > MAX_COMMITTED {
        return Err(WorktreeError::TooMuch);
    }
    let mut committed = BTreeMap::new();
    for delta in diff.deltas() {
        let new = delta.new_file();
        let entry = new.exists().then(|| Entry { mode: u32::from(new.mode()), id: new.id() });
        if let Some(path) = new.path().or_else(|| delta.old_file().path()) {
            committed.insert(path.as_os_str().to_owned(), entry);
        }
    }
    Ok(committed)
}
