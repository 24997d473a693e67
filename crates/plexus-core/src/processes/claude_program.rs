//! The Claude Code program that the hub starts, and its version. The version of a file is determined once, by running it with
//! `--version`. An update replaces the file, so the version is then read again.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use plexus_claude::Version;
use plexus_protocol::{Error, ErrorKind};
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

use crate::Settings;

/// How long a program may take to print its version.
const VERSION_WITHIN: Duration = Duration::from_secs(10);
/// The maximum length of the printed version, in bytes.
const MAX_PRINTED: u64 = 1024;

/// The Claude Code program of a hub.
pub(crate) struct ClaudeProgram {
    program: PathBuf,
    /// Whether it is run without the hub's environment.
    environment: Environment,
    last: Mutex<Option<(FileId, Option<Version>)>>,
}

enum Environment {
    OfHub,
    Empty,
}

/// Identifies the content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileId {
    path: PathBuf,
    inode: (u64, u64),
    size: u64,
    modified: (i64, i64),
}

impl ClaudeProgram {
    pub(crate) fn new(settings: &Settings) -> Self {
        let environment = if settings.clean_env { Environment::Empty } else { Environment::OfHub };
        Self { program: settings.claude.clone(), environment, last: Mutex::default() }
    }

    /// The version, unless the program is missing or is not Claude Code.
    pub(crate) async fn version(&self) -> Option<Version> {
        let file = file_id(&self.program)?;
        let known = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, version)) = known.filter(|(known, _)| *known == file) {
            return version;
        }
        let version = self.run(&file.path).await;
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((file, version));
        version
    }

    /// Refuses a version that runs tools without asking.
    pub(crate) async fn check(&self) -> Result<(), Error> {
        match self.version().await {
            Some(version) if version < Version::OLDEST => Err(Error::new(
                ErrorKind::ClaudeTooOld,
                format!(
                    "Claude Code {version} is too old; {} or later is required: run `claude update`, or name \
                     another program with `claude` in plexus.toml",
                    Version::OLDEST
                ),
            )),
            _ => Ok(()),
        }
    }

    async fn run(&self, path: &Path) -> Option<Version> {
        let mut command = Command::new(path);
        command.arg("--version").current_dir("/").kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        if matches!(self.environment, Environment::Empty) {
            command.env_clear();
        }
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PLEXUS_") {
                command.env_remove(name);
            }
        }
        let printed = async {
            let mut child = command.spawn().ok()?;
            let mut printed = String::new();
            child.stdout.take()?.take(MAX_PRINTED).read_to_string(&mut printed).await.ok()?;
            child.wait().await.ok()?.success().then_some(printed)
        };
        let printed = tokio::time::timeout(VERSION_WITHIN, printed).await.ok()??;
        Version::printed(&printed)
    }
}

/// The file of a program; a bare name is looked up in `PATH`, as at each launch.
fn file_id(program: &Path) -> Option<FileId> {
    let id = |path: PathBuf| {
        let found = path.metadata().ok().filter(|found| found.is_file() && found.mode() & 0o111 != 0)?;
        let modified = (found.mtime(), found.mtime_nsec());
        Some(FileId { path, inode: (found.dev(), found.ino()), size: found.size(), modified })
    };
    if program.components().count() > 1 {
        return id(program.to_owned());
    }
    std::env::split_paths(&std::env::var_os("PATH")?).find_map(|dir| id(dir.join(program)))
}
