//! What an earlier hub left, found before any door opens; and the tasks that a hub has from then on.

use std::sync::Arc;

use plexus_agent::ProcessIdentity;
use plexus_protocol::SessionId;
use plexus_protocol::claudecode::Channel;
use plexus_store::{RunRow, RunState, StoreError};

use super::Hub;
use crate::disk::Disk;
use crate::limits::weight;
use crate::{ChildMcp, housekeeping, run_process, sign_in};

impl Hub {
    /// Finds what an earlier hub left: children that live or ended meanwhile, turns in progress, open approvals.
    pub(crate) async fn take_up(self: &Arc<Self>) -> Result<(), StoreError> {
        self.tasks.spawn({
            let hub = Arc::clone(self);
            async move { hub.closing.run_until_cancelled(hub.book.see_to_deadlines()).await }
        });
        self.tasks.spawn(Disk::watch(Arc::clone(self)));
        sign_in::sweep(&self.settings.data_dir);
        self.policies.take_up(self.store.rules().await?);
        // Whoever was killed may have left the last of it untold.
        self.heads.moved(&self.store.audit_head().await?);
        self.tasks.spawn({
            let hub = Arc::clone(self);
            async move { hub.closing.run_until_cancelled(hub.heads.keep(&hub.files)).await }
        });
        self.take_up_worktrees().await?;
        let runs = self.store.open_runs().await?;
        // Known before any door opens: what stems from them must find none open.
        for run in &runs {
            let process = run.process.clone().map(run_process::from_stored);
            if let Some(keeper) = process.filter(ProcessIdentity::is_alive) {
                self.keeper_is(run.key.session, Some(keeper.pid));
            }
        }
        let mut sessions: Vec<SessionId> = runs.iter().map(|run| run.key.session).collect();
        for session in self.store.sessions().await? {
            let turn = self.store.turn(session.id, session.latest_turn).await?;
            self.room.lives(session.id, session.answers_to);
            if turn.is_some_and(|turn| turn.ended_at.is_none()) {
                sessions.push(session.id);
            }
        }
        for approval in self.book.take_up().await? {
            self.room.is_open(approval.approval.id, weight(&approval.approval.input));
            self.way_up.open(&approval);
            self.notifier.iter().for_each(|notifier| notifier.open(&approval));
        }
        if self.notifier.is_some() {
            let hub = Arc::clone(self);
            self.tasks.spawn(async move {
                let Some(notifier) = &hub.notifier else { return };
                hub.closing.run_until_cancelled(hub.see_to_notices(notifier)).await;
            });
        }
        self.tasks.spawn({
            let hub = Arc::clone(self);
            async move { hub.closing.run_until_cancelled(hub.see_to_the_way_up()).await }
        });
        self.tasks.spawn({
            let hub = Arc::clone(self);
            async move { hub.closing.run_until_cancelled(hub.see_to_waking()).await }
        });
        let over_http =
            |run: &&RunRow| run.state == RunState::External || self.settings.child_mcp == ChildMcp::Http;
        for run in runs.iter().filter(over_http) {
            for row in self.store.living_approvals(run.key).await? {
                if row.channel == Channel::Mcp && row.approval.delivered_at.is_none() {
                    self.attachments.detached(self, row.approval.id);
                }
            }
        }
        for session in sessions {
            self.session(session);
        }
        self.tasks.spawn(housekeeping::run(Arc::clone(self)));
        if !self.policies.is_empty() {
            let hub = Arc::clone(self);
            self.tasks.spawn(async move { hub.closing.run_until_cancelled(hub.settle(None)).await });
        }
        Ok(())
    }
}
