//! `loopback.permit`: a supervised child requests an approval for a tool call and waits for the decision.

use std::sync::Arc;

use plexus_protocol::loopback::PermitParams;
use plexus_protocol::{Error, ErrorKind, Object};
use serde_json::Value;

use crate::Hub;
use crate::callers::access::{Admitted, Needs};
use crate::hub::Method;
use crate::method::Audience;
use crate::session::Permitted;

pub(super) fn method() -> Method {
    Method::raw::<PermitParams, _, _, _>(
        "loopback.permit",
        "Requests an approval for a tool call of this session. For --permission-prompt-tool.",
        Audience::Children,
        Needs::Ask,
        permit,
    )
    .repeatable()
}

/// Always returns a decision, except when the hub shuts down: then the child asks the next hub again.
async fn permit(hub: Arc<Hub>, caller: Admitted, arguments: Value) -> Result<Object, Error> {
    let closing = hub.tasks().closing().clone();
    let asked = async {
        // Boxed, so that its memory is free during the wait.
        match Box::pin(hub.permits().permit_ask(&caller.principal, arguments, None)).await {
            Permitted::Decided(result) => result,
            Permitted::Waiting(approval) => hub.permits().permit_wait(approval).await,
        }
    };
    tokio::select! {
        result = asked => match result.to_value() {
            Value::Object(object) => Ok(object),
            _ => Err(Error::new(ErrorKind::Internal, "the decision is not a JSON object")),
        },
        () = closing.cancelled() => {
            Err(Error::new(ErrorKind::ShuttingDown, "the hub is shutting down; ask again after it has \
                restarted"))
        }
    }
}
