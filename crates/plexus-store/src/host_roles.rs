//! The role with which the hub of a host uses a shared database. A hub with the role that owns the tables is trusted with all hosts; it gives other hosts roles that
//! are limited to their own sessions, and takes them away.

use std::fmt;

use async_trait::async_trait;
use plexus_protocol::HostName;
use thiserror::Error;

use crate::StoreError;

/// The roles of hosts.
#[async_trait]
pub trait HostRoles: Send + Sync {
    /// The role of this hub.
    fn role(&self) -> Role;

    /// Checks whether [`HostRoles::admit`] is possible.
    async fn check(&self, host: &HostName, admission: Admission) -> Result<(), RoleError>;

    /// Creates the role of a host, or gives an existing one a new password and its rights back.
    async fn admit(&self, host: &HostName, admission: Admission) -> Result<HostAccess, RoleError>;

    /// Takes all rights from the role of a host and ends its connections. Waits for no transaction. Does nothing for a host without a role of its own.
    async fn stop(&self, host: &HostName) -> Result<(), StoreError>;

    /// Deletes the role of a host, if it has one of its own.
    async fn remove(&self, host: &HostName) -> Result<(), StoreError>;
}

/// What a role is limited to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It owns the tables: nothing.
    Owner,
    /// The sessions of one host.
    Runner,
}

/// For which host a password is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// A new one.
    New,
    /// One that was added before. Its old password is not valid any more.
    Renewed,
}

/// What a machine needs to connect as its host. The debug output hides the password.
#[derive(Clone)]
pub struct HostAccess {
    /// The address of the database, without the password.
    pub url: String,
    /// The password.
    pub password: String,
    /// Whether the address is valid on this machine only.
    pub is_local: bool,
}

impl fmt::Debug for HostAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostAccess").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Why a host gets no role.
#[derive(Debug, Clone, Error)]
pub enum RoleError {
    /// This hub has a limited role itself.
    #[error("the role of this hub does not own the tables: use a hub whose role does")]
    NotOwner,
    /// The role of this hub cannot create roles.
    #[error(
        "the role `{0}` cannot create roles: run `ALTER ROLE \"{0}\" CREATEROLE` as an administrator of the database"
    )]
    CannotCreateRoles(String),
    /// The host was added before.
    #[error("host `{0}` was already added: use --renew for a new password")]
    Exists(HostName),
    /// The host uses the role of the owner.
    #[error("host `{0}` already takes part with the role that owns the tables: choose another name")]
    IsOwner(HostName),
    /// Another machine had the name, and its sessions are still stored.
    #[error(
        "the database has sessions of an earlier host `{0}`, which the new one could read: choose another name"
    )]
    WasUsed(HostName),
    /// A host that was never added has no password to renew.
    #[error("host `{0}` was not added: omit --renew")]
    NotAdded(HostName),
    /// The name is too long.
    #[error("`{0}` is too long for the name of a role: choose a shorter name")]
    TooLong(String),
    /// The database has refused.
    #[error(transparent)]
    Store(#[from] StoreError),
}
