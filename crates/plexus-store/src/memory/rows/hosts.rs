//! Hosts: a store in memory has none.

use plexus_protocol::{ApprovalId, HostName, SessionId};

use super::super::tables::Tables;
use crate::rows::{HostRows, Stored};
use crate::{HostState, RunKey, SlotUse};

impl HostRows for Tables {
    fn host_state(&self, _host: &HostName) -> Stored<Option<HostState>> {
        Ok(None)
    }

    fn set_host_state(&mut self, _host: &HostName, _state: HostState) -> Stored<()> {
        Ok(())
    }

    fn slots_of_host(&self, _host: &HostName) -> Stored<Option<SlotUse>> {
        Ok(None)
    }

    fn fence_host(&mut self, _host: &HostName) -> Stored<()> {
        Ok(())
    }

    fn sessions_of_host(&self, _host: &HostName) -> Stored<Vec<SessionId>> {
        Ok(Vec::new())
    }

    fn open_runs_of_host(&self, _host: &HostName) -> Stored<Vec<RunKey>> {
        Ok(Vec::new())
    }

    fn pending_approvals_of_host(&self, _host: &HostName) -> Stored<Vec<ApprovalId>> {
        Ok(Vec::new())
    }
}
