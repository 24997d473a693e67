//! JSON-RPC 2.0 over the hub's registry: the envelope, written by hand because it is this small, and the two doors
//! that carry it.

mod envelope;
pub(crate) mod http;
pub(crate) mod websocket;
