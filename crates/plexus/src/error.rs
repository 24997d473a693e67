//! What a user can meet, and the exit code of each. `1` is a refusal (by the hub, or by another hub), `2` a command
//! line that cannot be read, `130` a turn that was interrupted, and each kind of trouble with the surroundings has a number
//! of its own.

use std::path::PathBuf;
use std::process::ExitCode;

use plexus_server::{DataDirError, ServeError};
use thiserror::Error;

/// A failure that a user can do something about.
#[derive(Debug, Error)]
pub(crate) enum ExpectedError {
    /// The hub did not do what was asked.
    #[error("{0}")]
    Refused(String),
    /// The words on the command line.
    #[error("{0}")]
    Usage(String),
    /// `plexus.toml`, or where to look for it.
    #[error("{0}")]
    Settings(String),
    /// The hub cannot serve.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// There is no hub to talk to.
    #[error(
        "no hub is running in {0}; start one with `plexus up`, or with `plexus serve` in a terminal of its own"
    )]
    NoHub(PathBuf),
    /// The hub broke off.
    #[error("the hub went away: {0}")]
    Lost(String),
    /// A turn was ended by someone, or its follower left.
    #[error("{0}")]
    Interrupted(String),
    /// A keeper could not do its work.
    #[error("{0}")]
    Keep(String),
    /// Something of the system's that we cannot do without.
    #[error("{0}")]
    System(String),
}

impl ExpectedError {
    /// The number the process ends with.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Refused(_) | Self::Serve(ServeError::DataDir(DataDirError::Locked { .. })) => 1,
            Self::Usage(_) => 2,
            Self::Settings(_) => 3,
            Self::Serve(ServeError::DataDir(_)) => 4,
            Self::Serve(ServeError::Listen(_) | ServeError::Socket { .. } | ServeError::Tls(_)) => 5,
            Self::Serve(ServeError::Store(_)) => 6,
            Self::Serve(ServeError::Start(_)) => 7,
            Self::NoHub(_) => 8,
            Self::Lost(_) => 9,
            Self::Keep(_) => 10,
            Self::System(_) => 11,
            Self::Interrupted(_) => 130,
        })
    }
}

/// A runtime, or anything else of the system's, that could not be had.
pub(crate) fn system(error: impl std::fmt::Display) -> ExpectedError {
    ExpectedError::System(error.to_string())
}
