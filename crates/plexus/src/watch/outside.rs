//! What the model wants done outside: calls of the hub, another log to follow. Each call is a task of its own, whose
//! outcome comes back as an event; nothing here waits.

use std::path::PathBuf;

use plexus_protocol::{Approval, ApprovalId, SessionId};
use serde_json::{Value, json};
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;

use super::feed;
use super::question::ending;
use super::update::Event;
use crate::client::Client;

/// The hub, and where its answers go.
pub(crate) struct Outside {
    socket: PathBuf,
    tell: Sender<Event>,
    calls: JoinSet<()>,
    log: JoinSet<()>,
}

impl Outside {
    /// For the hub at this socket.
    pub(crate) fn new(socket: PathBuf, tell: Sender<Event>) -> Self {
        Self { socket, tell, calls: JoinSet::new(), log: JoinSet::new() }
    }

    /// Follows the log of this session, and no other.
    pub(crate) fn follow(&mut self, session: Option<SessionId>) {
        self.log.abort_all();
        if let Some(session) = session {
            self.log.spawn(feed::log(self.client(), session, self.tell.clone()));
        }
    }

    /// Reads an approval in full.
    pub(crate) fn read(&mut self, id: ApprovalId) {
        let (client, tell) = (self.client(), self.tell.clone());
        self.calls.spawn(async move {
            let event = match client.call("loopback.get", json!({"approval_id": id})).await {
                Ok(mut got) => match serde_json::from_value(got["approval"].take()) {
                    Ok(approval) => Event::Read(approval),
                    Err(error) => Event::Outcome(error.to_string()),
                },
                Err(error) => Event::Outcome(error.to_string()),
            };
            let _ = tell.send(event).await;
        });
    }

    /// Calls a method and tells what came of it.
    pub(crate) fn call(
        &mut self,
        method: &'static str,
        params: Value,
        answers: Option<ApprovalId>,
        done: String,
    ) {
        let (client, tell) = (self.client(), self.tell.clone());
        // Those that have ended are let go of here, so that they do not pile up.
        while self.calls.try_join_next().is_some() {}
        self.calls.spawn(async move {
            let event = match (client.call(method, params).await, answers) {
                (Ok(answer), _) if answer["type"] == "already_resolved" => {
                    Event::Outcome(format!("too late: {}", before(&client, answers).await))
                }
                (Ok(_), _) => Event::Outcome(done),
                (Err(error), Some(id)) => Event::NotAnswered(id, error.to_string()),
                (Err(error), None) => Event::Outcome(error.to_string()),
            };
            let _ = tell.send(event).await;
        });
    }

    fn client(&self) -> Client {
        Client::Operator { socket: self.socket.clone() }
    }
}

/// How an approval ended before our answer.
async fn before(client: &Client, id: Option<ApprovalId>) -> String {
    let got = client.call("loopback.get", json!({"approval_id": id})).await.ok();
    let approval: Option<Approval> =
        got.and_then(|mut got| serde_json::from_value(got["approval"].take()).ok());
    approval.map_or_else(|| "it has come to its end already".to_owned(), |approval| ending(&approval))
}
