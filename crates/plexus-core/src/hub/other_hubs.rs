//! Hubs that share the store with this one. Each owns the sessions of its host: only it has their processes and files. This module publishes what the
//! other hubs commit, executes the commands that they send, and sends commands for sessions of other hosts.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use plexus_protocol::{
    ApprovalId, ApprovalKind, ApprovalStatus, AskedOf, Error, ErrorKind, HostName, SessionId,
};
use plexus_store::{
    ApprovalRow, CommandRow, Committed, Fleet, News, OpenFilter, RemoteCommits, StoreError, Wake,
};
use serde::Deserialize;
use serde_json::Value;

use super::{Hub, Method};
use crate::callers::access::{self, Admitted};
use crate::callers::caller::Caller;
use crate::commands::{Commands, SentCaller, write_reply};
use crate::errors::store_error;
use crate::method::{IfUnreachable, Place, Repeat, Subject};
use crate::session::SessionHandle;

/// How long a hub that shuts down executes the commands that it has taken.
const FINISHED_WITHIN: Duration = Duration::from_secs(10);
/// How often hubs exchange which agents are present.
const SHARE_PRESENCE: Duration = Duration::from_secs(2);

/// The parameters that name a session or an approval.
#[derive(Deserialize)]
struct Named {
    session_id: Option<SessionId>,
    name: Option<String>,
    approval_id: Option<ApprovalId>,
    host: Option<HostName>,
}

impl Hub {
    /// Whether this hub runs the sessions of this host. A store of a single machine has no hosts.
    pub(crate) fn is_own(&self, host: Option<&HostName>) -> bool {
        self.store().host() == host
    }

    /// Forwards a call to the hub of the host that runs the session; `None` if this hub has to execute it.
    pub(super) async fn call_elsewhere(
        &self,
        method: &Method,
        caller: &Admitted,
        params: &Value,
    ) -> Option<Result<Value, Error>> {
        let (Some(_), Place::HostOf(subject, if_unreachable)) = (&self.commands, method.place) else {
            return None;
        };
        let host = match self.host_of(subject, caller, params).await {
            Ok(host) => host.filter(|host| !self.is_own(Some(host)))?,
            Err(error) => return Some(Err(error)),
        };
        let reply = self.call_on(&host, caller, method.name, params.clone()).await;
        if !matches!(&reply, Err(error) if error.kind == ErrorKind::HostUnreachable) {
            return Some(reply);
        }
        let executed_here = match if_unreachable {
            IfUnreachable::Fail => false,
            IfUnreachable::ExecuteHere => true,
            IfUnreachable::ExecuteHereIfLost => {
                self.lost_hosts().await.is_ok_and(|lost| lost.contains(&host))
            }
        };
        (!executed_here).then_some(reply)
    }

    /// Counts the sessions of other hosts: the limits of a tree hold across hosts.
    pub(crate) async fn count_sessions_elsewhere(&self) -> Result<(), Error> {
        if self.commands.is_some() {
            let sessions = self.store().sessions().await.map_err(store_error)?;
            let others = sessions.into_iter().filter(|row| !self.is_own(row.host.as_ref()));
            self.parts.reservations.set_elsewhere(others.map(|row| (row.id, row.answers_to)));
        }
        Ok(())
    }

    /// The hosts that were declared lost: nothing can be executed there.
    pub(crate) async fn lost_hosts(&self) -> Result<BTreeSet<HostName>, Error> {
        let Some(fleet) = self.fleet() else { return Ok(BTreeSet::new()) };
        let hosts = fleet.hosts().await.map_err(store_error)?;
        Ok(hosts.into_iter().filter(|row| row.state.is_fenced()).map(|row| row.name).collect())
    }

    /// The host that runs the session of a call.
    async fn host_of(
        &self,
        subject: Subject,
        caller: &Admitted,
        params: &Value,
    ) -> Result<Option<HostName>, Error> {
        // The method itself reports parameters that cannot be read.
        let Ok(named) = Named::deserialize(params) else { return Ok(None) };
        match subject {
            Subject::Session if named.session_id.is_none() && named.name.is_none() => Ok(None),
            Subject::Session => {
                let Named { session_id, name, .. } = named;
                Ok(access::find_session(self.store(), caller, session_id, name.as_deref()).await?.host)
            }
            Subject::Approval => match named.approval_id {
                Some(id) => Ok(access::find_approval(self.store(), caller, id).await?.0.approval.host),
                None => Ok(None),
            },
            Subject::Host => Ok(named.host),
        }
    }

    /// Calls a method on the hub of another host.
    pub(crate) async fn call_on(
        &self,
        host: &HostName,
        caller: &Admitted,
        method: &str,
        params: Value,
    ) -> Result<Value, Error> {
        let commands = self.commands.as_ref();
        let commands = commands.ok_or_else(|| Error::new(ErrorKind::Internal, "this hub is the only one"))?;
        commands.call(host, caller, method, params).await
    }

