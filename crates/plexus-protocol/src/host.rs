//! `host.*`: the machines whose hubs share a store.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{HostLabel, HostName};

/// The state of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HostState {
    /// Its hub is connected.
    Connected,
    /// Its hub has not been heard from for ten seconds or more. Its agents may run.
    Unreachable,
    /// It was declared lost: its hub cannot write, and its agents are stopped when it is back.
    Lost,
}

/// A host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostView {
    /// Its name.
    pub name: HostName,
    /// Whether it is the host of the hub that answers.
    pub here: bool,
    /// Its state.
    pub state: HostState,
    /// For how many seconds it has been unreachable; omitted while it is connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_secs: Option<u64>,
    /// Whether it gets no new sessions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub draining: bool,
    /// For the host of the hub that answers: whether the database has lost commits that this host had made or seen. Its hub holds all changes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost_commits: bool,
    /// The version of Plexus of its hub.
    pub version: String,
    /// Its labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<HostLabel>,
    /// How many slots it has; omitted if it has no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<u64>,
    /// How many of its sessions take a slot: those with a running turn, and those that are new.
    #[serde(default)]
    pub used_slots: u64,
    /// How many sessions it has.
    pub sessions: u64,
    /// How many of their approvals are open.
    pub open_approvals: u64,
}

/// Result of `host.list`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ListResult {
    /// The hosts.
    Ok {
        /// By name; empty if the hub stores its state in a file of its own.
        hosts: Vec<HostView>,
    },
}

/// Parameters of `host.drain`, `host.undrain` and `host.remove`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostParams {
    /// The name of the host.
    pub host: HostName,
}

/// Parameters of `host.add`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddParams {
    /// The name of the host.
    pub host: HostName,
    /// Gives a host that was added before a new password, and its rights back if it was declared lost.
    #[serde(default)]
    pub renew: bool,
}

/// Result of `host.add`. Debug output does not contain the password.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AddResult {
    /// The host has a role of its own in the database.
    Ok {
        /// The name of the host.
        host: HostName,
        /// The address of the database with its role, without the password.
        url: String,
        /// The password of the role. It is not stored and cannot be read again.
        password: String,
        /// Whether the address is valid on the machine of the hub only.
        local: bool,
    },
}

impl fmt::Debug for AddResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Ok { host, url, .. } = self;
        f.debug_struct("Ok").field("host", host).field("url", url).finish_non_exhaustive()
    }
}

/// Parameters of `host.lose`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoseParams {
    /// The name of the host.
    pub host: HostName,
    /// Declares it lost although its hub is connected.
    #[serde(default)]
    pub force: bool,
}

/// Result of a method that changes the state of a host.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum HostResult {
    /// The state is changed.
    Ok {
        /// The name of the host.
        host: HostName,
    },
}

/// Result of `host.accept_rollback`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AcceptRollbackResult {
    /// The hub stops. The next one continues with the state of the database.
    Ok {},
}
