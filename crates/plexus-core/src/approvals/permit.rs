//! `loopback.permit`: a child on the `mcp` channel requests permission and waits. One request is one approval, across
//! all doors, reconnects and restarts. The result comes from the store and is always a decision, never an error.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use plexus_claude::PermissionResult;
use plexus_protocol::loopback::PermitParams;
use plexus_protocol::{ApprovalId, Principal, SessionId};
use plexus_store::{CallIds, Change, PermitStream, RunKey, Store};
use serde_json::Value;
use tokio::time::sleep;

use crate::reply_to_child::permission_result;
use crate::session::{NewStream, Permitted, Sessions};
use crate::tasks::Tasks;
use plexus_book::{Book, Commits};

/// A permit requested over HTTP: what its stream needs to start and to answer.
pub struct PermitTicket {
    /// The id of its stream; `None` if the decision is already known.
    pub stream_id: Option<String>,
    /// The ids that the door stored with the request.
    pub ids: CallIds,
    /// Counts as an attached stream until it is dropped.
    state: Ticketed,
}

enum Ticketed {
    Decided(PermissionResult),
    Waiting(Attached),
}

fn deny(message: impl Into<String>) -> Permitted {
    Permitted::Decided(PermissionResult::Deny { message: message.into(), interrupt: false })
}

/// Handles approval requests over MCP: requesting, waiting, and resuming after a lost stream.
pub(crate) struct Permits {
    store: Arc<dyn Store>,
    commits: Arc<Commits>,
    book: Arc<Book>,
    sessions: Arc<Sessions>,
    tasks: Tasks,
    /// How long a request over HTTP may stay without a stream.
    window: Duration,
    attachments: Attachments,
    this: Weak<Self>,
}

impl Permits {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        commits: Arc<Commits>,
        book: Arc<Book>,
        sessions: Arc<Sessions>,
        tasks: Tasks,
        window: Duration,
    ) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            store,
            commits,
            book,
            sessions,
            tasks,
            window,
            attachments: Attachments::default(),
            this: this.clone(),
        })
    }

    /// Requests permission. An invalid request is denied.
    pub(crate) async fn permit_ask(
        &self,
        principal: &Principal,
        arguments: Value,
        stream: Option<NewStream>,
    ) -> Permitted {
        let Principal::Session { id, run } = principal else {
            return deny("Only a supervised session can request an approval, with its own token.");
        };
        // A session with an owner here is of this host.
        if self.store.fleet().is_some() && !self.sessions.has_owner(*id) {
            let session = self.commits.retry(|| self.store.session(*id)).await;
            if session.is_none_or(|session| session.host.as_ref() != self.store.host()) {
                return deny("This session runs on another host, so the call is denied.");
            }
        }
        match serde_json::from_value::<PermitParams>(arguments) {
            Ok(params) => self.sessions.get(*id).permit(*run, params, stream).await,
            Err(error) => {
                deny(format!("Plexus could not read this approval request, so the call is denied: {error}"))
            }
        }
    }

    /// Waits for the decision, however long it takes.
    pub(crate) async fn permit_wait(&self, approval: ApprovalId) -> PermissionResult {
        match self.book.answer_of(approval).await {
            Some(row) => permission_result(&row),
            None => PermissionResult::Deny {
                message: "Plexus could not find this approval, so the call is denied.".to_owned(),
                interrupt: false,
            },
        }
    }

    /// Opens a permit over HTTP. Everything that is needed to continue after a restart is durable before this returns.
    ///
    /// It runs in its own task, so a client that disconnects meanwhile does not cancel it. Otherwise the hub would not
    /// notice that nobody waits for the approval.
    pub(crate) async fn permit_open(
        self: &Arc<Self>,
        principal: &Principal,
        arguments: Value,
        ids: CallIds,
    ) -> PermitTicket {
        let (permits, principal) = (Arc::clone(self), principal.clone());
        let stored = ids.clone();
        let closing = self.tasks.closing().clone();
        let opened = self.tasks.spawn(async move {
            tokio::select! {
                ticket = permits.open_ticket(&principal, arguments, stored) => Some(ticket),
                () = closing.cancelled() => None,
            }
        });
        match opened.await {
            Ok(Some(ticket)) => ticket,
            // The hub shuts down: the connection breaks, and the client asks the next hub.
            Ok(None) => std::future::pending().await,
            Err(_) => {
                let message =
                    "Plexus could not process this approval request, so the call is denied.".to_owned();
                let state = Ticketed::Decided(PermissionResult::Deny { message, interrupt: false });
                PermitTicket { stream_id: None, ids, state }
            }
        }
    }

    async fn open_ticket(
        self: &Arc<Self>,
        principal: &Principal,
        arguments: Value,
        ids: CallIds,
    ) -> PermitTicket {
        let stream_id = uuid::Uuid::new_v4().to_string();
        let stream = NewStream { stream_id: stream_id.clone(), ids: ids.clone() };
        let (stream_id, state) = match self.permit_ask(principal, arguments, Some(stream)).await {
            Permitted::Decided(result) => (None, Ticketed::Decided(result)),
            Permitted::Waiting(approval) => (Some(stream_id), Ticketed::Waiting(self.attach(approval))),
        };
        PermitTicket { stream_id, ids, state }
    }

    /// Resumes a permit by the last event id that its client received; `None` if it belongs to another caller.
    pub(crate) async fn permit_resume(
        self: &Arc<Self>,
        principal: &Principal,
        last_event_id: &str,
    ) -> Option<PermitTicket> {
        let Principal::Session { id, run } = principal else { return None };
        let key = RunKey { session: *id, run: *run };
        let known = self.commits.retry(|| self.store.permit_stream(last_event_id)).await?;
        if known.key != key {
            return None;
        }
        // Each stream gets a new id, so that the client can resume after the next kill, too.
        let stream_id = uuid::Uuid::new_v4().to_string();
        let stream = PermitStream { event_id: stream_id.clone(), ..known.clone() };
        self.commits.retry(|| self.commits.commit(vec![Change::Stream(Box::new(stream.clone()))])).await;
        tracing::debug!(approval = %known.approval, "a client resumed the stream of a permit");
        Some(PermitTicket {
            stream_id: Some(stream_id),
            ids: known.ids,
            state: Ticketed::Waiting(self.attach(known.approval)),
        })
    }

    /// Waits for the decision on an opened permit, in Claude Code's format.
    pub(crate) async fn permit_answer(self: &Arc<Self>, ticket: &PermitTicket) -> Value {
        match &ticket.state {
            Ticketed::Decided(result) => result.to_value(),
            Ticketed::Waiting(attached) => {
                let answer = self.permit_wait(attached.approval).await;
                attached.is_delivered.store(true, Ordering::Relaxed);
                answer.to_value()
            }
        }
    }
}

