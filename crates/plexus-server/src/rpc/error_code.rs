//! The JSON-RPC error codes. The kind of an error, in `data.type`, is more precise than its code.

use plexus_protocol::ErrorKind;

pub(super) const PARSE_ERROR: i64 = -32700;
pub(super) const INVALID_REQUEST: i64 = -32600;

/// The code of a kind of error.
pub(super) fn code(kind: ErrorKind) -> i64 {
    match kind {
        ErrorKind::MethodNotFound => -32601,
        ErrorKind::InvalidParams | ErrorKind::UnknownField | ErrorKind::NotSupportedYet => -32602,
        ErrorKind::Internal => -32603,
        _ => -32000,
    }
}
