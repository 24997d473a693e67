//! Errors that a user can act on, and the exit code of each. `1` means that the hub refused (or that another hub holds the data
//! directory), `2` an invalid command line, `130` an interrupted turn. Each other kind of failure has its own code.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use plexus_core::Fenced;
use plexus_server::{DataDirError, ServeError};
use thiserror::Error;

use crate::port_user::PortUser;

/// A failure that a user can act on.
#[derive(Debug, Error)]
pub(crate) enum ExpectedError {
    /// The hub refused the request.
    #[error("{0}")]
    Refused(String),
    /// The command line is invalid.
    #[error("{0}")]
    Usage(String),
    /// `plexus.toml` is invalid, or the data directory is unknown.
    #[error("{0}")]
    Settings(String),
    /// The data directory cannot be used.
    #[error("cannot use the data directory {}: {error}", dir.display())]
    DataDir {
        /// The directory.
        dir: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The hub cannot serve.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// Another program uses the port of the hub.
    #[error(
        "another program uses {address}: {user}; choose another port with `--listen {}:0` (any free port), PLEXUS_LISTEN, or `listen` in plexus.toml",
        address.ip()
    )]
    PortInUse {
        /// The address of the hub.
        address: SocketAddr,
        /// The other program.
        user: PortUser,
    },
    /// `plexus up` started a hub, and it exited.
    #[error("the hub did not start: {message}")]
    NotStarted {
        /// Its last message, and where its log is.
        message: String,
        /// Its exit code, if it has one.
        code: Option<u8>,
    },
    /// No hub is running.
    #[error(
        "no hub is running in {0}; start it with `plexus up`, or with `plexus serve` in another terminal"
    )]
    NoHub(PathBuf),
    /// The hub stopped responding.
    #[error("the connection to the hub was lost: {0}")]
    Lost(String),
    /// The hub can never write again.
    #[error("{}", match .0 {
        Fenced::Lost => "this host was declared lost, and its agents were stopped; start the hub again to rejoin, after `plexus host add --renew` if the host has a role of its own",
        Fenced::RolledBack => "lost commits were accepted; start the hub again to continue with the state of the database",
        Fenced::Replaced => "another hub of this host has started, or a newer Plexus has upgraded the schema of the database, so this hub stopped; its agents wait for the next hub of this host. If none is running, update Plexus on this machine and start it",
    })]
    Fenced(Fenced),
    /// A turn was interrupted, or the user left.
    #[error("{0}")]
    Interrupted(String),
    /// A keeper failed.
    #[error("{0}")]
    Keep(String),
    /// A system call or resource failed.
    #[error("{0}")]
    System(String),
}

impl ExpectedError {
    /// The exit code of the process.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Refused(_) | Self::Serve(ServeError::DataDir(DataDirError::Locked { .. })) => 1,
            Self::Usage(_) => 2,
            Self::Settings(_) => 3,
            Self::Serve(ServeError::DataDir(_)) | Self::DataDir { .. } => 4,
            Self::Serve(ServeError::Listen(_) | ServeError::Socket { .. } | ServeError::Tls(_))
            | Self::PortInUse { .. } => 5,
            Self::Serve(ServeError::Store(_)) => 6,
            Self::Serve(ServeError::Start(_)) => 7,
            // The same as that of `plexus serve`.
            Self::NotStarted { code, .. } => code.unwrap_or(7),
            Self::NoHub(_) => 8,
            Self::Lost(_) => 9,
            Self::Keep(_) => 10,
            Self::System(_) => 11,
            Self::Fenced(_) => 12,
            Self::Interrupted(_) => 130,
        })
    }
}

/// Wraps a failure of a system call or resource.
pub(crate) fn system(error: impl std::fmt::Display) -> ExpectedError {
    ExpectedError::System(error.to_string())
}
