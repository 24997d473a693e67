//! The web console: its files, which need no authentication, and its login, which needs a code from `plexus console`.
//! The page may load only these files and run only its own script, and no other page may frame it.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use plexus_console::{Content, File};
use plexus_protocol::console::SignIn;
use plexus_protocol::{Error, ErrorKind};
use serde_json::json;

use crate::refusal::Refusal;
use crate::routes::{Doors, Transport};

/// The Content-Security-Policy of the page. Svelte creates its templates with one named Trusted Types policy, and
/// another creates the URL of the service worker. Nothing else becomes markup or script.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; \
    connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types svelte-trusted-html plexus-worker";

/// The security headers of every file.
const GUARDS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Serves the page or one of its files.
pub(crate) async fn file(State(doors): State<Doors>, uri: Uri, headers: HeaderMap) -> Response {
    if let Transport::Tcp(site) = &doors.transport
        && let Some(address) = site.instead_of_localhost(&headers)
    {
        return Redirect::temporary(&format!("http://{address}{}", uri.path())).into_response();
    }
    served(&uri, &headers)
}

fn served(uri: &Uri, headers: &HeaderMap) -> Response {
    let path = match uri.path().trim_start_matches('/') {
        "" => "index.html",
        path => path,
    };
    let Some(File { content, media_type, immutable }) = plexus_console::file(path) else {
        return Refusal::NotFound.into_response();
    };
    let (content, encoded) = match content {
        Content::Gzip(compressed) if takes_gzip(headers) => (compressed, true),
        content => match content.into_plain() {
            Ok(content) => (content, false),
            Err(error) => {
                tracing::error!(%error, path, "a file of the console cannot be decompressed");
                return StatusCode::INTERNAL_SERVER_ERROR.into_response();
            }
        },
    };
    let mut response = Bytes::from_owner(content).into_response();
    let out = response.headers_mut();
    for (name, value) in GUARDS {
        out.insert(name, HeaderValue::from_static(value));
    }
    out.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    out.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    // Asset names change with their contents. Other files are revalidated, so an updated hub serves its page at once.
    let kept = if immutable { "public, max-age=31536000, immutable" } else { "no-cache" };
    out.insert(header::CACHE_CONTROL, HeaderValue::from_static(kept));
    if encoded {
        out.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    let taken =
        headers.get(header::ACCEPT_ENCODING).and_then(|taken| taken.to_str().ok()).unwrap_or_default();
    taken
        .split(',')
        .any(|coding| matches!(coding.trim(), "gzip" | "x-gzip") || coding.trim().starts_with("gzip;q=1"))
}

/// Exchanges a code for a token. Only the hub's own pages may do so: browsers send the origin of each POST.
pub(crate) async fn login(State(doors): State<Doors>, headers: HeaderMap, body: Body) -> Response {
    if !headers.contains_key(header::ORIGIN) {
        return Refusal::ForeignSite.into_response();
    }
    let body = match doors.reader().read_small(body).await {
        Ok(body) => body,
        Err(refusal) => return refusal.into_response(),
    };
    let Ok(SignIn { code }) = serde_json::from_slice(&body) else {
        return refused(StatusCode::BAD_REQUEST, &Error::invalid("code", "is missing"));
    };
    match doors.hub.sign_in(&code).await {
        Ok(Some(signed_in)) => ([(header::CACHE_CONTROL, "no-store")], Json(signed_in)).into_response(),
        Ok(None) => {
            let why = "this link was already used or has expired; `plexus console` creates a new one";
            refused(StatusCode::UNAUTHORIZED, &Error::new(ErrorKind::Forbidden, why))
        }
        Err(error) => refused(StatusCode::SERVICE_UNAVAILABLE, &error),
    }
}

fn refused(status: StatusCode, error: &Error) -> Response {
    (status, Json(json!({"error": error.to_object()}))).into_response()
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn the_page_has_all_security_headers() {
        let response = served(&Uri::from_static("/"), &HeaderMap::new());
        assert_eq!(response.status(), 200);
        let headers = response.headers();
        for (name, value) in GUARDS {
            assert_eq!(headers[&name], value);
        }
        assert_eq!(headers[header::CACHE_CONTROL], "no-cache");
        assert!(!headers.contains_key(header::SET_COOKIE) && !headers.contains_key(header::CONTENT_ENCODING));
    }

    #[tokio::test]
    async fn a_client_without_gzip_gets_the_same_page() {
        let plain = served(&Uri::from_static("/"), &HeaderMap::new());
        assert!(!plain.headers().contains_key(header::CONTENT_ENCODING));
        let plain = plain.into_body().collect().await.unwrap().to_bytes();
        assert!(plain.starts_with(b"<!doctype html>"));
        let takes_gzip = HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"))]);
        let compressed = served(&Uri::from_static("/"), &takes_gzip);
        if compressed.headers().contains_key(header::CONTENT_ENCODING) {
            let compressed = compressed.into_body().collect().await.unwrap().to_bytes();
            let content = Content::Gzip(compressed.to_vec().into()).into_plain().unwrap();
            assert_eq!(content, plain.to_vec());
        }
    }

    #[tokio::test]
    async fn the_service_worker_has_the_content_security_policy_and_is_revalidated() {
        if plexus_console::missing().is_some() {
            return;
        }
        let response = served(&Uri::from_static("/worker.js"), &HeaderMap::new());
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()[header::CACHE_CONTROL], "no-cache");
        assert_eq!(response.headers()[header::CONTENT_SECURITY_POLICY], POLICY);
    }

    #[tokio::test]
    async fn only_the_files_of_the_console_are_served() {
        for path in
            ["/../Cargo.toml", "/assets/", "/assets/%2e%2e/index.html", "/index.html.gz", "/operator.token"]
        {
            let response = served(&path.parse().unwrap(), &HeaderMap::new());
            assert_eq!(response.status(), 404, "{path}");
        }
    }
}