    /// Wakes the other hubs after a commit. What only people see on other hosts is not urgent: events, of which an agent writes many, and approvals
    /// that the operator decides. The host of an approval has an agent that waits for its decision.
    pub(super) fn wake_other_hubs(&self, committed: &Committed) {
        let Some(commands) = &self.commands else { return };
        let Committed { approvals, feed, events, rules, ended_tokens, budgets, .. } = committed;
        let operator = AskedOf::Operator.key();
        let is_for_agents = feed.iter().any(|entry| entry.to != operator)
            || approvals.iter().any(|row| row.approval.kind == ApprovalKind::Budget);
        let is_urgent = is_for_agents || !rules.is_empty() || !ended_tokens.is_empty() || !budgets.is_empty();
        let fleet = commands.fleet();
        if is_urgent {
            fleet.wake(Wake::All);
        } else if !approvals.is_empty() || !feed.is_empty() || !events.is_empty() {
            fleet.wake(Wake::AllSoon);
        }
        let hosts = approvals.iter().filter_map(|row| row.approval.host.as_ref());
        hosts.filter(|host| !self.is_own(Some(host))).for_each(|host| fleet.wake(Wake::Host(host.clone())));
    }

    /// The hubs that share the store.
    pub(super) fn fleet(&self) -> Option<Arc<dyn Fleet>> {
        self.commands.as_ref().map(|commands| Arc::clone(commands.fleet()))
    }

    /// Publishes what other hubs commit after transaction `seen` and executes their commands, for as long as it is polled.
    pub(super) async fn follow_other_hubs(self: Arc<Self>, mut seen: u64) -> Infallible {
        let Some(commands) = &self.commands else { return std::future::pending().await };
        loop {
            let news = commands.fleet().woken().await;
            if let Err(error) = self.catch_up(commands, news, &mut seen).await {
                tracing::warn!(%error, "cannot read what other hubs have done; trying again");
            }
        }
    }

    /// Exchanges with the other hubs which agents are present, for as long as it is polled: the parent of a session may call another hub.
    pub(super) async fn share_presence(self: Arc<Self>) -> Infallible {
        let Some(fleet) = self.fleet() else { return std::future::pending().await };
        let escalation = &self.parts.escalation;
        loop {
            let mut here = escalation.present_here(2 * SHARE_PRESENCE);
            // In one order for all hubs, so that they do not wait for each other's locks.
            here.sort_unstable();
            let shared = async {
                if !here.is_empty() {
                    fleet.note_present(&here).await?;
                }
                fleet.present(escalation.present_for()).await
            };
            match shared.await {
                Ok(seen) => escalation.set_present_elsewhere(seen),
                Err(error) => tracing::debug!(%error, "cannot exchange which agents are present"),
            }
            tokio::time::sleep(SHARE_PRESENCE).await;
        }
    }

    async fn catch_up(
        self: &Arc<Self>,
        commands: &Commands,
        news: News,
        seen: &mut u64,
    ) -> Result<(), StoreError> {
        let fleet = commands.fleet();
        let executing = commands.executing();
        let of_commands = async {
            match news {
                News::Commits => (Ok(Vec::new()), Ok(())),
                News::Any => {
                    let (withdrawn, replies) = (commands.withdraw_abandoned(), commands.read_replies());
                    let (taken, withdrawn, replies) =
                        tokio::join!(fleet.take_commands(&executing), withdrawn, replies);
                    (taken, withdrawn.and(replies))
                }
            }
        };
        let (commits, (taken, mut of_replies)) = tokio::join!(fleet.commits_after(*seen), of_commands);
        // Each command that was taken has to be executed, whatever else fails.
        for command in taken? {
            if let Some(reply) = commands.reply_of(command.id) {
                // The database has lost the reply, but not the command.
                of_replies = of_replies.and(fleet.reply(command.id, &reply).await);
            } else if commands.try_start(command.id) {
                self.tasks().spawn(Arc::clone(self).execute(command));
            }
        }
        let mut commits = commits?;
        loop {
            let (last, has_more) = (commits.last, commits.has_more);
            self.publish_remote(commits).await?;
            // Advance only after everything was published, so that these commits are read again after a failure.
            *seen = last;
            if !has_more {
                return of_replies;
            }
            commits = fleet.commits_after(*seen).await?;
        }
    }

