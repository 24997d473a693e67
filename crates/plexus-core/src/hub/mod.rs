//! The hub: what all its parts share, the one way to make something durable and tell of it, and its calls. What an earlier
//! hub left is found in `take_up`.

mod refusal;
mod take_up;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use plexus_agent::JournalWatch;
use plexus_protocol::{ApprovalKind, ApprovalStatus, Error, ErrorKind, Principal, SessionId};
use plexus_store::{Change, Committed, Ledger, OnBehalf, Places, Store, StoreError};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Settings;
use crate::access::{Needs, is_good_for};
use crate::audit_head::Heads;
use crate::book::{Book, Signals, Topic};
use crate::disk::Disk;
use crate::files::Files;
use crate::follow::{Deltas, LiveSessions};
use crate::limits::Room;
use crate::loading::UserSettings;
use crate::method::{Caller, Method, Registry, ToolUser, method_not_found};
use crate::metrics::Metrics;
use crate::notify::Notifier;
use crate::permit::Attachments;
use crate::policies::Policies;
use crate::positions::Positions;
use crate::session::{self, SessionHandle, Shared, shutting_down};
use crate::sign_in::Links;
use crate::wall::Walls;
use crate::way_up::WayUp;

pub(crate) use refusal::store_error;

/// How many sessions may hold much of what their child wrote, between reading and storing it.
const READING_AT_ONCE: usize = 4;

/// How many conversations are rendered at once, and how many of them for callers other than the operator.
const RENDERED_AT_ONCE: (usize, usize) = (2, 1);

/// Whose work a call of this caller is: the operator's, or that of one who shares with others.
pub(crate) fn on_behalf_of(principal: &Principal) -> OnBehalf {
    match principal {
        Principal::Operator => OnBehalf::OPERATOR,
        Principal::Token { .. } | Principal::Parent { .. } | Principal::Session { .. } => {
            OnBehalf::caller(&principal.key())
        }
    }
}

/// What becomes of the children when a hub goes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShutDown {
    /// They stay, paused at the gate, for the next hub.
    LeaveChildren,
    /// They are ended, with all that stems from them.
    EndChildren,
}

/// The hub. Shared by every task and door; it owns no child: each session's task does.
pub struct Hub {
    settings: Arc<Settings>,
    /// This program, for what is started outside the sandbox: keepers and file helpers.
    own_program: PathBuf,
    registry: Registry,
    store: Arc<dyn Store>,
    book: Book,
    attachments: Attachments,
    deltas: Deltas,
    live_sessions: LiveSessions,
    positions: Positions,
    metrics: Arc<Metrics>,
    room: Arc<Room>,
    reading: Arc<Semaphore>,
    rendering: Places,
    disk: Disk,
    heads: Heads,
    watch: JournalWatch,
    walls: Walls,
    files: Files,
    policies: Arc<Policies>,
    user_settings: UserSettings,
    way_up: Arc<WayUp>,
    links: Links,
    notifier: Option<Notifier>,
    sessions: Mutex<HashMap<SessionId, SessionHandle>>,
    /// The pids of the keepers, by session: what descends from one of them is a child.
    keepers: Mutex<HashMap<SessionId, i32>>,
    closing: CancellationToken,
    tasks: TaskTracker,
    this: Weak<Hub>,
}

impl Hub {
    pub(crate) async fn new(
        settings: Settings,
        store: Arc<dyn Store>,
        registry: Registry,
        walls: Walls,
    ) -> io::Result<Arc<Self>> {
        let watch = JournalWatch::new()?;
        let disk = Disk::of(&settings.data_dir, settings.limits.reserve_bytes)?;
        let closing = CancellationToken::new();
        let metrics = Arc::new(Metrics::default());
        let heads = Heads::at(settings.audit_head_file.clone(), settings.audit_head_webhook.clone());
        let tasks = TaskTracker::new();
        let notifier =
            settings.notify.clone().map(|wanted| Notifier::new(wanted, &settings.data_dir, &tasks, &closing));
        let own_program = plexus_agent::pinned(&settings.plexus);
        let files = Files::new(own_program.clone(), &walls, closing.clone());
        let user_settings =
            UserSettings::at_start(settings.user_settings.clone(), &settings.data_dir, &files).await;
        let settings = Arc::new(settings);
        let hub = Arc::new_cyclic(|this: &Weak<Self>| Self {
            settings: Arc::clone(&settings),
            own_program,
            registry,
            book: Book::new(Arc::clone(&store) as Arc<dyn Ledger>, Arc::clone(&metrics)),
            store,
            attachments: Attachments::default(),
            deltas: Deltas::default(),
            live_sessions: LiveSessions::default(),
            positions: Positions::default(),
            metrics,
            room: Arc::default(),
            reading: Arc::new(Semaphore::new(READING_AT_ONCE)),
            rendering: Places::new(RENDERED_AT_ONCE.0, RENDERED_AT_ONCE.1),
            disk,
            heads,
            watch,
            files,
            walls,
            policies: Arc::default(),
            user_settings,
            way_up: Arc::new(WayUp::new(&settings)),
            links: Links::default(),
            notifier,
            sessions: Mutex::default(),
            keepers: Mutex::default(),
            closing,
            tasks,
            this: this.clone(),
        });
        hub.policies.restricted_by(hub.user_settings.restriction());
        let this = Arc::downgrade(&hub);
        hub.store.observe(Box::new(move |committed| {
            if let Some(hub) = this.upgrade() {
                hub.tell(committed);
            }
        }));
        Ok(hub)
    }