/// The number of streams that wait for each request over HTTP.
#[derive(Debug, Default)]
struct Attachments {
    counts: Mutex<HashMap<ApprovalId, usize>>,
}

impl Permits {
    fn attach(&self, approval: ApprovalId) -> Attached {
        *self.counts().entry(approval).or_default() += 1;
        Attached { permits: self.this.clone(), approval, is_delivered: AtomicBool::new(false) }
    }

    fn detach(&self, attached: &Attached) {
        let approval = attached.approval;
        let mut counts = self.counts();
        if let Some(count) = counts.get_mut(&approval) {
            *count -= 1;
            if *count > 0 {
                return;
            }
            counts.remove(&approval);
        }
        drop(counts);
        if !attached.is_delivered.load(Ordering::Relaxed) {
            self.detached(approval);
        }
    }

    /// Reports an approval to its session as lost, unless a stream is attached to it within the window. Otherwise a
    /// child that never comes back for its answer would leave its approval open, or wait itself, forever.
    pub(crate) fn detached(&self, approval: ApprovalId) {
        let Some(permits) = self.this.upgrade() else { return };
        self.tasks.spawn_until_closing(async move {
            sleep(permits.window).await;
            if permits.counts().contains_key(&approval) {
                return;
            }
            if let Some(session) = permits.session_of_undelivered(approval).await {
                permits.sessions.get(session).permit_lost(approval);
            }
        });
    }

    async fn session_of_undelivered(&self, approval: ApprovalId) -> Option<SessionId> {
        let row = self.store.approval(approval).await.ok().flatten()?;
        row.approval.delivered_at.is_none().then_some(row.approval.session_id)
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<ApprovalId, usize>> {
        self.attachments.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Attached {
    permits: Weak<Permits>,
    approval: ApprovalId,
    /// Whether the delivery of the answer is stored, so that the approval cannot be lost any more.
    is_delivered: AtomicBool,
}

impl Drop for Attached {
    fn drop(&mut self) {
        if let Some(permits) = self.permits.upgrade() {
            permits.detach(self);
        }
    }
}
