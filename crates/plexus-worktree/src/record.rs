//! What a worktree began as: the index as it was when everything was checked out, so that later comparisons neither trust a
//! child's index nor have to read every file, and what copying and setup had changed by the time the session was handed
//! over. The hub keeps both in its data directory ([`Record`]); where worktrees are compared there is no data directory, so
//! they are handed over as data ([`Began`]).

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use plexus_protocol::worktree::Worktree;
use serde::{Deserialize, Serialize};

use crate::error::at;
use crate::files::{Fingerprint, private_dir, replace, sync_dir};
use crate::look::Look;
use crate::{Result, WorktreeError};

/// Of more differences than these nothing is taken down: then all of them count as the session's.
const MOST_DIFFERENCES: usize = 10_000;
/// Nor when their paths together are longer than this, in bytes.
const MOST_PATH_BYTES: usize = 4 * 1024 * 1024;

/// What differed from the base when the session was handed over, by path; `None` is a file that was gone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Baseline(pub(crate) BTreeMap<String, Option<Fingerprint>>);

/// What a worktree began as.
#[derive(Debug, Clone)]
pub struct Began {
    /// A file that holds the index of the fresh checkout.
    pub index: PathBuf,
    /// What differed from it.
    pub baseline: Baseline,
}

impl Baseline {
    /// What differs from the index now.
    pub fn take(worktree: &Worktree, index: &Path) -> Result<Self> {
        let began = Began { index: index.to_owned(), baseline: Self::default() };
        let look = Look::at(worktree, &began)?;
        let differences = match look.differences() {
            Err(WorktreeError::TooMuch) => Vec::new(),
            differences => differences?,
        };
        let path_bytes: usize = differences.iter().map(|difference| difference.path.as_os_str().len()).sum();
        let mut baseline = Self::default();
        if differences.len() > MOST_DIFFERENCES || path_bytes > MOST_PATH_BYTES {
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
                // What cannot be told again counts as the session's.
                Err(_) => {}
            }
        }
        Ok(baseline)
    }
}

/// The hub's record of one worktree, by its directory.
#[derive(Debug, Clone)]
pub struct Record {
    dir: PathBuf,
}

impl Record {
    /// The record in this directory, which need not be there yet.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Whether anyone but the hub can have written in the worktree: nobody before the record was taken.
    pub fn is_taken(&self) -> bool {
        self.baseline_file().exists()
    }

    /// A file to write the index of a fresh checkout into; it counts once it is kept by [`Record::begin`].
    pub fn draft(&self) -> Result<File> {
        private_dir(&self.dir).map_err(at(&self.dir))?;
        File::create(self.draft_file()).map_err(at(&self.draft_file()))
    }

    /// Keeps the index that was written into the draft. Its time says from when on a file may have changed without looking
    /// it.
    pub fn begin(&self, modified: SystemTime) -> Result<()> {
        let keep = || {
            let draft = File::options().write(true).open(self.draft_file())?;
            draft.set_modified(modified)?;
            draft.sync_all()?;
            std::fs::rename(self.draft_file(), self.index_file())?;
            sync_dir(&self.dir)
        };
        keep().map_err(at(&self.index_file()))
    }

    /// Keeps what differed from the base; called again when setup has run.
    pub fn take(&self, baseline: &Baseline) -> Result<()> {
        let text = serde_json::to_vec(baseline).map_err(|error| at(&self.baseline_file())(error.into()))?;
        replace(&self.baseline_file(), &text).map_err(at(&self.baseline_file()))
    }

    /// What was kept.
    pub fn began(&self) -> Result<Began> {
        let path = self.baseline_file();
        let baseline = match std::fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| at(&path)(error.into()))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(WorktreeError::NoRecord),
            Err(error) => return Err(at(&path)(error)),
        };
        if !self.index_file().is_file() {
            return Err(WorktreeError::NoRecord);
        }
        Ok(Began { index: self.index_file(), baseline })
    }

    /// Where the index is kept.
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
