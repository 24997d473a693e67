//! Hosts in SQL. Only a database that hubs share has the table of hosts; the others know no host.

use plexus_protocol::{ApprovalId, HostName, SessionId};

use super::super::columns::{Text, Word};
use super::super::database::HostStatements;
use super::super::reads;
use super::SqlRows;
use crate::rows::{HostRows, Stored};
use crate::{HostState, RunKey, SlotUse};

impl SqlRows<'_> {
    fn hosts(&self) -> Option<&'static HostStatements> {
        self.database.dialect().hosts.as_ref()
    }
}

impl HostRows for SqlRows<'_> {
    fn host_state(&self, host: &HostName) -> Stored<Option<HostState>> {
        let Some(hosts) = self.hosts() else { return Ok(None) };
        let found: Option<Word<_>> = self.database.one(hosts.state, [host.as_str()], |row| row.get(0))?;
        Ok(found.map(|Word(state)| state))
    }

    fn set_host_state(&mut self, host: &HostName, state: HostState) -> Stored<()> {
        let Some(hosts) = self.hosts() else { return Ok(()) };
        self.write(hosts.set_state, (host.as_str(), Word(state)))
    }

    fn slots_of_host(&self, host: &HostName) -> Stored<Option<SlotUse>> {
        let Some(hosts) = self.hosts() else { return Ok(None) };
        self.database
            .one(hosts.slots, [host.as_str()], |row| Ok(SlotUse { slots: row.get(0)?, used: row.get(1)? }))
    }

    fn fence_host(&mut self, host: &HostName) -> Stored<()> {
        let Some(hosts) = self.hosts() else { return Ok(()) };
        self.write(hosts.fence, [host.as_str()])
    }

    fn sessions_of_host(&self, host: &HostName) -> Stored<Vec<SessionId>> {
        let Some(hosts) = self.hosts() else { return Ok(Vec::new()) };
        self.database.all(hosts.sessions, [host.as_str()], |row| row.get(0).map(|Text(session)| session))
    }

    fn open_runs_of_host(&self, host: &HostName) -> Stored<Vec<RunKey>> {
        Ok(reads::open_runs(self.database, Some(host))?.into_iter().map(|run| run.key).collect())
    }

    fn pending_approvals_of_host(&self, host: &HostName) -> Stored<Vec<ApprovalId>> {
        let Some(hosts) = self.hosts() else { return Ok(Vec::new()) };
        self.database
            .all(hosts.pending_approvals, [host.as_str()], |row| row.get(0).map(|Text(approval)| approval))
    }
}
