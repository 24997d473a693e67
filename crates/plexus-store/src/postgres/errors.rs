//! Errors of the driver: their texts, what to do about them, and whether waiting helps.

use std::error::Error as _;
use std::io;

use tokio_postgres::Error;
use tokio_postgres::error::Severity;
use tokio_rustls::rustls;

use super::tls::HandshakeError;
use crate::StoreError;

/// Whether the connection cannot be used after this error. An error of the database itself usually ends a statement only.
pub(super) fn is_end_of_connection(error: &Error) -> bool {
    let is_fatal = |severity: Option<Severity>| matches!(severity, Some(Severity::Fatal | Severity::Panic));
    let is_io = error.source().is_some_and(|source| source.is::<io::Error>());
    error.is_closed() || is_io || error.as_db_error().is_some_and(|error| is_fatal(error.parsed_severity()))
}

/// The error for the user who starts the hub. Waiting does not help if the database refuses the user, the password or the name, or if
/// server and hub do not trust each other.
pub(super) fn refused(error: &Error) -> StoreError {
    let is_lasting = match error.code().map(|code| code.code()) {
        Some(code) => code.starts_with("28") || code.starts_with("3D") || code.starts_with("42"),
        None => is_wrong_setting(error),
    };
    if is_lasting { StoreError::Unusable(describe(error)) } else { StoreError::Unavailable(describe(error)) }
}

fn is_wrong_setting(error: &Error) -> bool {
    let source = error.source();
    if let Some(error) = source.and_then(|source| source.downcast_ref::<HandshakeError>()) {
        return !matches!(error, HandshakeError::Io(_));
    }
    if let Some(error) = source.and_then(|source| source.downcast_ref::<io::Error>()) {
        // With TLS 1.3 a server refuses the certificate of the hub after the handshake.
        return error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>());
    }
    // The driver does not publish the kinds of its errors.
    ["error performing TLS handshake", "invalid configuration", "authentication error"]
        .contains(&error.to_string().as_str())
}

/// The text of an error, with its causes and what to do.
pub(super) fn describe(error: &Error) -> String {
    if let Some(refusal) = error.as_db_error() {
        return format!("PostgreSQL: {} ({})", refusal.message(), refusal.code().code());
    }
    let mut text = format!("PostgreSQL: {error}");
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    match advice(error) {
        Some(advice) => format!("{text}: {advice}"),
        None => text,
    }
}

fn advice(error: &Error) -> Option<&'static str> {
    match error.source()?.to_string().as_str() {
        "password missing" => Some(
            "set `password_file` under [store] in plexus.toml, set PLEXUS_STORE_PASSWORD_FILE, or add a line to ~/.pgpass",
        ),
        "server does not support TLS" => Some(
            "enable TLS in its configuration; sslmode=disable in the address accepts connections without encryption",
        ),
        _ => None,
    }
}
