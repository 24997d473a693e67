//! The protections of a sandbox besides hiding the hub's files. They protect other processes from signals, and the
//! descriptors and memory of Claude Code itself. Each protection is active, with its mechanism, or missing, with a reason
//! for the operator.

use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

/// Whether the processes of a child may trace each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tracing {
    /// A process can trace only programs that it starts itself.
    #[default]
    Denied,
    /// As the system is configured.
    Allowed,
}

/// The status of one protection of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protection {
    /// Protected, by this mechanism.
    Held(String),
    /// Unprotected, for this reason.
    Open(String),
}

impl Protection {
    /// For a sandbox created by an older keeper.
    pub(super) fn unknown() -> Self {
        Self::Open("its keeper has an older version".to_owned())
    }
}

/// How to prevent a child's process from taking the descriptors of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Descriptors {
    /// The system prevents it, by this mechanism.
    System(String),
    /// A system call filter is needed.
    Filter,
    /// Nothing: tracing is allowed.
    Nothing,
}

impl Descriptors {
    pub(super) fn needed(tracing: Tracing) -> Self {
        match (tracing, yama()) {
            (Tracing::Allowed, _) => Self::Nothing,
            (Tracing::Denied, Some(by)) => Self::System(by),
            (Tracing::Denied, None) => Self::Filter,
        }
    }
}

/// How Claude Code's memory is protected against writes to `/proc/PID/mem`, which no system call filter can detect.
pub(super) fn memory(tracing: Tracing) -> Protection {
    match (tracing, yama()) {
        (Tracing::Allowed, _) => tracing_is_allowed(),
        (Tracing::Denied, Some(by)) => Protection::Held(by),
        (Tracing::Denied, None) => Protection::Open(
            "an agent's commands can write to /proc/PID/mem of the agent; kernel.yama.ptrace_scope = 1 \
             prevents this, except for root"
                .to_owned(),
        ),
    }
}

pub(super) fn tracing_is_allowed() -> Protection {
    Protection::Open("`tracing` in plexus.toml is \"allowed\"".to_owned())
}

/// The Yama scope from which a user cannot trace processes that are not its descendants.
const USERS_RESTRICTED_FROM: u32 = 1;
/// The same for root, which has every capability in its own user namespace: lower scopes exempt CAP_SYS_PTRACE.
const ROOT_RESTRICTED_FROM: u32 = 3;

fn yama() -> Option<String> {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok()?;
    let scope: u32 = scope.trim().parse().ok()?;
    let restricted_from = if geteuid().is_root() { ROOT_RESTRICTED_FROM } else { USERS_RESTRICTED_FROM };
    (scope >= restricted_from).then(|| format!("Yama (ptrace_scope {scope})"))
}
