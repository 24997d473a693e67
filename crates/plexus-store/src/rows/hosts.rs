//! The rows of hosts, and what belongs to a host. A store of a single machine has no hosts.

use plexus_protocol::{ApprovalId, HostName, SessionId};

use super::Stored;
use crate::{HostState, RunKey, SlotUse};

/// Hosts.
pub(crate) trait HostRows {
    /// The state of a host; `None` if the host does not exist.
    fn host_state(&self, host: &HostName) -> Stored<Option<HostState>>;
    /// Sets the state of a host.
    fn set_host_state(&mut self, host: &HostName, state: HostState) -> Stored<()>;
    /// The slots of a host; `None` if it has no limit.
    fn slots_of_host(&self, host: &HostName) -> Stored<Option<SlotUse>>;
    /// Raises the epoch of a host: its hub cannot commit any more.
    fn fence_host(&mut self, host: &HostName) -> Stored<()>;
    /// The sessions of a host that are not deleted, oldest first.
    fn sessions_of_host(&self, host: &HostName) -> Stored<Vec<SessionId>>;
    /// The runs of a host that have not ended, including those of deleted sessions.
    fn open_runs_of_host(&self, host: &HostName) -> Stored<Vec<RunKey>>;
    /// The pending approvals of a host, oldest first.
    fn pending_approvals_of_host(&self, host: &HostName) -> Stored<Vec<ApprovalId>>;
}
