//! Edits the input of a tool call in the user's editor. The draft is a file in a private directory below the hub's data directory,
//! which the sandbox hides from agents. It is read once after the editor exits; that text is compared, shown and sent. `editable`
//! decides which text of the input is in the draft.

mod editable;

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

pub(crate) use editable::Editable;

/// Where drafts are, below the data directory.
const DRAFTS: &str = "drafts";
/// The lock file for creating and sweeping drafts.
const LOCK: &str = "lock";
/// The largest draft that is read.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The result of an edit.
#[derive(Debug, PartialEq)]
pub(crate) enum Edited {
    /// The input is unchanged. Nothing is answered.
    Same,
    /// The input was changed.
    Changed(Object),
}

/// Why an edit has no result.
#[derive(Debug, Error)]
pub(crate) enum EditError {
    /// The text can be opened again and corrected.
    #[error("{why}")]
    Invalid {
        /// What is wrong with it.
        why: String,
        /// The text as it was read.
        text: String,
    },
    /// The editor failed.
    #[error("the editor `{editor}` {why}")]
    Editor {
        /// The command.
        editor: String,
        /// How it failed.
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

/// Opens an input in the editor. `text`, if any, replaces the initial content.
pub(crate) async fn edit(
    data_dir: &Path,
    editable: &Editable,
    text: Option<&str>,
) -> Result<Edited, EditError> {
    let dir = data_dir.join(DRAFTS);
    let at = |why| EditError::Draft { dir: dir.clone(), why };
    let draft = Draft::create(data_dir, editable, text).map_err(at)?;
    run_editor(&draft.path()).await?;
    let text = draft.read().map_err(at)?;
    drop(draft);
    match editable.read(&text) {
        Ok(now) if now == editable.input => Ok(Edited::Same),
        Ok(now) => Ok(Edited::Changed(now)),
        Err(why) => Err(EditError::Invalid { why, text }),
    }
}

/// Removes drafts that a killed process left.
pub(crate) fn sweep(data_dir: &Path) -> io::Result<()> {
    let dir = data_dir.join(DRAFTS);
    match dir.try_exists()? {
        true => sweep_locked(&dir, &lock(&dir)?),
        false => Ok(()),
    }
}

/// A file for the editor, in a directory of its own, so that the editor's swap and backup files are deleted with it.
struct Draft {
    dir: TempDir,
    name: String,
    /// Locked while this process lives, so that no other process sweeps the directory.
    _held: File,
}

impl Draft {
    fn create(data_dir: &Path, editable: &Editable, text: Option<&str>) -> io::Result<Self> {
        let drafts = data_dir.join(DRAFTS);
        // Only the hub creates the data directory. If it is missing, the hub is on another machine.
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
        let draft = Self { dir, name: editable.file_name(), _held: held };
        let mut file = private_file(&draft.path())?;
        match text {
            Some(text) => file.write_all(text.as_bytes())?,
            None => file.write_all(editable.text().as_bytes())?,
        }
        Ok(draft)
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join(&self.name)
    }

    /// Reads the draft by path, because editors replace the file.
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
    Err(io::Error::other("it is not a private directory owned by you"))
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

/// Removes each draft whose process has exited. `_locked` proves that no other process creates one.
fn sweep_locked(drafts: &Path, _locked: &File) -> io::Result<()> {
    for entry in std::fs::read_dir(drafts)? {
        let path = entry?.path();
        if !path.is_dir() {
            continue;
        }
        let in_use = File::open(path.join(LOCK))
            .is_ok_and(|held| flock(&held, FlockOperation::NonBlockingLockExclusive).is_err());
        if !in_use {
            // A failure is retried next time and does not prevent the edit.
            let _ = std::fs::remove_dir_all(&path);
        }
    }
    Ok(())
}

/// Opens a file in the user's editor and waits until it exits.
async fn run_editor(path: &Path) -> Result<(), EditError> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let editor = set("VISUAL").or_else(|| set("EDITOR")).unwrap_or_else(|| "vi".to_owned());
    let failed = |why: String| EditError::Editor { editor: editor.clone(), why };
    // The editor handles Ctrl-C.
    let _interrupts = signal(SignalKind::interrupt()).map_err(|error| failed(error.to_string()))?;
    // The shell parses it, because it may contain options: EDITOR="code --wait".
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{editor} \"$@\"")).arg(&editor).arg(path);
    let status = command.status().await.map_err(|error| failed(error.to_string()))?;
    if status.success() { Ok(()) } else { Err(failed(format!("failed ({status})"))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn input() -> Editable {
        let id = "0b5c0000-0000-4000-8000-000000000000";
        let approval = json!({
            "id": id, "session_id": id, "session_name": "a", "kind": "tool", "tool_name": "Bash", "tool_use_id": "t",
            "input": {"command": "ls"}, "status": "pending", "created_at": 0, "asked_of": {"kind": "operator"}, "cwd": "/",
        });
        Editable::of(&serde_json::from_value(approval).unwrap())
    }

    #[test]
    fn a_draft_is_private_and_deleted_with_the_editors_other_files() {
        let data = tempfile::tempdir().unwrap();
        let draft = Draft::create(data.path(), &input(), None).unwrap();
        assert_eq!(draft.read().unwrap(), "ls");
        let drafts = data.path().join(DRAFTS);
        for path in [&drafts, draft.dir.path(), &draft.path()] {
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o077, 0, "{}", path.display());
        }
        std::fs::write(draft.dir.path().join(".command.sh.swp"), "swap").unwrap();
        drop(draft);
        let left: Vec<_> =
            std::fs::read_dir(drafts).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, [LOCK]);
    }

    #[test]
    fn drafts_of_killed_processes_are_swept_and_drafts_in_use_stay() {
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
    fn no_draft_is_created_outside_a_private_data_directory() {
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
    fn a_link_or_pipe_in_place_of_the_draft_is_not_read() {
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
