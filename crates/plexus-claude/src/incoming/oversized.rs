//! Reads lines that are too large for memory, while streaming.
//!
//! Only the skeleton of a line is kept. It has a bounded size, and is enough to match a result to its call and to deny
//! a request.

use std::io::Read;

use serde_json::Value;

use super::{HookCallback, Incoming, Request, RequestBody, read, rubbish};
use crate::Object;
use crate::skeleton::{self, Shape};

static BLOCK: Shape =
    Shape::Object(&[("text", Shape::Text), ("thinking", Shape::Text), ("content", Shape::Text)]);
static DENIAL: Shape = Shape::Object(&[]);

static MESSAGE: Shape = Shape::Object(&[
    ("request", Shape::Object(&[])),
    ("response", Shape::Object(&[("error", Shape::Text)])),
    ("message", Shape::Object(&[("content", Shape::List(&BLOCK))])),
    ("result", Shape::Text),
    ("errors", Shape::List(&Shape::Text)),
    ("usage", Shape::Object(&[])),
    ("origin", Shape::Object(&[])),
    ("permission_denials", Shape::List(&DENIAL)),
]);

/// Parses a line of `len` bytes without loading it into memory.
///
/// Texts over 1 KiB become a short marker, ids over 1 KiB count as missing, tool inputs are empty, and the content of a
/// tool result is kept only if it is a short text. A permission request becomes
/// [`RequestBody::InvalidPermissionRequest`], a gate callback [`RequestBody::InvalidGateRequest`], and a callback of the
/// user's hooks [`RequestBody::InvalidHookRequest`]. A successful response keeps only `oversized`,
/// the length of the line. A `system` message keeps its short fields and gains `oversized`. A `stream_event` and
/// an unknown message keep only `oversized`. Input that is not JSON, or a failure of `reader`, becomes
/// [`Incoming::Rubbish`].
pub fn parse_oversized(reader: impl Read, len: u64) -> Incoming {
    parse_slim(reader.take(len), len)
}

pub(super) fn parse_slim(reader: impl Read, len: u64) -> Incoming {
    match skeleton::read(reader, &MESSAGE) {
        Ok(message) => slim(read::message(message), len),
        Err(head) => rubbish(&head),
    }
}

fn slim(message: Incoming, len: u64) -> Incoming {
    let note = || Object::from_iter([("oversized".to_owned(), Value::from(len))]);
    let why = || format!("the request has {len} bytes and is too large or too deeply nested to parse");
    match message {
        Incoming::Request(Request { request_id, body }) => {
            let body = match body {
                RequestBody::Ask(_) | RequestBody::InvalidPermissionRequest { .. } => {
                    RequestBody::InvalidPermissionRequest { why: why() }
                }
                RequestBody::Gate(_) | RequestBody::InvalidGateRequest { .. } => {
                    RequestBody::InvalidGateRequest { why: why() }
                }
                RequestBody::Hook(HookCallback { event, .. })
                | RequestBody::InvalidHookRequest { event, .. } => {
                    RequestBody::InvalidHookRequest { event, why: why() }
                }
                RequestBody::Unknown { subtype } => RequestBody::Unknown { subtype },
            };
            Incoming::Request(Request { request_id, body })
        }
        Incoming::Response(mut response) => {
            response.outcome = response.outcome.map(|_| note());
            Incoming::Response(response)
        }
        Incoming::System(mut system) => {
            system.data.extend(note());
            Incoming::System(system)
        }
        Incoming::Delta(_) => Incoming::Other { kind: "stream_event".to_owned(), data: note() },
        Incoming::Other { kind, .. } => Incoming::Other { kind, data: note() },
        Incoming::Cancel { .. }
        | Incoming::Assistant(_)
        | Incoming::User(_)
        | Incoming::Result(_)
        | Incoming::KeepAlive
        | Incoming::Rubbish { .. }
        | Incoming::Blank => message,
    }
}