    async fn publish_remote(&self, commits: RemoteCommits) -> Result<(), StoreError> {
        let RemoteCommits { changed, count, incomplete, .. } = commits;
        if count == 0 && !incomplete {
            return Ok(());
        }
        let (rules, budgets) = (changed.rules, changed.budgets);
        let store = self.store();
        if rules || incomplete {
            self.reload_rules().await?;
        }
        let mut rows = Vec::new();
        for (id, approval) in &changed.approvals {
            // For an approval of another host this hub only wakes its decider, which the change names.
            if approval.is_about_budget || self.is_own(approval.host.as_ref()) {
                rows.extend(store.approval(*id).await?);
            } else if approval.is_pending {
                self.parts.escalation.wake(&approval.asked_of);
            }
        }
        if incomplete {
            rows.extend(self.own_resolved_approvals().await?);
            let open = store.open_approvals(OpenFilter::All).await?;
            open.iter().for_each(|row| self.parts.escalation.wake(&row.approval.asked_of));
            // Another hub may have created a budget approval of a session of this host, which sets its deadlines.
            rows.extend(open.into_iter().filter(|row| self.is_own(row.approval.host.as_ref())));
        }
        // After a failure, commits are read twice. An answer that was delivered is not delivered again.
        rows.iter()
            .filter(|row| row.approval.delivered_at.is_none())
            .for_each(|row| self.publish_approval(row));
        if budgets || incomplete {
            self.sessions.all_started().iter().for_each(SessionHandle::limits_changed);
        }
        let of_approvals = changed.approvals.values().map(|approval| &approval.session);
        changed
            .sessions
            .iter()
            .chain(of_approvals)
            .for_each(|session| self.follow.on_remote_events(*session));
        if incomplete {
            self.follow.on_remote_events_of_all();
            self.commits().publish_unknown();
        } else {
            self.commits().publish_remote(&changed);
        }
        if rules || incomplete {
            self.policy.resolve_matching(self.book(), None).await;
        }
        Ok(())
    }

    /// Reads the rules that other hubs may have changed a moment ago.
    pub(crate) async fn refresh_rules(&self) -> Result<(), Error> {
        match &self.commands {
            Some(_) => self.reload_rules().await.map_err(store_error),
            None => Ok(()),
        }
    }

    /// Reads the rules again. This hub may change them meanwhile.
    async fn reload_rules(&self) -> Result<(), StoreError> {
        let policies = &self.parts.policies;
        loop {
            let version = policies.version();
            if policies.load_at(version, self.store().rules().await?) {
                return Ok(());
            }
        }
    }

    /// The resolved approvals of running sessions of this host whose tool calls have no result yet.
    async fn own_resolved_approvals(&self) -> Result<Vec<ApprovalRow>, StoreError> {
        let mut rows = Vec::new();
        for run in self.store().open_runs().await? {
            rows.extend(self.store().approvals_without_result(run.key).await?);
        }
        rows.retain(|row| row.approval.status != ApprovalStatus::Pending);
        Ok(rows)
    }

    /// Executes a command of another hub, and replies. The next hub replies to a command that this one could not reply to.
    async fn execute(self: Arc<Self>, command: CommandRow) {
        let Some(commands) = &self.commands else { return };
        let (id, origin) = (command.id, command.origin.clone());
        let executed = async {
            let result = AssertUnwindSafe(Box::pin(self.result_of(command))).catch_unwind().await;
            let panicked = |_| {
                Err(Error::new(
                    ErrorKind::Internal,
                    "internal error; see the log of the hub that executed the request",
                ))
            };
            let result = result.unwrap_or_else(panicked);
            commands.figures().executed(&origin, &result);
            let reply = write_reply(result);
            self.commits().retry(|| commands.fleet().reply(id, &reply)).await;
            commands.finish(id, reply);
        };
        tokio::select! {
            () = executed => {}
            // The database may be unreachable: the next hub replies.
            () = async {
                self.tasks().closing().cancelled().await;
                tokio::time::sleep(FINISHED_WITHIN).await;
            } => {}
        }
    }

    async fn result_of(self: &Arc<Self>, command: CommandRow) -> Result<Value, Error> {
        let CommandRow { origin, caller, method, params, expired, taken_before, .. } = command;
        let unreachable = |message: &str| Err(Error::new(ErrorKind::HostUnreachable, message));
        let is_repeatable = self.registry.get(&method).is_some_and(|method| method.repeat == Repeat::Safe);
        if taken_before && !is_repeatable {
            return unreachable(
                "the hub of the host stopped while it executed the request, which may have taken effect",
            );
        }
        if expired {
            return unreachable("the request reached its host too late and was not executed; try again");
        }
        let caller: SentCaller = serde_json::from_value(caller).map_err(|error| {
            Error::new(
                ErrorKind::Internal,
                format!("the hub of host `{origin}` sent a caller that cannot be read: {error}"),
            )
        })?;
        self.call(Caller::from(caller), &method, params).await
    }
}
