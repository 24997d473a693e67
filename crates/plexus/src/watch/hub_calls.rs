//! Performs the effects of the model: calls to the hub, and following a log. Each call is a task that sends its outcome as an event; nothing
//! here blocks.

use std::path::PathBuf;

use plexus_protocol::{Approval, ApprovalId, SessionId};
use plexus_server::DataDir;
use serde_json::{Value, json};
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;

use super::feed;
use super::update::Event;
use crate::answer_confirmation::ending;
use crate::client::{CallError, Client};
use crate::hub::{ANSWERED_WITHIN, HubClient};
use crate::remember;
use crate::review::Reviewed;

/// The hub, and the channel for its responses.
pub(crate) struct HubCalls {
    dir: PathBuf,
    events: Sender<Event>,
    calls: JoinSet<()>,
    log: JoinSet<()>,
}

impl HubCalls {
    /// For the hub of this data directory.
    pub(crate) fn new(dir: PathBuf, events: Sender<Event>) -> Self {
        Self { dir, events, calls: JoinSet::new(), log: JoinSet::new() }
    }

    /// Follows the log of this session only.
    pub(crate) fn follow(&mut self, session: Option<SessionId>) {
        self.log.abort_all();
        if let Some(session) = session {
            self.log.spawn(feed::log(self.client(), session, self.events.clone()));
        }
    }

    /// Reads an approval in full.
    pub(crate) fn read(&mut self, id: ApprovalId) {
        let (client, events) = (self.client(), self.events.clone());
        self.calls.spawn(async move {
            let event =
                match call_with_timeout(&client, "loopback.get", json!({"approval_id": id, "context": true}))
                    .await
                {
                    Ok(response) => match Reviewed::read(response) {
                        Ok(reviewed) => Event::Read(Box::new(reviewed)),
                        Err(error) => Event::NotRead(id, error.to_string()),
                    },
                    Err(error) => Event::NotRead(id, error.in_words()),
                };
            let _ = events.send(event).await;
        });
    }

    /// Calls a method and sends its outcome.
    pub(crate) fn call(
        &mut self,
        method: &'static str,
        params: Value,
        answers: Option<ApprovalId>,
        done: String,
    ) {
        let (client, events) = (self.client(), self.events.clone());
        // Remove finished tasks, so that they do not accumulate.
        while self.calls.try_join_next().is_some() {}
        let hub = HubClient { client: client.clone(), dir: self.dir.clone() };
        self.calls.spawn(async move {
            if let (Some(id), Some(rule)) = (answers, params["remember"]["rule"].as_str())
                && let Err(error) = remember::check_alone(&hub, id, rule).await
            {
                let _ = events.send(Event::NotAnswered(id, error.to_string())).await;
                return;
            }
            let event = match (call_with_timeout(&client, method, params).await, answers) {
                (Ok(answer), _) if answer["type"] == "already_resolved" => {
                    let first = earlier_resolution(&client, answers).await;
                    Event::Outcome(format!("{first}. Your answer came too late and did not count."))
                }
                (Ok(_), _) => Event::Outcome(done),
                (Err(error), Some(id)) => Event::NotAnswered(id, error.in_words()),
                (Err(error), None) => Event::Outcome(error.in_words()),
            };
            let _ = events.send(event).await;
        });
    }

    fn client(&self) -> Client {
        Client::Operator { socket: DataDir::socket(&self.dir) }
    }
}

/// Calls a method that needs no waiting, with a time limit.
async fn call_with_timeout(client: &Client, method: &str, params: Value) -> Result<Value, CallError> {
    let answer = tokio::time::timeout(ANSWERED_WITHIN, client.call(method, params)).await;
    answer.unwrap_or_else(|_| {
        Err(CallError::Lost("it does not respond; it may have handled the call".to_owned()))
    })
}

/// How an approval was resolved before this answer.
async fn earlier_resolution(client: &Client, id: Option<ApprovalId>) -> String {
    let response = call_with_timeout(client, "loopback.get", json!({"approval_id": id})).await.ok();
    let approval: Option<Approval> =
        response.and_then(|mut response| serde_json::from_value(response["approval"].take()).ok());
    approval.map_or_else(|| "It is no longer open".to_owned(), |approval| ending(&approval))
}
