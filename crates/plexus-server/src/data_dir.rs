//! The data directory of a hub: private, and locked by one process at a time. It contains the operator's token, the
//! identity key, the last port and the file that announces where the hub listens. This module does not manage the
//! database or the session directories.

use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plexus_core::Launcher;
use plexus_protocol::HostName;
use plexus_store::{Joined, PostgresAddress, StoreFiles, replace_file};
use rustix::system::uname;
use serde_json::json;
use thiserror::Error;

use crate::identity::{HubKey, hex};
use crate::links::replaceable_link;

/// The time for which the lock of a killed hub may persist. A child process that the killed hub was just starting
/// shares the lock until it calls `exec`.
const RELEASE_WITHIN: Duration = Duration::from_secs(1);
const RETRY_AFTER: Duration = Duration::from_millis(5);

/// The file of the private key with which the hub proves its identity.
const IDENTITY: &str = "identity.key";

/// Why a data directory is unusable.
#[derive(Debug, Error)]
pub enum DataDirError {
    /// A running hub uses it.
    #[error("{path} is in use by another hub{}", .pid.map(|pid| format!(" (process {pid})")).unwrap_or_default())]
    Locked {
        /// The data directory.
        path: PathBuf,
        /// The process id of the running hub, if the lock file contains it.
        pid: Option<u32>,
    },
    /// It belongs to another user.
    #[error("{0} belongs to another user")]
    Foreign(PathBuf),
    /// Its path contains a symbolic link that an agent could replace.
    #[error(
        "{link} is a symbolic link, which an agent could replace; use its target: --data-dir {real} (or \
         PLEXUS_DATA_DIR={real})"
    )]
    Link {
        /// The link.
        link: PathBuf,
        /// The data directory without links.
        real: PathBuf,
    },
    /// The token file does not contain a token.
    #[error("{0} does not contain a token; delete it, and the next start creates a new one")]
    BadToken(PathBuf),
    /// The key file does not contain a key of the hub.
    #[error(
        "{0} does not contain the hub's key; delete it, and the next start creates a new one. Then reload \
         console pages and restart running agents"
    )]
    BadKey(PathBuf),
    /// The state is in a database, and the database was not named.
    #[error(
        "the state of the hub in {path} is in a PostgreSQL database{}, where this machine is host `{}`: name the \
         database with --store URL, PLEXUS_STORE, or `url` under [store] in plexus.toml",
        .joined.database.as_ref().map(|database| format!(" ({database})")).unwrap_or_default(),
        .joined.host
    )]
    InDatabase {
        /// The data directory.
        path: PathBuf,
        /// The database.
        joined: Joined,
    },
    /// The state is in a file or in a database, which a migration has not finished.
    #[error(
        "a migration {direction} was interrupted, and the hub cannot start before it is finished: run the same `plexus migrate` again \
         ({note} has the details)"
    )]
    Unfinished {
        /// The migration, in words.
        direction: String,
        /// The note of the migration.
        note: PathBuf,
    },
    /// The state in the database belongs to a host of another name.
    #[error("this machine is host `{0}` in its database, and cannot have another name: use --host {0}")]
    OtherHost(String),
    /// The host name of this machine cannot be the name of a host.
    #[error("`{name}` cannot be the name of a host: {why}; choose one with --host")]
    BadHost {
        /// The name.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// The state is in a file, and a database was named.
    #[error(
        "{0} contains the state of a hub of this machine, whose agents may run: move it to the database with `plexus migrate --to URL`, or use \
         another --data-dir with --store"
    )]
    InFile(PathBuf),
    /// The directory or a file in it cannot be read or written.
    #[error("cannot use {path}: {source}")]
    Io {
        /// The path that failed.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
}

/// A data directory that this process holds until the value is dropped.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    /// The locked file. The kernel releases the lock however this process ends.
    _lock: File,
}

