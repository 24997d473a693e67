//! Compares a worktree with its base commit and its record. It opens the repository and the files by the paths that the
//! hub recorded, so that nothing a child writes can redirect it. It counts the files before libgit2 walks them.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use git2::{Delta, DiffOptions, FileMode, Index, Oid, Repository};
use plexus_protocol::worktree::Worktree;

use crate::error::at;
use crate::objects::IN_MEMORY;
use crate::record::{Baseline, InitialState};
use crate::{Result, WorktreeError, open};

/// The maximum number of untracked files.
const MAX_UNTRACKED: usize = 100_000;

/// A worktree that is opened for comparison.
pub(crate) struct Comparison {
    pub(crate) repo: Repository,
    pub(crate) base: Oid,
    root: PathBuf,
    index: Index,
    index_file: PathBuf,
    baseline: Baseline,
}

/// Opens a repository with this working tree and this index, not with those that it names.
fn opened(repo: &str, root: &Path, index: &Path) -> Result<(Repository, Index)> {
    let repo = open(repo)?;
    repo.set_workdir(root, false)?;
    let mut index = Index::open(index)?;
    // libgit2 also looks up attributes in the index.
    repo.set_index(&mut index)?;
    Ok((repo, index))
}

/// A file that differs.
#[derive(Debug)]
pub(crate) struct Difference {
    /// The path relative to the root of the worktree.
    pub(crate) path: PathBuf,
    /// The object in the base, if any.
    pub(crate) old: Option<Oid>,
    /// Whether the file exists now.
    pub(crate) exists: bool,
    /// Whether git does not track the file.
    pub(crate) untracked: bool,
}

impl Comparison {
    /// Opens a worktree and the repository it belongs to.
    pub(crate) fn at(worktree: &Worktree, initial_state: &InitialState) -> Result<Self> {
        let root = PathBuf::from(&worktree.path);
        let real = root.canonicalize().map_err(at(&root))?;
        if real != root || !real.is_dir() {
            return Err(WorktreeError::Moved(root));
        }
        if !initial_state.index.is_file() {
            return Err(WorktreeError::NoRecord);
        }
        let index_file = initial_state.index.clone();
        let (repo, index) = opened(&worktree.repo, &root, &index_file)?;
        let (base, baseline) = (worktree.base.parse()?, initial_state.baseline.clone());
        Ok(Self { repo, base, root, index, index_file, baseline })
    }

    /// The content that git would store for a file of the worktree, after the conversions that it performs itself: line
    /// endings and `ident`. They run no program. Nothing is written to the repository.
    pub(crate) fn as_stored(&self, path: &Path, content: &[u8]) -> Result<Vec<u8>> {
        let (repo, _index) = opened(&self.repo.path().to_string_lossy(), &self.root, &self.index_file)?;
        let odb = repo.odb()?;
        odb.add_new_mempack_backend(IN_MEMORY)?;
        let mut writer = repo.blob_writer(Some(path))?;
        writer.write_all(content).map_err(at(path))?;
        let id = writer.commit()?;
        Ok(odb.read(id)?.data().to_vec())
    }

    /// The files that differ from both the base and the record.
    pub(crate) fn differences(&self) -> Result<Vec<Difference>> {
        let inner = self.walk()?;
        let mut options = DiffOptions::new();
        options
            .include_untracked(true)
            .recurse_untracked_dirs(true)
            .include_typechange(true)
            .include_unreadable(true)
            .ignore_submodules(true)
            .disable_pathspec_match(true);
        let diff = self.repo.diff_index_to_workdir(Some(&self.index), Some(&mut options))?;
        let mut differences: Vec<Difference> =
            diff.deltas().filter_map(|delta| self.difference(&delta)).collect();
        // libgit2 skips these repositories.
        for path in inner {
            let is_submodule = self.index.get_path(&path, 0).is_some();
            if !is_submodule && differences.iter().all(|difference| !difference.path.starts_with(&path)) {
                differences.push(Difference { path, old: None, exists: true, untracked: true });
            }
        }
        Ok(differences)
    }

    fn difference(&self, delta: &git2::DiffDelta<'_>) -> Option<Difference> {
        let (old, new) = (delta.old_file(), delta.new_file());
        let path = new.path().or_else(|| old.path())?.to_owned();
        if let Some(recorded) = path.to_str().and_then(|path| self.baseline.0.get(path)) {
            let full = self.root.join(&path);
            let same = match recorded {
                Some(fingerprint) => fingerprint.is_of(&full),
                None => full.symlink_metadata().is_err(),
            };
            if same {
                return None;
            }
        }
        Some(Difference {
            path,
            old: (old.exists() && old.mode() != FileMode::Commit).then(|| old.id()),
            exists: new.exists(),
            untracked: matches!(delta.status(), Delta::Untracked | Delta::Unreadable),
        })
    }

    /// Whether a submodule was initialised. This comparison does not see changes in submodules.
    pub(crate) fn has_submodules(&self) -> bool {
        let filled = |path: PathBuf| path.read_dir().is_ok_and(|mut entries| entries.next().is_some());
        self.index
            .iter()
            .filter(|entry| entry.mode == u32::from(FileMode::Commit))
            .any(|entry| filled(self.root.join(String::from_utf8_lossy(&entry.path).as_ref())))
    }

    /// Walks the files that libgit2 would walk, and fails if they are too many. Returns the nested repositories.
    fn walk(&self) -> Result<Vec<PathBuf>> {
        let limit = self.index.len() + MAX_UNTRACKED;
        let mut seen = 0;
        let mut inner = Vec::new();
        let mut waiting = vec![PathBuf::new()];
        while let Some(dir) = waiting.pop() {
            let full = self.root.join(&dir);
            // An inaccessible directory contains no work; libgit2 reports it as unreadable.
            let Ok(entries) = full.read_dir() else { continue };
            for entry in entries {
                let entry = entry.map_err(at(&full))?;
                seen += 1;
                if seen > limit {
                    return Err(WorktreeError::TooMuch);
                }
                let path = dir.join(entry.file_name());
                if entry.file_name() == ".git" {
                    inner.extend((!dir.as_os_str().is_empty()).then(|| dir.clone()));
                } else if entry.file_type().is_ok_and(|kind| kind.is_dir())
                    // The trailing slash distinguishes a directory from a file of the same name.
                    && !self.repo.is_path_ignored(path.join(""))?
                {
                    waiting.push(path);
                }
            }
        }
        Ok(inner)
    }
}
