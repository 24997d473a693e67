//! The hub: it builds the parts, calls methods for callers, and publishes every commit to the parts that wait for it.
//! `recovery` adopts what an earlier hub left; `other_hubs`, `own_host` and `placement` are for hubs that share a store; `doors` is the interface for the network doors.

mod doors;
mod other_hubs;
mod own_host;
mod placement;
mod recovery;

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Weak};

use plexus_agent::JournalWatch;
use plexus_protocol::{ApprovalKind, ApprovalStatus, Error, ErrorKind, Principal};
use plexus_store::{ApprovalRow, Change, Committed, Fenced, Ledger, Slots, Store, StoreError};
use serde_json::Value;
use tokio::sync::{Semaphore, watch};

use crate::approvals::permit::Permits;
use crate::audit::anchor::{AuditAnchor, AuditAnchors};
use crate::callers::access::{self, Needs, on_behalf_of, permits_needs};
use crate::callers::caller::Caller;
use crate::callers::sign_in::SignInCodes;
use crate::claude_version::ClaudeVersion;
use crate::commands::Commands;
use crate::disk::Disk;
use crate::errors::shutting_down;
use crate::escalation::Escalation;
use crate::follow::Follow;
use crate::loading::{Imports, UserSettings};
use crate::method::{ToolUser, method_not_found};
use crate::metrics::Metrics;
use crate::notify::Notifier;
use crate::policy::{Policies, Policy};
use crate::processes::files::Files;
use crate::processes::keepers::Keepers;
use crate::processes::sandbox::SandboxSetup;
use crate::read_positions::ReadPositions;
use crate::session::{SessionHandle, Sessions};
use crate::shared_parts::Parts;
use crate::tasks::Tasks;
use crate::worktrees::Worktrees;
use crate::{Address, Settings};
use plexus_book::{Book, Commits, Meter};

pub use own_host::end_processes_in;
pub(crate) use own_host::end_processes_of;

/// How many sessions may hold many unstored lines in memory.
const MAX_READING: usize = 4;

/// How many conversations are rendered at once.
const MAX_RENDERING: usize = 2;
/// How many of them for callers other than the operator.
const MAX_SHARED_RENDERING: usize = 1;

/// A method of the hub.
pub type Method = crate::method::Method<Hub>;
/// The methods of the hub.
pub type Registry = crate::method::Registry<Hub>;

/// What happens to the children when a hub shuts down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShutDown {
    /// They stay, paused at the gate, for the next hub.
    LeaveChildren,
    /// They are ended, with all their processes.
    EndChildren,
}

/// The hub. Every task and door shares it; it owns no child: the owner of each session does.
pub struct Hub {
    registry: Registry,
    parts: Arc<Parts>,
    sessions: Arc<Sessions>,
    policy: Policy,
    permits: Arc<Permits>,
    follow: Follow,
    worktrees: Arc<Worktrees>,
    claude_version: Arc<ClaudeVersion>,
    positions: ReadPositions,
    rendering: Slots,
    audit_anchors: AuditAnchors,
    sign_in_codes: Arc<SignInCodes>,
    notifier: Option<Notifier>,
    /// For a hub that shares its store with others.
    commands: Option<Commands>,
    /// Why this hub can never write again, if so.
    fenced: watch::Sender<Option<Fenced>>,
}

impl Hub {
    pub(crate) async fn new(
        settings: Settings,
        address: Address,
        store: Arc<dyn Store>,
        registry: Registry,
        sandbox: SandboxSetup,
        audit_anchors: Vec<Box<dyn AuditAnchor>>,
    ) -> io::Result<Arc<Self>> {
        let settings = Arc::new(settings);
        let tasks = Tasks::default();
        let metrics = Arc::new(Metrics::default());
        let own_program = plexus_agent::pinned(&settings.plexus);
        let files = Files::new(own_program.clone(), &sandbox, tasks.closing().clone());
        let user_settings =
            UserSettings::at_start(settings.user_settings.clone(), &settings.data_dir, &files).await;
        let policies = Arc::new(Policies::default());
        policies.set_restriction(user_settings.restriction());
        let ledger = Arc::clone(&store) as Arc<dyn Ledger>;
        let commits = Arc::new(Commits::new(ledger, Arc::clone(&metrics) as Arc<dyn Meter>));
        let parts = Arc::new(Parts {
            own_program,
            address,
            book: Arc::new(Book::new(Arc::clone(&commits))),
            commits,
            policies,
            escalation: Arc::new(Escalation::new(&settings)),
            reservations: Arc::default(),
            metrics,
            deltas: Arc::default(),
            disk: Disk::of(&settings.data_dir, settings.limits.reserve_bytes)?,
            watch: JournalWatch::new()?,
            sandbox,
            files,
            user_settings,
            imports: Imports::at_start(&settings),
            keepers: Keepers::default(),
            reading: Arc::new(Semaphore::new(MAX_READING)),
            tasks,
            store,
            settings,
        });
        let hub = Arc::new(Self::of(registry, parts, audit_anchors));
        let this: Weak<Self> = Arc::downgrade(&hub);
        hub.parts.store.observe(Box::new(move |committed| {
            if let Some(hub) = this.upgrade() {
                hub.publish(committed);
            }
        }));
        Ok(hub)
    }

