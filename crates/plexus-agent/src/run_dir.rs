//! The directory of one run: the names of its files and how they are created. It holds all communication between hub
//! and keeper, and only their user can read it. This module does not interpret the contents.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, mkfifoat};

/// The path `DIR/sessions/<id>/runs/<n>/`. Nothing is created until [`RunDir::create`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDir {
    path: PathBuf,
}

impl RunDir {
    /// The run directory at `path`, which may not exist yet.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates the directory (0700), the `wake` FIFO, and the empty journal and outbox (0600).
    ///
    /// Fails with `AlreadyExists` if a run was created here before: two runs never share a journal.
    pub fn create(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.path)?;
        create_new(&self.journal())?;
        create_new(&self.outbox())?;
        mkfifoat(CWD, self.wake(), Mode::RUSR | Mode::WUSR)?;
        Ok(())
    }

    /// Creates the missing files of a finished run, so that it is processed like any other. A database restored from a
    /// backup may list runs whose files were not restored.
    pub fn restore(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.path)?;
        append_to(&self.journal())?;
        append_to(&self.outbox())?;
        match mkfifoat(CWD, self.wake(), Mode::RUSR | Mode::WUSR) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The total size of its files in bytes; 0 if it was deleted.
    pub fn size(&self) -> u64 {
        let files = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
        files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
    }

    /// Deletes a finished run and the parent folders that become empty. Large files are truncated in steps with a
    /// `pause` between them, so that other users of the disk are not blocked. Succeeds if the run is already partly or
    /// fully deleted.
    pub fn remove(&self, pause: Duration) -> io::Result<()> {
        let entries = match std::fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                shrink(&entry.path(), pause)?;
            }
            std::fs::remove_file(entry.path())?;
        }
        std::fs::remove_dir(&self.path)?;
        for above in self.path.ancestors().skip(1).take(2) {
            // The folder still holds other runs of the session, or files that Plexus did not create.
            if std::fs::remove_dir(above).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// The child's stdout, unmodified.
    pub fn journal(&self) -> PathBuf {
        self.path.join("journal.jsonl")
    }

    /// The lines for the child's stdin, and the hub's commands to the keeper.
    pub fn outbox(&self) -> PathBuf {
        self.path.join("outbox.jsonl")
    }

    /// The FIFO that the keeper holds open. A byte in it means "read the outbox".
    pub fn wake(&self) -> PathBuf {
        self.path.join("wake")
    }

    /// What a child with captured streams reads on stdin.
    pub fn input(&self) -> PathBuf {
        self.path.join("input")
    }

    /// How the run ended; exists only after it has ended.
    pub fn exit(&self) -> PathBuf {
        self.path.join("exit.json")
    }

    /// The tail of the child's and the keeper's stderr.
    pub fn stderr(&self) -> PathBuf {
        self.path.join("stderr.log")
    }

    /// What the keeper starts.
    pub fn launch(&self) -> PathBuf {
        self.path.join("launch.json")
    }

    /// The sandbox state of the child; exists only if a sandbox was requested.
    pub fn sandbox(&self) -> PathBuf {
        self.path.join("wall.json")
    }

    /// The configuration of the child's MCP servers, including the token of this run.
    pub fn mcp_config(&self) -> PathBuf {
        self.path.join("mcp.json")
    }

    /// Deletes the file that must not outlive the run: the MCP config with its token. Succeeds if it is already
    /// deleted.
    pub fn remove_secrets(&self) -> io::Result<()> {
        match std::fs::remove_file(self.mcp_config()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }
}

/// Frees the space of a large file in steps, from its end. Skips a file with another hard link, and follows no symlink.
fn shrink(path: &Path, pause: Duration) -> io::Result<()> {
    const PIECE: u64 = 64 * 1024 * 1024;
    let file = OpenOptions::new().write(true).custom_flags(OFlags::NOFOLLOW.bits() as i32).open(path)?;
    let metadata = file.metadata()?;
    let mut length = if metadata.nlink() == 1 { metadata.len() } else { 0 };
    while length > PIECE {
        length -= PIECE;
        file.set_len(length)?;
        std::thread::sleep(pause);
    }
    Ok(())
}

/// Creates an empty file that only its user can read.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Opens a file for appending, and creates it with mode 0600 if it is missing.
pub(crate) fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)
}

/// Replaces the contents of `path` atomically; the result also survives a power failure.
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
    fn missing_files_are_created_and_existing_files_stay() {
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
    fn a_removed_run_leaves_nothing_and_the_next_one_stays() {
        let home = tempfile::tempdir().unwrap();
        let runs = home.path().join("sessions/a/runs");
        let [first, second] = ["1", "2"].map(|run| RunDir::new(runs.join(run)));
        first.create().unwrap();
        second.create().unwrap();
        let large = 200 * 1024 * 1024;
        for file in [first.journal(), home.path().join("a file of someone's")] {
            File::create(file).unwrap().set_len(large).unwrap();
        }
        std::fs::remove_file(first.outbox()).unwrap();
        std::fs::hard_link(home.path().join("a file of someone's"), first.outbox()).unwrap();
        assert_eq!(first.size(), 2 * large);
        for _ in 0..2 {
            first.remove(Duration::ZERO).unwrap();
            assert!(!first.path().exists() && second.journal().exists());
        }
        let linked = home.path().join("a file of someone's").metadata().unwrap();
        assert_eq!(linked.len(), large, "a file with another hard link is unchanged");
        second.remove(Duration::ZERO).unwrap();
        assert!(!home.path().join("sessions/a").exists() && home.path().join("sessions").exists());
    }

    #[test]
    fn removing_secrets_succeeds_if_they_are_missing() {
        let home = tempfile::tempdir().unwrap();
        let dir = RunDir::new(home.path().to_path_buf());
        std::fs::write(dir.mcp_config(), "{}").unwrap();
        dir.remove_secrets().unwrap();
        assert!(!dir.mcp_config().exists());
        dir.remove_secrets().unwrap();
    }
}