    /// What the hub was told at its start.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// All methods.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }

    pub(crate) fn signals(&self) -> &Signals {
        self.book.signals()
    }

    pub(crate) fn book(&self) -> &Book {
        &self.book
    }

    pub(crate) fn attachments(&self) -> &Attachments {
        &self.attachments
    }

    pub(crate) fn positions(&self) -> &Positions {
        &self.positions
    }

    pub(crate) fn live_sessions(&self) -> &LiveSessions {
        &self.live_sessions
    }

    pub(crate) fn deltas(&self) -> &Deltas {
        &self.deltas
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    pub(crate) fn room(&self) -> &Room {
        &self.room
    }

    /// The places for those who read much at once.
    pub(crate) fn reading(&self) -> &Arc<Semaphore> {
        &self.reading
    }

    /// Renders a conversation on a thread of its own: a long one takes its time.
    pub(crate) async fn render<T: Send + 'static>(
        &self,
        render: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let internal = |error: String| Error::new(ErrorKind::Internal, error);
        let place = self.rendering.take().await.map_err(|error| internal(error.to_string()))?;
        let rendered = tokio::task::spawn_blocking(move || {
            // The place is given up by this thread, not by a caller that may have gone meanwhile.
            let _place = place;
            render()
        });
        rendered.await.map_err(|error| internal(error.to_string()))
    }

    pub(crate) fn disk(&self) -> &Disk {
        &self.disk
    }

    pub(crate) fn watch(&self) -> &JournalWatch {
        &self.watch
    }

    pub(crate) fn walls(&self) -> &Walls {
        &self.walls
    }

    /// This program, for what is started outside the sandbox.
    pub(crate) fn own_program(&self) -> &Path {
        &self.own_program
    }

    /// Access to files that children can write.
    pub fn files(&self) -> &Files {
        &self.files
    }

    pub(crate) fn user_settings(&self) -> &UserSettings {
        &self.user_settings
    }

    pub(crate) fn policies(&self) -> &Policies {
        &self.policies
    }

    /// Has something done meanwhile, unless the hub ends first.
    pub(crate) fn meanwhile(&self, task: impl Future<Output = ()> + Send + 'static) {
        let closing = self.closing.clone();
        self.tasks.spawn(async move { closing.run_until_cancelled(task).await });
    }

    pub(crate) fn links(&self) -> &Links {
        &self.links
    }

    pub(crate) fn way_up(&self) -> &WayUp {
        &self.way_up
    }

    /// The in-memory parts that every session uses.
    pub(crate) fn shared(&self) -> Shared {
        Shared {
            settings: Arc::clone(&self.settings),
            policies: Arc::clone(&self.policies),
            room: Arc::clone(&self.room),
            way_up: Arc::clone(&self.way_up),
            metrics: Arc::clone(&self.metrics),
        }
    }

    pub(crate) fn closing(&self) -> &CancellationToken {
        &self.closing
    }

    pub(crate) fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// Makes changes durable, then tells whoever waits for them. There is no other way to write.
    pub(crate) async fn commit(&self, changes: Vec<Change>) -> Result<Committed, StoreError> {
        self.book.commit(changes).await
    }

