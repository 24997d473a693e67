//! The initial state of a worktree: the index of the fresh checkout, and the differences that copying and setup caused
//! before the session started. With this index, later comparisons neither trust a child's index nor read every file.
//! The hub keeps both in its data directory ([`Record`]). The helper process that compares worktrees cannot read the
//! data directory, so it receives them as data ([`InitialState`]).

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use plexus_protocol::worktree::Worktree;
use serde::{Deserialize, Serialize};

use crate::comparison::Comparison;
use crate::error::at;
use crate::files::{Fingerprint, private_dir, replace, sync_dir};
use crate::{Result, WorktreeError};

/// The maximum number of differences to record. If it is exceeded, all differences count as the session's.
const MAX_DIFFERENCES: usize = 10_000;
/// The maximum total length of their paths, in bytes.
const MAX_PATH_BYTES: usize = 4 * 1024 * 1024;

/// The differences from the base when the session started, by path; `None` for a missing file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Baseline(pub(crate) BTreeMap<String, Option<Fingerprint>>);

/// The initial state of a worktree.
#[derive(Debug, Clone)]
pub struct InitialState {
    /// The file with the index of the fresh checkout.
    pub index: PathBuf,
    /// The differences from the index.
    pub baseline: Baseline,
}

impl Baseline {
    /// Records the current differences from the index.
    pub fn take(worktree: &Worktree, index: &Path) -> Result<Self> {
        let initial_state = InitialState { index: index.to_owned(), baseline: Self::default() };
        let comparison = Comparison::at(worktree, &initial_state)?;
        let differences = match comparison.differences() {
            Err(WorktreeError::TooMuch) => Vec::new(),
            differences => differences?,
        };
        let path_bytes: usize = differences.iter().map(|difference| difference.path.as_os_str().len()).sum();
        let mut baseline = Self::default();
        if differences.len() > MAX_DIFFERENCES || path_bytes > MAX_PATH_BYTES {
            return Ok(baseline);
        }
        for difference in &differences {
            let Some(path) = difference.path.to_str() else { continue };
            let full = Path::new(&worktree.path).join(path);
            match Fingerprint::of(&full) {
                Ok(fingerprint) => drop(baseline.0.insert(path.to_owned(), Some(fingerprint))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    baseline.0.insert(path.to_owned(), None);
                }
                // A file without a fingerprint counts as the session's.
                Err(_) => {}
            }
        }
        Ok(baseline)
    }
}

/// The hub's record of one worktree, in its own directory.
#[derive(Debug, Clone)]
pub struct Record {
    dir: PathBuf,
}

impl Record {
    /// The record in this directory, which need not exist yet.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Whether the record was taken. Before that, only the hub can have written to the worktree.
    pub fn is_complete(&self) -> bool {
        self.baseline_file().exists()
    }

    /// A file for the index of a fresh checkout. It takes effect when [`Record::keep_index`] keeps it.
    pub fn draft(&self) -> Result<File> {
        private_dir(&self.dir).map_err(at(&self.dir))?;
        File::create(self.draft_file()).map_err(at(&self.draft_file()))
    }

    /// Keeps the index in the draft. Its modification time is the time from which a file may have changed without
    /// appearing changed.
    pub fn keep_index(&self, modified: SystemTime) -> Result<()> {
        let keep = || {
            let draft = File::options().write(true).open(self.draft_file())?;
            draft.set_modified(modified)?;
            draft.sync_all()?;
            std::fs::rename(self.draft_file(), self.index_file())?;
            sync_dir(&self.dir)
        };
        keep().map_err(at(&self.index_file()))
    }

    /// Stores the differences from the base. Called again after setup.
    pub fn store_baseline(&self, baseline: &Baseline) -> Result<()> {
        let text = serde_json::to_vec(baseline).map_err(|error| at(&self.baseline_file())(error.into()))?;
        replace(&self.baseline_file(), &text).map_err(at(&self.baseline_file()))
    }

    /// The stored initial state.
    pub fn initial_state(&self) -> Result<InitialState> {
        let path = self.baseline_file();
        let baseline = match std::fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| at(&path)(error.into()))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(WorktreeError::NoRecord),
            Err(error) => return Err(at(&path)(error)),
        };
        if !self.index_file().is_file() {
            return Err(WorktreeError::NoRecord);
        }
        Ok(InitialState { index: self.index_file(), baseline })
    }

    /// The path of the stored index.
    pub fn index_file(&self) -> PathBuf {
        self.dir.join("index")
    }

    fn draft_file(&self) -> PathBuf {
        self.dir.join("index.new")
    }

    fn baseline_file(&self) -> PathBuf {
        self.dir.join("baseline.json")
    }
}