impl DataDir {
    /// Creates the directory if it is missing, makes it private, and locks it.
    ///
    /// # Errors
    /// When another hub uses the directory, or it is unusable.
    pub fn open(path: &Path) -> Result<Self, DataDirError> {
        Self::check_path(path)?;
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(at(path))?;
        let path = path.canonicalize().map_err(at(path))?;
        let metadata = path.metadata().map_err(at(&path))?;
        if metadata.uid() != rustix::process::geteuid().as_raw() {
            return Err(DataDirError::Foreign(path));
        }
        if metadata.mode() & 0o077 != 0 {
            std::fs::set_permissions(&path, Permissions::from_mode(0o700)).map_err(at(&path))?;
        }
        let lock = lock(&path)?;
        Ok(Self { path, _lock: lock })
    }

    /// Rejects a path that an agent could redirect to another directory.
    ///
    /// # Errors
    /// When the path contains such a link, or cannot be resolved.
    pub fn check_path(path: &Path) -> Result<(), DataDirError> {
        match replaceable_link(path).map_err(at(path))? {
            None => Ok(()),
            Some(link) => Err(DataDirError::Link { real: without_links(path), link }),
        }
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of the database, if the state is stored in a file.
    ///
    /// # Errors
    /// When the state is in a database that hosts share: with an empty file, the agents of this machine would not be found.
    pub(crate) fn store(&self) -> Result<PathBuf, DataDirError> {
        self.check_no_migration()?;
        match self.known_database()? {
            None => Ok(Self::store_in(&self.path)),
            Some(joined) => Err(DataDirError::InDatabase { path: self.path.clone(), joined }),
        }
    }

    /// The files that say where the state is.
    pub(crate) fn store_files(&self) -> StoreFiles {
        StoreFiles::of(&self.path)
    }

    /// Refuses a directory whose migration was interrupted: either store may be the complete one.
    fn check_no_migration(&self) -> Result<(), DataDirError> {
        let files = self.store_files();
        match files.unfinished().map_err(at(&files.note()))? {
            None => Ok(()),
            Some(note) => Err(DataDirError::Unfinished { direction: note.direction(), note: files.note() }),
        }
    }

    /// The name of this machine in a database that hosts share: the given one, or else the one it has had so far, or else its host name.
    ///
    /// # Errors
    /// When the machine already has another name, its host name cannot be one, or the state is in a file.
    pub(crate) fn host_name(&self, given: Option<&HostName>) -> Result<HostName, DataDirError> {
        self.check_no_migration()?;
        let file = Self::store_in(&self.path);
        if file.exists() {
            return Err(DataDirError::InFile(file));
        }
        self.name_of_host(given)
    }

    /// The name of this machine, wherever the state is.
    pub(crate) fn name_of_host(&self, given: Option<&HostName>) -> Result<HostName, DataDirError> {
        let valid = |name: String| {
            HostName::try_from(name.clone()).map_err(|why| DataDirError::BadHost { name, why })
        };
        match (given, self.known_database()?.map(|joined| joined.host)) {
            (Some(given), Some(known)) if given.as_str() != known => Err(DataDirError::OtherHost(known)),
            (_, Some(known)) => valid(known),
            (given, None) => {
                let own = || uname().nodename().to_string_lossy().into_owned();
                given.map_or_else(|| valid(own()), |given| Ok(given.clone()))
            }
        }
    }

    /// Notes that the state is stored in a database that hosts share, which this machine has joined under this name.
    pub(crate) fn joined(&self, name: &HostName, database: &PostgresAddress) -> Result<(), DataDirError> {
        let files = self.store_files();
        files.set_joined(name, &database.without_password()).map_err(at(&files.host()))
    }

    /// The database that contains the state, if it is in one that hosts share.
    fn known_database(&self) -> Result<Option<Joined>, DataDirError> {
        let files = self.store_files();
        files.joined().map_err(at(&files.host()))
    }

    /// The path of the file in which a hub counts its commits, if the state is stored in a database that hosts share.
    pub(crate) fn commit_count(&self) -> PathBuf {
        self.store_files().commit_count()
    }

    /// The path of the database of the hub in `path`.
    pub fn store_in(path: &Path) -> PathBuf {
        StoreFiles::of(path).sqlite()
    }

    /// The path of the Unix socket of the hub in `path`.
    pub fn socket(path: &Path) -> PathBuf {
        path.join("hub.sock")
    }

    /// The operator's token. The first call creates it.
    ///
    /// # Errors
    /// When the token cannot be read or created.
    pub fn operator_token(&self) -> Result<String, DataDirError> {
        let path = self.path.join("operator.token");
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let token = text.trim();
                if token.len() < 32 || !token.bytes().all(|b| b.is_ascii_graphic()) {
                    return Err(DataDirError::BadToken(path));
                }
                std::fs::set_permissions(&path, Permissions::from_mode(0o600)).map_err(at(&path))?;
                Ok(token.to_owned())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut bytes = [0_u8; 32];
                getrandom::fill(&mut bytes).map_err(io::Error::other).map_err(at(&path))?;
                let token = hex(&bytes);
                self.replace("operator.token", format!("{token}\n").as_bytes()).map_err(at(&path))?;
                Ok(token)
            }
            Err(error) => Err(at(&path)(error)),
        }
    }

    /// The key of the hub's identity. The first call creates it with `create`.
    pub(crate) fn identity_key(
        &self,
        create: impl FnOnce() -> io::Result<Vec<u8>>,
    ) -> Result<Vec<u8>, DataDirError> {
        let path = self.identity_path();
        match std::fs::read(&path) {
            Ok(key) => {
                std::fs::set_permissions(&path, Permissions::from_mode(0o600)).map_err(at(&path))?;
                Ok(key)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let key = create().map_err(at(&path))?;
                self.replace(IDENTITY, &key).map_err(at(&path))?;
                Ok(key)
            }
            Err(error) => Err(at(&path)(error)),
        }
    }

    pub(crate) fn bad_identity_key(&self) -> DataDirError {
        DataDirError::BadKey(self.identity_path())
    }

    fn identity_path(&self) -> PathBuf {
        self.path.join(IDENTITY)
    }

    /// Announces the address of the hub and its command for Claude Code to its clients, in `hub.json`.
    pub(crate) fn announce(&self, url: &str, key: &HubKey, claude: &Launcher) -> Result<(), DataDirError> {
        let note = json!({"url": url, "pid": std::process::id(), "key": key.0, "claude": claude});
        self.replace("hub.json", note.to_string().as_bytes()).map_err(at(&self.path.join("hub.json")))
    }

    /// Removes the file that [`Self::announce`] wrote, and the socket.
    pub(crate) fn retract(&self) {
        for path in [self.path.join("hub.json"), Self::socket(&self.path)] {
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(path = %path.display(), %error, "cannot delete a file");
                }
                _ => {}
            }
        }
    }

    pub(crate) fn remembered_port(&self) -> Option<u16> {
        std::fs::read_to_string(self.path.join("port")).ok()?.trim().parse().ok()
    }

    pub(crate) fn remember_port(&self, port: u16) -> io::Result<()> {
        self.replace("port", format!("{port}\n").as_bytes())
    }

    /// Replaces a file atomically: a reader, or a crash, sees either the old content or the new.
    fn replace(&self, name: &str, content: &[u8]) -> io::Result<()> {
        replace_file(&self.path, name, content)
    }
}