    fn tell(&self, committed: &Committed) {
        self.metrics.told(committed);
        self.policies.told(&committed.rules);
        if let Some(head) = &committed.audit {
            self.heads.moved(head);
        }
        for row in &committed.approvals {
            if row.approval.status == ApprovalStatus::Pending {
                self.way_up.open(row);
                self.notifier.iter().for_each(|notifier| notifier.open(row));
            } else {
                self.way_up.ended(row);
                self.notifier.iter().for_each(|notifier| notifier.ended(row.approval.id));
                self.room.resolved(row.approval.id);
                if row.approval.kind == ApprovalKind::Budget {
                    // Whoever draws on the limit may wait for it; there are few such answers.
                    self.known_sessions().iter().for_each(|session| session.budget(row.clone()));
                    continue;
                }
                // Its owner hears of an answer before anyone who could pass it on to the child.
                if let Some(session) = self.known_session(row.approval.session_id) {
                    session.resolved(row.clone());
                }
            }
        }
        if !committed.budgets.is_empty() {
            self.known_sessions().iter().for_each(SessionHandle::limits_changed);
        }
        self.book.tell(committed);
        self.signals().wake(&Topic::AnyCommit);
    }

    /// The task that owns a session, started if need be.
    pub(crate) fn session(&self, id: SessionId) -> SessionHandle {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(handle) = sessions.get(&id)
            && !handle.is_closed()
        {
            return handle.clone();
        }
        let handle = session::start(self.this.clone(), &self.tasks, id);
        sessions.insert(id, handle.clone());
        handle
    }

    fn known_session(&self, id: SessionId) -> Option<SessionHandle> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    fn known_sessions(&self) -> Vec<SessionHandle> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    pub(crate) fn keeper_is(&self, session: SessionId, pid: Option<i32>) {
        let mut keepers = self.keepers.lock().unwrap_or_else(PoisonError::into_inner);
        match pid {
            Some(pid) => keepers.insert(session, pid),
            None => keepers.remove(&session),
        };
    }

    pub(crate) fn keeper_of(&self, session: SessionId) -> Option<i32> {
        self.keepers.lock().unwrap_or_else(PoisonError::into_inner).get(&session).copied()
    }

    /// How many children have a process.
    pub(crate) fn children(&self) -> usize {
        self.keepers.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether a process stems from a supervised child.
    pub fn is_child_process(&self, pid: i32) -> bool {
        let keepers: Vec<i32> =
            self.keepers.lock().unwrap_or_else(PoisonError::into_inner).values().copied().collect();
        plexus_agent::descends_from(pid, &keepers)
    }

    /// Calls a method for a caller: the one way in, for every door.
    pub async fn call(self: &Arc<Self>, caller: Caller, name: &str, params: Value) -> Result<Value, Error> {
        if self.closing.is_cancelled() {
            return Err(shutting_down());
        }
        if name == "rpc.discover" {
            return Ok(self.registry.openrpc());
        }
        let method = self.registry.get(name).ok_or_else(|| method_not_found(name))?;
        // Whoever asks for itself does not look after others.
        let _here = (method.needs != Needs::Ask).then(|| self.way_up.enter(&caller.principal));
        let behalf = on_behalf_of(&caller.principal);
        let call = async {
            let caller = self.admit(caller, method.needs).await?;
            self.registry.call(Arc::clone(self), caller, name, params).await
        };
        behalf.perform(call).await
    }

    /// The methods this caller finds as tools on `/mcp`.
    pub async fn tools(self: &Arc<Self>, principal: &Principal) -> Result<Vec<Method>, Error> {
        let user = match principal {
            Principal::Token { right, .. } => {
                let good_for = |method: &&Method| is_good_for(*right, method.needs);
                return Ok(self.registry.tools_of(ToolUser::Parent).filter(good_for).cloned().collect());
            }
            Principal::Operator | Principal::Parent { .. } => ToolUser::Parent,
            Principal::Session { .. } if self.may_call_methods(principal).await? => {
                ToolUser::ChildWithHubTools
            }
            Principal::Session { .. } => ToolUser::Child,
        };
        Ok(self.registry.tools_of(user).cloned().collect())
    }

    /// Ends the hub's work; says how many children were left or ended.
    pub async fn shut_down(self: &Arc<Self>, how: ShutDown) -> usize {
        let keepers: Vec<SessionId> =
            self.keepers.lock().unwrap_or_else(PoisonError::into_inner).keys().copied().collect();
        // A worktree that is being made ready is kept as well, but nobody's child yet; it is undone.
        let count = keepers.into_iter().filter(|id| self.known_session(*id).is_some()).count();
        if how == ShutDown::EndChildren {
            let handles = self.known_sessions();
            futures::future::join_all(handles.iter().map(|handle| handle.stop("plexus down"))).await;
        }
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.heads.tell(&self.files).await;
        count
    }
}
