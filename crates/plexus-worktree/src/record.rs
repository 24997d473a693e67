//! What the hub itself knows of a worktree, in its own data directory: the index as it was when everything was
//! checked out, so that later comparisons neither trust a child's index nor have to read every file, and what copying
//! and setup had changed by the time the session was handed over.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use plexus_protocol::worktree::Worktree;

use crate::error::at;
use crate::files::{Fingerprint, private_dir, replace};
use crate::look::Look;
use crate::{Result, WorktreeError};

/// Of more differences than these nothing is taken down: then all of them count as the session's.
const MOST_DIFFERENCES: usize = 10_000;

/// What differed from the base when the session was handed over, by path; `None` is a file that was gone.
pub(crate) type Baseline = BTreeMap<String, Option<Fingerprint>>;

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

    /// Takes down what differs from the base now; called again when setup has run.
    pub fn take(&self, worktree: &Worktree) -> Result<()> {
        let look = Look::at(worktree, self, Baseline::new())?;
        let differences = match look.differences() {
            Err(WorktreeError::TooMuch) => Vec::new(),
            differences => differences?,
        };
        let mut baseline = Baseline::new();
        if differences.len() <= MOST_DIFFERENCES {
            for difference in &differences {
                let Some(path) = difference.path.to_str() else { continue };
                let full = Path::new(&worktree.path).join(path);
                match Fingerprint::of(&full) {
                    Ok(fingerprint) => drop(baseline.insert(path.to_owned(), Some(fingerprint))),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        baseline.insert(path.to_owned(), None);
                    }
                    // What cannot be told again counts as the session's.
                    Err(_) => {}
                }
            }
        }
        let text = serde_json::to_vec(&baseline).map_err(|error| at(&self.baseline_file())(error.into()))?;
        replace(&self.baseline_file(), &text).map_err(at(&self.baseline_file()))
    }

    /// Keeps the index of a fresh checkout.
    pub(crate) fn begin(&self, index: &Path) -> Result<()> {
        private_dir(&self.dir).map_err(at(&self.dir))?;
        let copy = || {
            std::fs::copy(index, self.index_file())?;
            // Its time says from when on a file may have changed without looking it.
            File::options().write(true).open(self.index_file())?.set_modified(index.metadata()?.modified()?)
        };
        copy().map_err(at(index))
    }

    pub(crate) fn index_file(&self) -> PathBuf {
        self.dir.join("index")
    }

    pub(crate) fn baseline(&self) -> Result<Baseline> {
        let path = self.baseline_file();
        match std::fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| at(&path)(error.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(WorktreeError::NoRecord),
            Err(error) => Err(at(&path)(error)),
        }
    }

    fn baseline_file(&self) -> PathBuf {
        self.dir.join("baseline.json")
    }
}