/// The path with all links resolved. Components that do not exist stay as they are.
fn without_links(path: &Path) -> PathBuf {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(real), ..) => real,
        (Err(_), Some(parent), Some(name)) => without_links(parent).join(name),
        _ => path.to_owned(),
    }
}

fn lock(dir: &Path) -> Result<File, DataDirError> {
    let path = dir.join("lock");
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let mut file = options.open(&path).map_err(at(&path))?;
    let give_up_at = Instant::now() + RELEASE_WITHIN;
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if Instant::now() < give_up_at => std::thread::sleep(RETRY_AFTER),
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let pid = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
                return Err(DataDirError::Locked { path: dir.to_owned(), pid });
            }
            Err(TryLockError::Error(error)) => return Err(at(&path)(error)),
        }
    }
    // The process id is only informative: the kernel holds the lock. The hub must start even on a full disk.
    let noted =
        file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{}", std::process::id()));
    if let Err(error) = noted {
        tracing::warn!(%error, "cannot write the lock file");
    }
    Ok(file)
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> DataDirError {
    let path = path.to_owned();
    move |source| DataDirError::Io { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().mode() & 0o777
    }

    #[test]
    fn a_data_directory_is_private_and_stays_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b");
        drop(DataDir::open(&path).unwrap());
        assert_eq!(mode(&path), 0o700);
        std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        drop(DataDir::open(&path).unwrap());
        assert_eq!(mode(&path), 0o700);
    }

    #[test]
    fn a_directory_behind_a_link_is_refused_and_its_real_path_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap().join("real");
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, folder.path().join("link")).unwrap();
        for (path, named) in [("link", real.clone()), ("link/data", real.join("data"))] {
            let refused = DataDir::open(&folder.path().join(path)).unwrap_err().to_string();
            assert!(refused.contains(&format!("--data-dir {}", named.display())), "{refused}");
            assert!(!real.join("data").exists(), "nothing is created");
        }
        DataDir::open(&real).unwrap();
    }

    #[test]
    fn a_data_directory_in_use_is_refused_with_the_process_that_uses_it() {
        let folder = tempfile::tempdir().unwrap();
        let first = DataDir::open(folder.path()).unwrap();
        let refused = DataDir::open(folder.path()).unwrap_err();
        assert!(refused.to_string().contains(&std::process::id().to_string()), "{refused}");
        drop(first);
        DataDir::open(folder.path()).unwrap();
    }

    #[test]
    fn the_state_is_either_in_a_file_or_in_a_database() {
        let folder = tempfile::tempdir().unwrap();
        let dir = DataDir::open(folder.path()).unwrap();
        let file = dir.store().unwrap();
        let name = |name: &str| HostName::try_from(name.to_owned()).unwrap();
        assert_eq!(dir.host_name(Some(&name("refused"))).unwrap(), name("refused"));
        assert_eq!(dir.host_name(Some(&name("one"))).unwrap(), name("one"));
        let address = PostgresAddress::parse("postgres://plexus:A-SECRET@db.example/plexus").unwrap();
        dir.joined(&name("one"), &address).unwrap();
        assert_eq!(dir.host_name(None).unwrap(), name("one"), "it keeps its name");
        let renamed = dir.host_name(Some(&name("two")));
        assert!(matches!(renamed, Err(DataDirError::OtherHost(known)) if known == "one"));
        let elsewhere = dir.store().unwrap_err().to_string();
        assert!(elsewhere.contains("(postgres://plexus@db.example:5432/plexus)"), "{elsewhere}");
        std::fs::remove_file(dir.store_files().host()).unwrap();
        std::fs::write(&file, "").unwrap();
        assert!(matches!(dir.host_name(None), Err(DataDirError::InFile(_))));
        assert_eq!(dir.store().unwrap(), file);
        // While a migration is interrupted, it is in neither.
        let note = r#"{"to": "sqlite", "database": "postgres://u@db/p", "schema": "s"}"#;
        std::fs::write(dir.store_files().note(), note).unwrap();
        for refused in [dir.store().err(), dir.host_name(None).err()] {
            assert!(matches!(refused, Some(DataDirError::Unfinished { .. })), "{refused:?}");
        }
    }

    #[test]
    fn the_token_is_created_once_and_readable_by_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let dir = DataDir::open(folder.path()).unwrap();
        let token = dir.operator_token().unwrap();
        assert_eq!(token.len(), 64);
        let path = folder.path().join("operator.token");
        assert_eq!(mode(&path), 0o600);
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        assert_eq!(dir.operator_token().unwrap(), token);
        assert_eq!(mode(&path), 0o600);
        std::fs::write(&path, "\n").unwrap();
        assert!(matches!(dir.operator_token(), Err(DataDirError::BadToken(_))));
    }
}
