//! `POST /rpc`: one body in, one body out. A client that goes away takes its calls with it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use futures::future::join_all;
use http::StatusCode;
use plexus_core::{Caller, Door};
use plexus_protocol::Principal;
use serde_json::Value;

use crate::body::Taken;
use crate::callers::Call;
use crate::doors::Doors;
use crate::rpc::envelope::{Incoming, Member, answer, hub_went_away};

/// Answers a call, or a batch of them.
pub(crate) async fn post(
    State(doors): State<Doors>,
    Extension(principal): Extension<Principal>,
    Extension(call): Extension<Arc<Call>>,
    body: Body,
) -> Response {
    let Taken { bytes, charge } = match doors.reader().read(body, call.charge()).await {
        Ok(taken) => taken,
        Err(refusal) => return refusal.into_response(),
    };
    let incoming = Incoming::parse(&bytes);
    drop(bytes);
    let answered = match incoming {
        Incoming::One(member) => serve(&doors, &principal, member).await,
        Incoming::Batch(members) => {
            let calls = members.into_iter().map(|member| serve(&doors, &principal, member));
            let answers: Vec<Value> = join_all(calls).await.into_iter().flatten().collect();
            (!answers.is_empty()).then_some(Value::Array(answers))
        }
    };
    // Until here what was read may be held in another shape.
    drop(charge);
    match answered {
        Some(value) => Json(value).into_response(),
        None => StatusCode::NO_CONTENT.into_response(),
    }
}

async fn serve(doors: &Doors, principal: &Principal, member: Member) -> Option<Value> {
    let call = match member {
        Ok(call) => call,
        Err(refused) => return Some(refused),
    };
    let caller = Caller::of(principal.clone(), Door::Http);
    let outcome = tokio::select! {
        outcome = doors.hub.call(caller, &call.method, call.params) => outcome,
        () = doors.stop.cancelled() => Err(hub_went_away()),
    };
    call.id.map(|id| answer(id, outcome))
}
