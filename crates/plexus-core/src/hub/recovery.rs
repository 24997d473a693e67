//! Recovery of a hub: it adopts what an earlier hub left before any door opens, and starts its background tasks.

use std::sync::Arc;

use plexus_agent::ProcessIdentity;
use plexus_protocol::SessionId;
use plexus_protocol::claudecode::Channel;
use plexus_store::{OpenFilter, RunRow, RunState, SessionRow, StoreError};

use super::Hub;
use crate::ChildMcp;
use crate::hooks::stop_orphaned_hooks;
use crate::housekeeping::{self, Housekeeping};
use crate::limits::input_size;
use crate::processes::run_process;

impl Hub {
    /// Adopts children that live or ended meanwhile, running turns and open approvals.
    pub(crate) async fn recover(self: &Arc<Self>) -> Result<(), StoreError> {
        let (parts, store) = (&self.parts, self.store());
        // Before the first read: what other hubs commit afterwards is read later.
        let seen = self.join_other_hubs().await?;
        self.complete_return().await?;
        self.in_background(|hub| async move { hub.book().run_expiry().await });
        self.in_background(|hub| async move { hub.parts.disk.watch().await });
        parts.policies.load(store.rules().await?);
        // A hub that was killed may not have anchored the end of the audit log.
        self.audit_anchors.on_commit(&store.audit_head().await?);
        self.in_background(|hub| async move { hub.audit_anchors.run(&hub.parts.files).await });
        self.worktrees.recover().await?;
        stop_orphaned_hooks(self.settings()).await;
        self.claude_version.recover().await;
        let runs = store.open_runs().await?;
        self.recover_keepers(&runs);
        let working = self.recover_sessions(&runs).await?;
        self.recover_approvals().await?;
        self.start_escalation();
        self.recover_permits(&runs).await?;
        for session in working {
            self.sessions.get(session);
        }
        parts.tasks.spawn_until_closing(housekeeping::run(Housekeeping {
            settings: Arc::clone(&parts.settings),
            store: Arc::clone(&parts.store),
            commits: Arc::clone(&parts.commits),
        }));
        if !parts.policies.is_empty() {
            self.in_background(|hub| async move { hub.policy.resolve_matching(hub.book(), None).await });
        }
        self.in_background(|hub| async move { hub.follow_other_hubs(seen).await });
        self.in_background(|hub| async move { hub.share_presence().await });
        Ok(())
    }

    /// Notes the keepers that live. They are known before any door opens: the processes of a child must find none open to them.
    fn recover_keepers(&self, runs: &[RunRow]) {
        for run in runs {
            let process = run.process.clone().map(run_process::from_stored);
            if let Some(keeper) = process.filter(ProcessIdentity::is_alive) {
                self.parts.keepers.insert(run.key.session, keeper.pid);
            }
        }
    }

    /// Counts the sessions of this host. Returns those that have a process or a running turn.
    async fn recover_sessions(&self, runs: &[RunRow]) -> Result<Vec<SessionId>, StoreError> {
        let mut working: Vec<SessionId> = runs.iter().map(|run| run.key.session).collect();
        for session in self.store().sessions().await?.into_iter().filter(|row| self.is_own(row.host.as_ref()))
        {
            let turn = self.store().turn(session.id, session.latest_turn).await?;
            self.parts.reservations.add_session(session.id, session.answers_to);
            if turn.is_some_and(|turn| turn.ended_at.is_none()) {
                working.push(session.id);
            }
        }
        Ok(working)
    }

    async fn recover_approvals(&self) -> Result<(), StoreError> {
        let parts = &self.parts;
        for approval in self.book().recover(self.store().host()).await? {
            parts.reservations.add_approval(approval.approval.id, input_size(&approval.approval.input));
            parts.escalation.open(&approval);
            parts.escalation.wake(&approval.approval.asked_of);
            self.notifier.iter().for_each(|notifier| notifier.open(&approval));
        }
        if self.store().fleet().is_some() {
            // Sessions of this host may be asked by sessions of other hosts.
            for row in self.store().open_approvals(OpenFilter::All).await? {
                parts.escalation.wake(&row.approval.asked_of);
            }
        }
        Ok(())
    }

    fn start_escalation(self: &Arc<Self>) {
        if self.notifier.is_some() {
            self.in_background(|hub| async move {
                if let Some(notifier) = &hub.notifier {
                    notifier.run(hub.store(), hub.commits()).await;
                }
            });
        }
        self.in_background(|hub| async move {
            hub.parts.escalation.run(hub.store(), hub.commits(), hub.settings()).await
        });
        self.in_background(|hub| async move { hub.wake_sessions().await });
    }

    /// Waits for the clients of permits over HTTP that an earlier hub served.
    async fn recover_permits(&self, runs: &[RunRow]) -> Result<(), StoreError> {
        let over_http =
            |run: &&RunRow| run.state == RunState::External || self.settings().child_mcp == ChildMcp::Http;
        for run in runs.iter().filter(over_http) {
            for row in self.store().approvals_without_result(run.key).await? {
                if row.channel == Channel::Mcp && row.approval.delivered_at.is_none() {
                    self.permits.detached(row.approval.id);
                }
            }
        }
        Ok(())
    }

    /// Starts a task that is dropped when the hub shuts down.
    pub(super) fn in_background<F>(self: &Arc<Self>, task: impl FnOnce(Arc<Self>) -> F)
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.tasks().spawn_until_closing(task(Arc::clone(self)));
    }

    /// Wakes the sessions that were asked and want to be woken, for as long as it is polled.
    async fn wake_sessions(&self) {
        loop {
            let id = self.parts.escalation.next_to_wake().await;
            let session = self.commits().retry(|| self.store().session(id)).await;
            let can_wake = |session: SessionRow| {
                session.config.wake && session.deleted_at.is_none() && self.is_own(session.host.as_ref())
            };
            if session.is_some_and(can_wake) {
                self.sessions.get(id).wake();
            }
        }
    }
}
