//! A tool's input in the user's editor. A draft is a file in a private directory below the hub's data directory, which the sandbox
//! hides from children. What the editor leaves is read once; that text alone is compared, shown and sent.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use plexus_protocol::Object;
use rustix::fs::{FlockOperation, OFlags, flock};
use tempfile::TempDir;
use thiserror::Error;
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

/// Where drafts are, below the data directory.
const DRAFTS: &str = "drafts";
/// Held while drafts are created and swept.
const LOCK: &str = "lock";
/// The largest draft that is read.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// What came out of an editor.
#[derive(Debug, PartialEq)]
pub(crate) enum Edited {
    /// The input is the same. Nothing is answered.
    Same,
    /// The input is another.
    Changed(Object),
}

/// Why an edit has no result.
#[derive(Debug, Error)]
pub(crate) enum EditError {
    /// It can be opened again and corrected.
    #[error("this is not a JSON object: {why}")]
    Invalid {
        /// What is wrong with it.
        why: String,
        /// The text as it was read.
        text: String,
    },
    /// Another try would fail as well.
    #[error("the editor `{editor}` {why}")]
    Editor {
        /// As it was called.
        editor: String,
        /// What became of it.
        why: String,
    },
    /// The draft cannot be written or read.
    #[error(
        "cannot edit in {dir}: {why}. Drafts are kept in the hub's data directory, where no agent can change them"
    )]
    Draft {
        /// The directory for drafts.
        dir: PathBuf,
        /// What went wrong.
        why: io::Error,
    },
}

/// Lets the user edit an input, beginning with this text of it, if there is one.
pub(crate) async fn edit(data_dir: &Path, input: &Object, text: Option<&str>) -> Result<Edited, EditError> {
    let dir = data_dir.join(DRAFTS);
    let at = |why| EditError::Draft { dir: dir.clone(), why };
    let draft = Draft::create(data_dir, input, text).map_err(at)?;
    run_editor(&draft.path()).await?;
    let text = draft.read().map_err(at)?;
    drop(draft);
    let now: Object = match serde_json::from_str(&text) {
        Ok(now) => now,
        Err(error) => return Err(EditError::Invalid { why: error.to_string(), text }),
    };
    Ok(if now == *input { Edited::Same } else { Edited::Changed(now) })
}

/// Removes drafts that a killed process left.
pub(crate) fn sweep(data_dir: &Path) -> io::Result<()> {
    let dir = data_dir.join(DRAFTS);
    match dir.try_exists()? {
        true => sweep_locked(&dir, &lock(&dir)?),
        false => Ok(()),
    }
}

/// A file for an editor, in a directory of its own: what editors put beside the file goes with it.
struct Draft {
    dir: TempDir,
    /// Locked for as long as this process lives: nobody sweeps the directory.
    _held: File,
}

impl Draft {
    fn create(data_dir: &Path, input: &Object, text: Option<&str>) -> io::Result<Self> {
        let drafts = data_dir.join(DRAFTS);
        // The data directory itself is the hub's to create: one that is missing is not on this machine.
        match DirBuilder::new().mode(0o700).create(&drafts) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => check_private(&drafts)?,
        }
        let locked = lock(&drafts)?;
        sweep_locked(&drafts, &locked)?;
        let dir = tempfile::Builder::new()
            .prefix("draft-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(&drafts)?;
        let held = private_file(&dir.path().join(LOCK))?;
        flock(&held, FlockOperation::NonBlockingLockExclusive)?;
        let draft = Self { dir, _held: held };
        let mut file = private_file(&draft.path())?;
        match text {
            Some(text) => file.write_all(text.as_bytes())?,
            None => writeln!(file, "{}", serde_json::to_string_pretty(input)?)?,
        }
        Ok(draft)
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("input.json")
    }

    /// What stands in it. By its path, since editors put a new file in the place of the old one.
    fn read(&self) -> io::Result<String> {
        let no_link = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(no_link).open(self.path())?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("the draft is no longer a file"));
        }
        let mut text = String::new();
        if file.take(MAX_BYTES + 1).read_to_string(&mut text)? as u64 > MAX_BYTES {
            return Err(io::Error::other("the draft is too large"));
        }
        Ok(text)
    }
}

fn check_private(dir: &Path) -> io::Result<()> {
    let found = dir.symlink_metadata()?;
    let own = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw();
    if own && found.mode() & 0o077 == 0 {
        return Ok(());
    }
    Err(io::Error::other("it is not a private directory of yours"))
}

fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

fn lock(drafts: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file =
        options.read(true).write(true).create(true).truncate(false).mode(0o600).open(drafts.join(LOCK))?;
    flock(&file, FlockOperation::LockExclusive)?;
    Ok(file)
}

/// Removes each draft whose process is gone. `_locked` shows that nobody is about to create one.
fn sweep_locked(drafts: &Path, _locked: &File) -> io::Result<()> {
    for entry in std::fs::read_dir(drafts)? {
        let path = entry?.path();
        if !path.is_dir() {
            continue;
        }
        let in_use = File::open(path.join(LOCK))
            .is_ok_and(|held| flock(&held, FlockOperation::NonBlockingLockExclusive).is_err());
        if !in_use {
            // One that cannot be removed is tried again next time, and is no reason not to edit.
            let _ = std::fs::remove_dir_all(&path);
        }
    }
    Ok(())
}

/// Opens a file in the user's editor and waits for its end.
async fn run_editor(path: &Path) -> Result<(), EditError> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let editor = set("VISUAL").or_else(|| set("EDITOR")).unwrap_or_else(|| "vi".to_owned());
    let failed = |why: String| EditError::Editor { editor: editor.clone(), why };
    // Ctrl-C belongs to the editor meanwhile.
    let _interrupts = signal(SignalKind::interrupt()).map_err(|error| failed(error.to_string()))?;
    // As a line of the shell, since people put options there: EDITOR="code --wait".
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{editor} \"$@\"")).arg(&editor).arg(path);
    let status = command.status().await.map_err(|error| failed(error.to_string()))?;
    if status.success() { Ok(()) } else { Err(failed(format!("ended with {status}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn input() -> Object {
        json!({"command": "ls"}).as_object().unwrap().clone()
    }

    #[test]
    fn a_draft_is_private_and_goes_with_all_that_an_editor_put_beside_it() {
        let data = tempfile::tempdir().unwrap();
        let draft = Draft::create(data.path(), &input(), None).unwrap();
        assert_eq!(draft.read().unwrap(), "{\n  \"command\": \"ls\"\n}\n");
        let drafts = data.path().join(DRAFTS);
        for path in [&drafts, draft.dir.path(), &draft.path()] {
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o077, 0, "{}", path.display());
        }
        std::fs::write(draft.dir.path().join(".input.json.swp"), "swap").unwrap();
        drop(draft);
        let left: Vec<_> =
            std::fs::read_dir(drafts).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, [LOCK]);
    }

    #[test]
    fn what_a_killed_process_left_is_swept_and_what_is_in_use_stays() {
        let data = tempfile::tempdir().unwrap();
        let used = Draft::create(data.path(), &input(), None).unwrap();
        let left = data.path().join(DRAFTS).join("draft-left");
        std::fs::create_dir(&left).unwrap();
        std::fs::write(left.join("input.json"), "{}").unwrap();
        std::fs::write(left.join(LOCK), "").unwrap();
        sweep(data.path()).unwrap();
        assert!(!left.exists() && used.path().exists());
    }

    #[test]
    fn no_other_place_is_taken_when_the_data_directory_is_missing_or_open_to_others() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Draft::create(&folder.path().join("elsewhere"), &input(), None).is_err());
        let drafts = folder.path().join(DRAFTS);
        std::fs::create_dir(&drafts).unwrap();
        std::fs::set_permissions(&drafts, Permissions::from_mode(0o777)).unwrap();
        assert!(Draft::create(folder.path(), &input(), None).is_err());
        std::fs::remove_dir(&drafts).unwrap();
        std::os::unix::fs::symlink("/tmp", &drafts).unwrap();
        assert!(Draft::create(folder.path(), &input(), None).is_err());
    }

    #[test]
    fn a_link_or_a_pipe_in_the_place_of_the_draft_is_not_read() {
        let data = tempfile::tempdir().unwrap();
        let draft = Draft::create(data.path(), &input(), None).unwrap();
        std::fs::remove_file(draft.path()).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", draft.path()).unwrap();
        assert!(draft.read().is_err());
        std::fs::remove_file(draft.path()).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, draft.path(), rustix::fs::Mode::RUSR).unwrap();
        assert!(draft.read().is_err());
    }
}
