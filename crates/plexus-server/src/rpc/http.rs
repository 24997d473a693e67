//! `POST /rpc`: one request body, one response body. If the client disconnects, its calls end.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use futures::{StreamExt as _, stream};
use http::{StatusCode, header};
use plexus_core::{Caller, Door};
use plexus_protocol::{Error, ErrorKind, Principal};
use serde_json::Value;

use crate::body::ReadBody;
use crate::callers::{Call, Charge};
use crate::response_body::holding;
use crate::routes::Doors;
use crate::rpc::envelope::{Incoming, Member, answer, hub_shut_down};

/// The number of calls of a batch that run at once. Memory holds the result of each.
const BATCH_AT_ONCE: usize = 4;

/// Responds to a call or a batch.
pub(crate) async fn post(
    State(doors): State<Doors>,
    Extension(principal): Extension<Principal>,
    Extension(call): Extension<Arc<Call>>,
    body: Body,
) -> Response {
    // Boxed, so that its memory is free during the wait.
    let ReadBody { bytes, charge } = match Box::pin(doors.reader().read(body, call.charge())).await {
        Ok(taken) => taken,
        Err(refusal) => return refusal.into_response(),
    };
    let incoming = Incoming::parse(&bytes);
    drop(bytes);
    let mut answers = Answers { charge: call.charge(), most: doors.limits.bytes_per_caller / 2 };
    let answered = match incoming {
        Incoming::One(member) => {
            let (id, outcome) = serve(&doors, &principal, member).await;
            answers.text(id, outcome)
        }
        Incoming::Batch(members) => Box::pin(serve_batch(&doors, &principal, members, &mut answers)).await,
    };
    // The request may have been held in parsed form until here.
    drop(charge);
    match answered {
        Some(text) => {
            let json = [(header::CONTENT_TYPE, "application/json")];
            holding((json, text).into_response(), answers.charge)
        }
        None => StatusCode::NO_CONTENT.into_response(),
    }
}

/// Responds to the members of a batch; `None` if all of them are notifications.
async fn serve_batch(
    doors: &Doors,
    principal: &Principal,
    members: Vec<Member>,
    answers: &mut Answers,
) -> Option<String> {
    let calls = members.into_iter().map(|member| serve(doors, principal, member));
    let mut served = stream::iter(calls).buffered(BATCH_AT_ONCE);
    let mut texts = Vec::new();
    while let Some((id, outcome)) = served.next().await {
        texts.extend(answers.text(id, outcome));
    }
    (!texts.is_empty()).then(|| format!("[{}]", texts.join(",")))
}

/// The responses to one request. Their bytes count as held for the caller until they are written.
struct Answers {
    charge: Charge,
    /// The maximum that one response counts for, so that the largest response is possible on its own.
    most: usize,
}

impl Answers {
    /// Serializes a response. Replaces one that does not fit with an error.
    fn text(&mut self, id: Option<Value>, outcome: Answered) -> Option<String> {
        let value = match outcome {
            Answered::Refused(value) => value,
            Answered::Called(outcome) => answer(id.clone()?, outcome),
        };
        let text = value.to_string();
        if self.charge.grow(text.len().min(self.most)).is_ok() {
            return Some(text);
        }
        let why = "the responses to this caller are too large in total; send fewer requests at a time";
        let error = Error::new(ErrorKind::LimitReached, why);
        Some(answer(id.unwrap_or_default(), Err(error)).to_string())
    }
}

/// The outcome of one member of a request.
enum Answered {
    /// It was not a valid call.
    Refused(Value),
    Called(Result<Value, Error>),
}

async fn serve(doors: &Doors, principal: &Principal, member: Member) -> (Option<Value>, Answered) {
    let call = match member {
        Ok(call) => call,
        Err(refused) => return (None, Answered::Refused(refused)),
    };
    let caller = Caller::of(principal.clone(), Door::Http);
    let outcome = tokio::select! {
        outcome = doors.hub.call(caller, &call.method, call.params) => outcome,
        () = doors.stop.cancelled() => Err(hub_shut_down()),
    };
    (call.id, Answered::Called(outcome))
}
