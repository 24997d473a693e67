//! JSON-RPC 2.0 over the hub's registry: the envelope, written by hand because it is small, and its two doors.

mod envelope;
mod error_code;
pub(crate) mod http;
pub(crate) mod websocket;
