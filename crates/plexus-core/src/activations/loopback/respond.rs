//! `loopback.respond`: answers one or several approvals, and optionally continues with `wait`.

use std::sync::Arc;

use plexus_agent::TIMING;
use plexus_protocol::loopback::{Answer, Answered, RespondParams, WaitParams};
use plexus_protocol::{ApprovalStatus, Error, ErrorKind};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::wait::wait;
use crate::Hub;
use crate::approvals::answer::answer;
use crate::callers::access::{self, Admitted, Needs};
use crate::hub::Method;
use crate::method::Audience;

pub(super) fn method() -> Method {
    Method::new(
        "loopback.respond",
        "Answers one approval, or several in `decisions`. With `wait_ms` and `cursor` it then waits like \
         loopback_wait: one call per round. Read the input first; the child wrote it.",
        Audience::Agents,
        Needs::Decide,
        respond,
    )
}

/// The outcome of one answer or several, and the result of the wait that followed.
#[derive(Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(with = "Answered")]
struct RespondResult(Value);

async fn respond(hub: Arc<Hub>, caller: Admitted, mut params: RespondParams) -> Result<RespondResult, Error> {
    let wait_for = params.wait_ms;
    let cursor = params.cursor;
    let mut result = match params.decisions.take() {
        Some(decisions) => {
            if params.approval_id.is_some() || params.approve.is_some() {
                return Err(Error::invalid("decisions", "pass either one answer or `decisions`, not both"));
            }
            if decisions.is_empty() {
                return Err(Error::invalid("decisions", "is empty"));
            }
            several(&hub, &caller, decisions).await
        }
        None => to_value(&answer_on_host(&hub, &caller, one(params)?).await?),
    };
    if let Some(timeout_ms) = wait_for {
        let waited =
            wait(Arc::clone(&hub), caller, WaitParams { cursor, timeout_ms: Some(timeout_ms) }).await;
        // The answers stand even if the wait fails.
        let waited = waited.map_or_else(|error| Value::Object(error.to_object()), |waited| to_value(&waited));
        if result.is_array() {
            result = json!({"type": "ok", "results": result});
        }
        result["wait"] = waited;
    }
    Ok(RespondResult(result))
}

/// Answers an approval. Only the hub of its host allows a call, because it judges paths and rules. Any hub denies one, also if that host is
/// unreachable.
async fn answer_on_host(hub: &Arc<Hub>, caller: &Admitted, given: Answer) -> Result<Answered, Error> {
    tracing::trace!(target: TIMING, mark = "respond_received", id = %given.approval_id);
    let found = access::find_approval(hub.store(), caller, given.approval_id).await?;
    let approval = &found.0.approval;
    let needs_host = given.approve || given.remember.is_some();
    if needs_host
        && approval.status == ApprovalStatus::Pending
        && let Some(host) = approval.host.as_ref().filter(|host| !hub.is_own(Some(host)))
    {
        let reply = hub.call_on(host, caller, "loopback.respond", to_value(&given)).await?;
        let unreadable =
            |error| Error::new(ErrorKind::Internal, format!("the reply cannot be read: {error}"));
        return serde_json::from_value(reply).map_err(unreadable);
    }
    answer(hub.store(), hub.policy(), hub.book(), caller, found, given).await
}

fn one(params: RespondParams) -> Result<Answer, Error> {
    Ok(Answer {
        approval_id: params.approval_id.ok_or_else(|| Error::invalid("approval_id", "is missing"))?,
        approve: params.approve.ok_or_else(|| Error::invalid("approve", "is missing"))?,
        message: params.message,
        updated_input: params.updated_input,
        interrupt: params.interrupt,
        answers: params.answers,
        digest: params.digest,
        mode: params.mode,
        remember: params.remember,
    })
}

/// Each answer is independent: a failed one does not block the others.
async fn several(hub: &Arc<Hub>, caller: &Admitted, decisions: Vec<Answer>) -> Value {
    let answers = decisions.into_iter().map(|one| async {
        let approval_id = one.approval_id;
        answer_on_host(hub, caller, one).await.unwrap_or_else(|error| Answered::Error {
            approval_id,
            error: error.kind.as_str().to_owned(),
            message: error.message,
        })
    });
    to_value(&futures::future::join_all(answers).await)
}

fn to_value(value: &impl Serialize) -> Value {
    serde_json::to_value(value)
        .unwrap_or_else(|error| Value::Object(Error::new(ErrorKind::Internal, error.to_string()).to_object()))
}
