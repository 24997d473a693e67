//! The directory of one run: which file is called what, and how they come to be. It holds everything that
//! hub and keeper say to each other, readable by nobody but their user; it knows nothing of the contents.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, mkfifoat};

/// `DIR/sessions/<id>/runs/<n>/`, by its path. Nothing is touched until [`RunDir::create`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDir {
    path: PathBuf,
}

impl RunDir {
    /// The run directory at `path`, which need not be there yet.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the directory (0700), the `wake` FIFO and the empty journal and outbox (0600).
    ///
    /// Fails with `AlreadyExists` when a run was made here before: two runs never share a journal.
    pub fn create(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.path)?;
        create_new(&self.journal())?;
        create_new(&self.outbox())?;
        mkfifoat(CWD, self.wake(), Mode::RUSR | Mode::WUSR)?;
        Ok(())
    }

    /// Makes what is missing of a run that is over, so that it is settled like any other: a database that was put
    /// back from a copy may know of runs whose files were not.
    pub fn restore(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.path)?;
        append_to(&self.journal())?;
        append_to(&self.outbox())?;
        match mkfifoat(CWD, self.wake(), Mode::RUSR | Mode::WUSR) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// What the child wrote on stdout, as it wrote it.
    pub fn journal(&self) -> PathBuf {
        self.path.join("journal.jsonl")
    }

    /// What the child is to read on stdin, and the hub's few words to the keeper.
    pub fn outbox(&self) -> PathBuf {
        self.path.join("outbox.jsonl")
    }

    /// The FIFO the keeper holds open: a byte in it means "look into the outbox".
    pub fn wake(&self) -> PathBuf {
        self.path.join("wake")
    }

    /// How the run ended; there only when it has.
    pub fn exit(&self) -> PathBuf {
        self.path.join("exit.json")
    }

    /// The tail of what child and keeper wrote on stderr.
    pub fn stderr(&self) -> PathBuf {
        self.path.join("stderr.log")
    }

    /// What the keeper is to start.
    pub fn launch(&self) -> PathBuf {
        self.path.join("launch.json")
    }

    /// The child's MCP servers, with the token of this run in it.
    pub fn mcp_config(&self) -> PathBuf {
        self.path.join("mcp.json")
    }

    /// Removes what must not outlive the run: the MCP config with its token. It is no error if it is gone.
    pub fn remove_secrets(&self) -> io::Result<()> {
        match std::fs::remove_file(self.mcp_config()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }
}

/// A new, empty file that only its user can read.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// A file to append to, made with mode 0600 where it is not there.
pub(crate) fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)
}

/// Replaces `path` by `contents` in one step that also survives a power cut.
pub(crate) fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    use std::io::Write;

    let draft = path.with_extension("tmp");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    file.write_all(contents)?;
    file.sync_all()?;
    std::fs::rename(&draft, path)?;
    match path.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};

    use super::*;

    #[test]
    fn a_run_is_readable_by_its_user_only() {
        let home = tempfile::tempdir().unwrap();
        let dir = RunDir::new(home.path().join("sessions/a/runs/1"));
        dir.create().unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(dir.path()), 0o700);
        for file in [dir.journal(), dir.outbox(), dir.wake()] {
            assert_eq!(mode(&file), 0o600, "{}", file.display());
        }
        assert!(std::fs::metadata(dir.wake()).unwrap().file_type().is_fifo());
    }

    #[test]
    fn two_runs_never_share_a_directory() {
        let home = tempfile::tempdir().unwrap();
        let dir = RunDir::new(home.path().join("1"));
        dir.create().unwrap();
        assert_eq!(dir.create().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn what_is_missing_is_made_anew_and_what_is_there_stays() {
        let home = tempfile::tempdir().unwrap();
        let dir = RunDir::new(home.path().join("1"));
        dir.restore().unwrap();
        std::fs::write(dir.journal(), "line\n").unwrap();
        std::fs::remove_file(dir.wake()).unwrap();
        dir.restore().unwrap();
        assert_eq!(std::fs::read_to_string(dir.journal()).unwrap(), "line\n");
        assert!(dir.wake().exists() && dir.outbox().exists());
    }

    #[test]
    fn secrets_go_and_may_be_gone_already() {
        let home = tempfile::tempdir().unwrap();
        let dir = RunDir::new(home.path().to_path_buf());
        std::fs::write(dir.mcp_config(), "{}").unwrap();
        dir.remove_secrets().unwrap();
        assert!(!dir.mcp_config().exists());
        dir.remove_secrets().unwrap();
    }
}
