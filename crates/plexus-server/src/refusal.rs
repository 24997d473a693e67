//! What a door says when it turns a request away before any method is called. All refusals have one shape, a
//! JSON-RPC error without an id, so that clients of either protocol can read them.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use plexus_protocol::MAX_BODY_BYTES;
use serde_json::{Value, json};

/// Why a request did not get in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// No token, or one that nobody has.
    Unauthorized,
    /// The request was meant for, or comes from, another site.
    ForeignSite,
    /// The caller is known but this is not for it.
    NotForYou,
    /// The body is over the limit.
    TooLarge,
    /// The body could not be read to its end.
    BrokenBody,
    /// No stream of this caller has this event id.
    UnknownStream,
    /// Nothing is here.
    NotFound,
    /// The store cannot tell who the caller is.
    Unavailable,
}

impl Refusal {
    fn parts(self) -> (StatusCode, &'static str, String) {
        let fixed = |status, kind, text: &str| (status, kind, text.to_owned());
        match self {
            Self::Unauthorized => fixed(
                StatusCode::UNAUTHORIZED,
                "unauthorized",
                "a valid token is needed: `Authorization: Bearer TOKEN`",
            ),
            Self::ForeignSite => fixed(
                StatusCode::FORBIDDEN,
                "forbidden",
                "the Host or Origin of this request is not this hub's own",
            ),
            Self::NotForYou => fixed(StatusCode::FORBIDDEN, "forbidden", "this is for the operator"),
            Self::TooLarge => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "too_large",
                format!("a body holds at most {MAX_BODY_BYTES} bytes"),
            ),
            Self::BrokenBody => fixed(StatusCode::BAD_REQUEST, "invalid_request", "the body broke off"),
            Self::UnknownStream => {
                fixed(StatusCode::NOT_FOUND, "stream_not_found", "no stream of yours has this event id")
            }
            Self::NotFound => fixed(StatusCode::NOT_FOUND, "not_found", "nothing is here"),
            Self::Unavailable => fixed(
                StatusCode::SERVICE_UNAVAILABLE,
                "store_unavailable",
                "the hub cannot tell now whose token this is; try again",
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
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_its_kind_and_asks_for_a_token_where_one_helps() {
        let response = Refusal::Unauthorized.into_response();
        assert_eq!(response.status(), 401);
        assert_eq!(response.headers()[header::WWW_AUTHENTICATE], "Bearer");
        let response = Refusal::TooLarge.into_response();
        assert_eq!(response.status(), 413);
        assert!(!response.headers().contains_key(header::WWW_AUTHENTICATE));
        assert_eq!(Refusal::TooLarge.to_json()["error"]["data"]["type"], "too_large");
    }
}
