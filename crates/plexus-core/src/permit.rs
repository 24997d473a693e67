//! `loopback.permit`: a child on the `mcp` channel asks and waits. However long that takes, over whatever doors and
//! restarts, it is one approval; the answer comes from the store, and it is always a decision, never an error.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use plexus_claude::PermissionResult;
use plexus_protocol::loopback::PermitParams;
use plexus_protocol::{ApprovalId, Principal, SessionId};
use plexus_store::{CallIds, Change, PermitStream, RunKey, Store};
use serde_json::Value;
use tokio::time::sleep;

use crate::outcome::permission_result;
use crate::session::{NewStream, Permitted, Sessions};
use crate::tasks::Tasks;
use plexus_book::{Book, Commits};

/// A permit that was asked over HTTP: what its stream needs to begin, and to answer.
pub struct PermitTicket {
    /// The id of its stream; `None` when the decision is there already.
    pub stream_id: Option<String>,
    /// The ids that the door stored with the request.
    pub ids: CallIds,
    /// Held for as long as anyone waits.
    state: Ticketed,
}

enum Ticketed {
    Decided(PermissionResult),
    Waiting(Attached),
}

fn deny(message: impl Into<String>) -> Permitted {
    Permitted::Decided(PermissionResult::Deny { message: message.into(), interrupt: false })
}

/// Approval requests over MCP: asking, waiting, and coming back for the answer.
pub(crate) struct Permits {
    store: Arc<dyn Store>,
    commits: Arc<Commits>,
    book: Arc<Book>,
    sessions: Arc<Sessions>,
    tasks: Tasks,
    /// How long a request over HTTP may be without a stream.
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

    /// Asks; whatever is wrong with the question is answered with a denial.
    pub(crate) async fn permit_ask(
        &self,
        principal: &Principal,
        arguments: Value,
        stream: Option<NewStream>,
    ) -> Permitted {
        let Principal::Session { id, run } = principal else {
            return deny("Only a supervised session can ask for permission, with its own token.");
        };
        match serde_json::from_value::<PermitParams>(arguments) {
            Ok(params) => self.sessions.get(*id).permit(*run, params, stream).await,
            Err(error) => deny(format!("Plexus could not read this question, so it is denied: {error}")),
        }
    }

    /// Waits for the decision, however long it takes.
    pub(crate) async fn permit_wait(&self, approval: ApprovalId) -> PermissionResult {
        match self.book.answer_of(approval).await {
            Some(row) => permission_result(&row),
            None => PermissionResult::Deny {
                message: "Plexus has lost sight of this question, so it is denied.".to_owned(),
                interrupt: false,
            },
        }
    }

    /// Opens a permit over HTTP: all that is needed to go on after a restart is durable before this returns.
    ///
    /// A client that vanishes meanwhile does not undo it, so it is seen through for as long as it takes: nobody would
    /// notice otherwise that the approval has no one waiting for it.
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
            // The hub goes away: the connection breaks off, and the next hub is asked.
            Ok(None) => std::future::pending().await,
            Err(_) => {
                let message = "Plexus could not take this question, so it is denied.".to_owned();
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

    /// Takes a permit up again by the last event id its client saw; `None` when it is not this caller's.
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
        // A fresh id for each stream: the next kill must find one, too.
        let stream_id = uuid::Uuid::new_v4().to_string();
        let stream = PermitStream { event_id: stream_id.clone(), ..known.clone() };
        self.commits.retry(|| self.commits.commit(vec![Change::Stream(Box::new(stream.clone()))])).await;
        tracing::debug!(approval = %known.approval, "the stream of a permit is taken up again");
        Some(PermitTicket {
            stream_id: Some(stream_id),
            ids: known.ids,
            state: Ticketed::Waiting(self.attach(known.approval)),
        })
    }

    /// Waits for the answer to an opened permit: the decision in Claude Code's own shape.
    pub(crate) async fn permit_answer(self: &Arc<Self>, ticket: &PermitTicket) -> Value {
        match &ticket.state {
            Ticketed::Decided(result) => result.to_value(),
            Ticketed::Waiting(attached) => self.permit_wait(attached.approval).await.to_value(),
        }
    }
}

/// How many streams wait for each request over HTTP.
#[derive(Debug, Default)]
struct Attachments {
    counts: Mutex<HashMap<ApprovalId, usize>>,
}

impl Permits {
    fn attach(&self, approval: ApprovalId) -> Attached {
        *self.counts().entry(approval).or_default() += 1;
        Attached { permits: self.this.clone(), approval }
    }

    fn detach(&self, approval: ApprovalId) {
        let mut counts = self.counts();
        if let Some(count) = counts.get_mut(&approval) {
            *count -= 1;
            if *count > 0 {
                return;
            }
            counts.remove(&approval);
        }
        drop(counts);
        self.detached(approval);
    }

    /// Gives an approval up unless a stream is attached to it within the window. A child that never comes back for its
    /// answer would leave its approval open, or wait itself, forever.
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
}

impl Drop for Attached {
    fn drop(&mut self) {
        if let Some(permits) = self.permits.upgrade() {
            permits.detach(self.approval);
        }
    }
}