    fn of(registry: Registry, parts: Arc<Parts>, audit_anchors: Vec<Box<dyn AuditAnchor>>) -> Self {
        let Parts { settings, store, commits, book, tasks, .. } = &*parts;
        let sessions = Sessions::new(Arc::clone(&parts));
        let notify = settings.notify.clone();
        Self {
            registry,
            policy: Policy::new(Arc::clone(&parts.policies), Arc::clone(store), Arc::clone(settings)),
            permits: Permits::new(
                Arc::clone(store),
                Arc::clone(commits),
                Arc::clone(book),
                Arc::clone(&sessions),
                tasks.clone(),
                settings.permit_window(),
            ),
            follow: Follow::new(
                Arc::clone(store),
                Arc::clone(commits),
                Arc::clone(&parts.metrics),
                Arc::clone(&parts.deltas),
                tasks.clone(),
            ),
            worktrees: Worktrees::new(Arc::clone(&parts)),
            claude_version: ClaudeVersion::new(Arc::clone(&parts)),
            positions: ReadPositions::default(),
            rendering: Slots::new(MAX_RENDERING, MAX_SHARED_RENDERING),
            audit_anchors: AuditAnchors::new(settings.audit_head_file.clone(), audit_anchors),
            sign_in_codes: Arc::default(),
            notifier: notify.map(|notify| Notifier::new(notify, &settings.data_dir, tasks)),
            commands: store
                .fleet()
                .map(|fleet| Commands::new(Arc::clone(fleet), parts.metrics.commands().clone())),
            fenced: watch::Sender::new(None),
            sessions,
            parts,
        }
    }

    /// The settings that the hub was started with.
    pub fn settings(&self) -> &Settings {
        &self.parts.settings
    }

    /// How callers reach this hub.
    pub fn address(&self) -> &Address {
        &self.parts.address
    }

    /// All methods.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The parts that sessions and background tasks share.
    pub(crate) fn parts(&self) -> &Parts {
        &self.parts
    }

    pub(crate) fn shared_parts(&self) -> &Arc<Parts> {
        &self.parts
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.parts.store
    }

    pub(crate) fn commits(&self) -> &Commits {
        &self.parts.commits
    }

    pub(crate) fn book(&self) -> &Book {
        &self.parts.book
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(crate) fn permits(&self) -> &Permits {
        &self.permits
    }

    pub(crate) fn follow(&self) -> &Follow {
        &self.follow
    }

    pub(crate) fn claude_version(&self) -> &Arc<ClaudeVersion> {
        &self.claude_version
    }

    pub(crate) fn worktrees(&self) -> &Worktrees {
        &self.worktrees
    }

    pub(crate) fn positions(&self) -> &ReadPositions {
        &self.positions
    }

    /// Access to files that children can write.
    pub fn files(&self) -> &Files {
        &self.parts.files
    }

    pub(crate) fn tasks(&self) -> &Tasks {
        &self.parts.tasks
    }

    /// The owner of a session.
    pub(crate) fn session(&self, id: plexus_protocol::SessionId) -> SessionHandle {
        self.sessions.get(id)
    }

    /// The owners of sessions that were started.
    pub(crate) fn owners(&self) -> HashMap<plexus_protocol::SessionId, SessionHandle> {
        self.sessions.by_id()
    }

    /// Tells the owner of a session, if it was started, that the session has another name.
    pub(crate) fn renamed(&self, id: plexus_protocol::SessionId, name: plexus_protocol::SessionName) {
        self.sessions.started(id).iter().for_each(|owner| owner.renamed(name.clone()));
    }

    /// Renders a conversation on a thread of its own: a long one takes time.
    pub(crate) async fn render<T: Send + 'static>(
        &self,
        render: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let internal = |error: String| Error::new(ErrorKind::Internal, error);
        let slot = self.rendering.take().await.map_err(|error| internal(error.to_string()))?;
        let rendered = tokio::task::spawn_blocking(move || {
            // This thread gives up the slot, not a caller that may be gone by then.
            let _slot = slot;
            render()
        });
        rendered.await.map_err(|error| internal(error.to_string()))
    }

