//! The directory of one run: which file is called what, and how they come to be. It holds everything that
//! hub and keeper say to each other, readable by nobody but their user; it knows nothing of the contents.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, mkfifoat};

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

    /// How many bytes its files hold; 0 where it is gone.
    pub fn size(&self) -> u64 {
        let files = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
        files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
    }

    /// Removes a run that is over, with the folders above it that become empty. Large files go piece by piece with a
    /// `pause` in between, so that the disk has time for others. It is no error if it is gone, or half gone.
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
            // The other runs of the session are there, or something that is not ours to remove.
            if std::fs::remove_dir(above).is_err() {
                break;
            }
        }
        Ok(())
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

    /// What stands between the child and the hub's data; there only when the child was to have something.
    pub fn sandbox(&self) -> PathBuf {
        self.path.join("wall.json")
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

/// Gives back what a large file holds, from its end; not where the same file is somewhere else, too, or elsewhere.
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
        assert_eq!(linked.len(), large, "what was linked in here is left as it is");
        second.remove(Duration::ZERO).unwrap();
        assert!(!home.path().join("sessions/a").exists() && home.path().join("sessions").exists());
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
