//! Authenticates callers. On TCP, a request must name this hub (Host), must not come from a foreign page (Origin), and
//! must carry a bearer token. On the Unix socket, the kernel identifies the peer, and a header distinguishes a parent
//! agent from the operator. The hub ignores cookies and tokens in URLs.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::StreamExt as _;
use http::{HeaderMap, header};
use plexus_core::Known;
use plexus_protocol::Principal;

use crate::connections::Connection;
use crate::refusal::Refusal;
use crate::response_body::holding;
use crate::routes::{Doors, Transport};
use crate::site::only;
use crate::socket::PARENT_HEADER;

/// Accepts only requests that name this hub as their host. A request from a page must come from one of the hub's pages.
pub(crate) async fn require_own_site(State(doors): State<Doors>, request: Request, next: Next) -> Response {
    if let Transport::Tcp(site) = &doors.transport
        && !site.accepts(request.headers(), request.uri())
    {
        return Refusal::ForeignSite.into_response();
    }
    next.run(request).await
}

/// Accepts only authenticated callers that are within their limits, and attaches the caller to the request. The body is
/// read later, so the hub holds nothing for rejected callers.
pub(crate) async fn require_caller(
    State(doors): State<Doors>,
    Extension(connection): Extension<Arc<Connection>>,
    mut request: Request,
    next: Next,
) -> Response {
    let known = match Box::pin(caller(&doors, request.headers())).await {
        Ok(known) => known,
        Err(refusal) => return refusal.into_response(),
    };
    let call = match doors.callers.enter(&known.principal) {
        Ok(call) => Arc::new(call),
        Err(refusal) => {
            // The connection counts as waiting meanwhile, so a newer connection can close it.
            Box::pin(doors.reader().discard(request.into_body())).await;
            return refusal.into_response();
        }
    };
    let occupied = Arc::new(connection.occupy());
    let extensions = request.extensions_mut();
    extensions.insert(known.principal.clone());
    extensions.insert(known.clone());
    extensions.insert(Arc::clone(&call));
    extensions.insert(Arc::clone(&occupied));
    // An async function stores a future that it is passed twice: as an argument, and while it waits for it.
    let response = while_token_is_valid(&doors, known, Box::pin(next.run(request))).await;
    holding(response, (call, occupied))
}

/// Ends a response, or a stream in progress, when the token of the request becomes invalid.
async fn while_token_is_valid(
    doors: &Doors,
    known: Known,
    answer: impl Future<Output = Response>,
) -> Response {
    if !known.can_expire() {
        return answer.await;
    }
    let hub = Arc::clone(&doors.hub);
    let mut ends = Box::pin(async move { hub.token_ends(&known).await });
    let response = tokio::select! {
        response = answer => response,
        () = &mut ends => return Refusal::Unauthorized.into_response(),
    };
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if !kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
        return response;
    }
    let (parts, body) = response.into_parts();
    Response::from_parts(parts, Body::from_stream(body.into_data_stream().take_until(ends)))
}

async fn caller(doors: &Doors, headers: &HeaderMap) -> Result<Known, Refusal> {
    if headers.contains_key(header::AUTHORIZATION) {
        let token = bearer(headers).ok_or(Refusal::Unauthorized)?;
        return match doors.hub.identify(token).await {
            Ok(known) => known.ok_or(Refusal::Unauthorized),
            Err(error) => {
                tracing::warn!(%error, "cannot look up a token");
                Err(Refusal::Unavailable)
            }
        };
    }
    match doors.transport {
        Transport::Tcp(_) => Err(Refusal::Unauthorized),
        Transport::Socket => match headers.get(PARENT_HEADER) {
            None => Ok(Known::permanent(Principal::Operator)),
            Some(id) => match id.to_str() {
                Ok(id) if !id.is_empty() => Ok(Known::permanent(Principal::Parent { id: id.to_owned() })),
                _ => Err(Refusal::Unauthorized),
            },
        },
    }
}

/// The bearer token of these headers. `None` if it is missing, not unique or not a bearer token.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = only(headers, header::AUTHORIZATION)?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn a_token_is_read_from_one_bearer_header_only() {
        assert_eq!(bearer(&headers(&[("authorization", "Bearer abc")])), Some("abc"));
        assert_eq!(bearer(&headers(&[("authorization", "bearer  abc")])), Some("abc"));
        for bad in ["Basic abc", "Bearer ", "Bearer", "abc", ""] {
            assert_eq!(bearer(&headers(&[("authorization", bad)])), None, "{bad}");
        }
        assert_eq!(bearer(&headers(&[("authorization", "Bearer a"), ("authorization", "Bearer b")])), None);
        assert_eq!(bearer(&headers(&[("cookie", "token=abc")])), None);
    }
}
