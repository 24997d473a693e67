//! Lines that are too large to be held in memory, read as they stream by.
//!
//! What is kept of one is its skeleton: enough to see which call a result belongs to and to refuse a question, and of
//! bounded size whatever the line holds.

use std::io::Read;

use serde_json::Value;

use super::{Incoming, Request, RequestBody, read, rubbish};
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

/// Reads a line of `len` bytes without holding it in memory.
///
/// Texts over 1 KiB become a short marker, ids over 1 KiB count as missing, tool inputs are empty, and a tool result's
/// content is kept only if it is a short text. A question becomes [`RequestBody::BadAsk`] or
/// [`RequestBody::BadGate`]; a success keeps no payload but `oversized`, the length of the line; a `system` message keeps
/// its short fields and gains `oversized`; of all other kinds only `oversized` is left. What cannot be read, be it not
/// JSON or a failure of `reader`, is [`Incoming::Rubbish`].
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
    let why = || format!("the request has {len} bytes, larger or deeper than can be read");
    match message {
        Incoming::Request(Request { request_id, body }) => {
            let body = match body {
                RequestBody::Ask(_) | RequestBody::BadAsk { .. } => RequestBody::BadAsk { why: why() },
                RequestBody::Gate(_) | RequestBody::BadGate { .. } => RequestBody::BadGate { why: why() },
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
