//! The responses with which a door rejects a request before any method is called. Each is a JSON-RPC error without an
//! id, so that clients of either protocol can read it.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use plexus_protocol::MAX_BODY_BYTES;
use serde_json::{Value, json};

use crate::body::UNAUTHENTICATED_BYTES;
use crate::json_value_count;

/// Why a door rejected a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The token is missing or invalid.
    Unauthorized,
    /// The request names another site, or comes from one.
    ForeignSite,
    /// The caller is authenticated but not authorized.
    NotForYou,
    /// The body exceeds the size limit.
    TooLarge,
    /// The body of an unauthenticated request exceeds its size limit.
    UnauthenticatedTooLarge,
    /// The body contains too many JSON values.
    TooManyValues,
    /// The body did not arrive in time.
    BodyTooSlow,
    /// The caller has too many requests in progress.
    TooManyCalls,
    /// The caller's bodies together are too large.
    TooManyBytes,
    /// All callers of this class together have too much in progress.
    Busy,
    /// The body ended early.
    BrokenBody,
    /// This caller has no stream with this event id.
    UnknownStream,
    /// No route matches.
    NotFound,
    /// The store cannot look up the token.
    Unavailable,
}

impl Refusal {
    fn parts(self) -> (StatusCode, &'static str, String) {
        let fixed = |status, kind, text: &str| (status, kind, text.to_owned());
        match self {
            Self::Unauthorized => fixed(
                StatusCode::UNAUTHORIZED,
                "unauthorized",
                "a valid token is required: `Authorization: Bearer TOKEN`",
            ),
            Self::ForeignSite => fixed(
                StatusCode::FORBIDDEN,
                "forbidden",
                "the Host or Origin of this request does not belong to this hub",
            ),
            Self::NotForYou => fixed(StatusCode::FORBIDDEN, "forbidden", "only the operator may access this"),
            Self::TooLarge => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "too_large",
                format!("the body is too large; the maximum is {MAX_BODY_BYTES} bytes"),
            ),
            Self::UnauthenticatedTooLarge => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "too_large",
                format!(
                    "the body is too large; without a token, the maximum is {UNAUTHENTICATED_BYTES} bytes"
                ),
            ),
            Self::TooManyValues => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "too_large",
                format!("the body has too many JSON values; the maximum is {}", json_value_count::MAX_VALUES),
            ),
            Self::BodyTooSlow => fixed(
                StatusCode::REQUEST_TIMEOUT,
                "request_timeout",
                "the body did not arrive in time, so nothing was done; send it again, or raise `body_stall_secs` and \
                 `body_secs` under [doors] in plexus.toml",
            ),
            Self::TooManyCalls => fixed(
                StatusCode::TOO_MANY_REQUESTS,
                "too_many_calls",
                "this caller has too many requests in progress, so nothing was done; try again when one has \
                 finished, or raise `calls_per_caller` under [doors] in plexus.toml",
            ),
            Self::TooManyBytes => fixed(
                StatusCode::TOO_MANY_REQUESTS,
                "too_many_bytes",
                "the requests of this caller are too large in total, so nothing was done; try again when one \
                 has finished, or raise `bodies_per_caller_mb` under [doors] in plexus.toml",
            ),
            Self::Busy => fixed(
                StatusCode::SERVICE_UNAVAILABLE,
                "hub_busy",
                "the hub has too many requests in progress, so nothing was done; try again, or raise `calls` \
                 and `bodies_mb` under [doors] in plexus.toml",
            ),
            Self::BrokenBody => fixed(StatusCode::BAD_REQUEST, "invalid_request", "the body is incomplete"),
            Self::UnknownStream => {
                fixed(StatusCode::NOT_FOUND, "stream_not_found", "you have no stream with this event id")
            }
            Self::NotFound => fixed(StatusCode::NOT_FOUND, "not_found", "this path does not exist"),
            Self::Unavailable => fixed(
                StatusCode::SERVICE_UNAVAILABLE,
                "store_unavailable",
                "the hub cannot look up this token now; try again",
            ),
        }
    }

    /// The JSON-RPC error of this refusal.
    pub(crate) fn to_json(self) -> Value {
        let (_, kind, message) = self.parts();
        json!({
            "jsonrpc": "2.0",
            "id": null,
            "error": {"code": -32000, "message": message, "data": {"type": kind, "message": message}},
        })
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, _, _) = self.parts();
        let mut response = (status, axum::Json(self.to_json())).into_response();
        if self == Self::Unauthorized {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if matches!(self, Self::BodyTooSlow | Self::TooManyCalls | Self::TooManyBytes | Self::Busy) {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_has_its_status_and_headers() {
        let response = Refusal::Unauthorized.into_response();
        assert_eq!(response.status(), 401);
        assert_eq!(response.headers()[header::WWW_AUTHENTICATE], "Bearer");
        let response = Refusal::TooLarge.into_response();
        assert_eq!(response.status(), 413);
        assert!(!response.headers().contains_key(header::WWW_AUTHENTICATE));
        for (refusal, status) in
            [(Refusal::TooManyCalls, 429), (Refusal::Busy, 503), (Refusal::BodyTooSlow, 408)]
        {
            let response = refusal.into_response();
            assert_eq!(
                (response.status().as_u16(), &response.headers()[header::RETRY_AFTER]),
                (status, &"1".parse().unwrap())
            );
        }
        assert_eq!(Refusal::TooLarge.to_json()["error"]["data"]["type"], "too_large");
    }
}