    /// Commits changes. They are published when they are durable.
    pub(crate) async fn commit(&self, changes: Vec<Change>) -> Result<Committed, StoreError> {
        self.commits().commit(changes).await
    }

    /// Informs every part about a commit. The store calls this when the commit is durable, before it answers the caller.
    fn publish(&self, committed: &Committed) {
        let parts = &self.parts;
        parts.metrics.on_commit(committed);
        self.follow.on_commit(committed);
        parts.policies.on_commit(&committed.rules, committed.rules_version);
        if let Some(head) = &committed.audit {
            self.audit_anchors.on_commit(head);
        }
        committed.approvals.iter().for_each(|row| self.publish_approval(row));
        if !committed.budgets.is_empty() {
            self.sessions.all_started().iter().for_each(SessionHandle::limits_changed);
        }
        self.commits().publish(committed);
        self.wake_other_hubs(committed);
    }

    /// Informs the parts about an approval that was created or changed, by this hub or another one. The hub of its host lets it expire, escalates
    /// it, and notifies a person.
    fn publish_approval(&self, row: &ApprovalRow) {
        let parts = &self.parts;
        let is_own = self.is_own(row.approval.host.as_ref());
        if is_own {
            self.book().note_deadline(row);
        }
        if row.approval.status == ApprovalStatus::Pending {
            parts.escalation.wake(&row.approval.asked_of);
            if is_own {
                parts.escalation.open(row);
                self.notifier.iter().for_each(|notifier| notifier.open(row));
            }
            return;
        }
        parts.escalation.resolved(row);
        self.notifier.iter().for_each(|notifier| notifier.cancel(row.approval.id));
        parts.reservations.release_approval(row.approval.id);
        if row.approval.kind == ApprovalKind::Budget {
            // Every session that draws on the budget may wait for it; such answers are rare.
            self.sessions.all_started().iter().for_each(|session| session.budget(row.clone()));
        } else if let Some(session) = self.sessions.started(row.approval.session_id) {
            // The owner learns of an answer before anything that could send it to the child.
            session.resolved(row.clone());
        }
    }

    /// Calls a method for a caller. Every door calls this.
    pub async fn call(self: &Arc<Self>, caller: Caller, name: &str, params: Value) -> Result<Value, Error> {
        if self.tasks().closing().is_cancelled() {
            return Err(shutting_down());
        }
        if name == "rpc.discover" {
            return Ok(self.registry.openrpc());
        }
        let method = self.registry.get(name).ok_or_else(|| method_not_found(name))?;
        // A caller that requests an approval for itself does not look after others.
        let _here = (method.needs != Needs::Ask).then(|| self.parts.escalation.enter(&caller.principal));
        let behalf = on_behalf_of(&caller.principal);
        let call = async {
            // Boxed, so that its memory is free during the wait.
            let caller = Box::pin(access::admit(self.store(), caller, method.needs)).await?;
            if let Some(reply) = Box::pin(self.call_where_it_fits(method, &caller, &params)).await {
                return reply;
            }
            if let Some(reply) = Box::pin(self.call_elsewhere(method, &caller, &params)).await {
                return reply;
            }
            self.registry.call(Arc::clone(self), caller, name, params).await
        };
        behalf.perform(call).await
    }

    /// The methods that this caller finds as tools on `/mcp`.
    pub async fn tools(self: &Arc<Self>, principal: &Principal) -> Result<Vec<Method>, Error> {
        let user = match principal {
            Principal::Token { right, .. } => {
                let permitted = |method: &&Method| permits_needs(*right, method.needs);
                return Ok(self.registry.tools_of(ToolUser::Parent).filter(permitted).cloned().collect());
            }
            Principal::Operator | Principal::Parent { .. } => ToolUser::Parent,
            Principal::Session { .. } if access::may_call_methods(self.store(), principal).await? => {
                ToolUser::ChildWithHubTools
            }
            Principal::Session { .. } => ToolUser::Child,
        };
        Ok(self.registry.tools_of(user).cloned().collect())
    }

    /// Shuts the hub down; returns how many children were left or ended.
    pub async fn shut_down(self: &Arc<Self>, how: ShutDown) -> usize {
        let keepers = self.parts.keepers.sessions();
        let count = keepers.into_iter().filter(|id| self.sessions.started(*id).is_some()).count();
        if how == ShutDown::EndChildren {
            let handles = self.sessions.all_started();
            let stopped = futures::future::join_all(handles.iter().map(|handle| handle.stop("plexus down")));
            tokio::select! {
                _ = stopped => {}
                // The next hub stores that they have ended.
                () = self.store_is_unavailable() => self.end_processes("the store is unavailable").await,
            }
        }
        self.tasks().close().await;
        self.audit_anchors.deliver(&self.parts.files).await;
        count
    }
}
