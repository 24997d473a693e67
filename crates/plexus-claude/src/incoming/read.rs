//! Converts a JSON object to a message.
//!
//! Fields are read by name and type; a field of another type counts as missing. A message without the required fields
//! of its kind is kept whole as [`Incoming::Other`].

use serde_json::Value;

use super::{Assistant, Block, Hunk, Incoming, Response, System, TurnResult, User, request};
use crate::Object;

/// Converts an object to a message.
pub(super) fn message(mut object: Object) -> Incoming {
    let kind = object.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let known = match kind.as_str() {
        "control_request" => request::request(&mut object).map(Incoming::Request),
        "control_response" => response(&mut object).map(Incoming::Response),
        "control_cancel_request" => {
            text(&mut object, "request_id").map(|request_id| Incoming::Cancel { request_id })
        }
        "assistant" => assistant(&mut object).map(Incoming::Assistant),
        "user" => user(&mut object).map(Incoming::User),
        "result" => Some(Incoming::Result(result(&mut object))),
        "keep_alive" => Some(Incoming::KeepAlive),
        "system" => {
            let subtype = object.get("subtype").and_then(Value::as_str).unwrap_or_default().to_owned();
            return Incoming::System(System { subtype, data: object });
        }
        "stream_event" => return Incoming::Delta(object),
        _ => None,
    };
    known.unwrap_or(Incoming::Other { kind, data: object })
}

fn response(object: &mut Object) -> Option<Response> {
    let response = object.get_mut("response")?.as_object_mut()?;
    let request_id = text(response, "request_id")?;
    let outcome = match response.get("subtype").and_then(Value::as_str) {
        Some("success") => Ok(map(response, "response").unwrap_or_default()),
        _ => Err(text(response, "error").unwrap_or_else(|| "an error without a message".to_owned())),
    };
    Some(Response { request_id, outcome })
}

fn assistant(object: &mut Object) -> Option<Assistant> {
    let message = object.get_mut("message")?.as_object_mut()?;
    let blocks = blocks(message)?;
    let message_id = text(message, "id");
    Some(Assistant {
        uuid: text(object, "uuid"),
        message_id,
        blocks,
        parent_tool_use_id: text(object, "parent_tool_use_id"),
        agent_id: text(object, "agent_id"),
        error: text(object, "error"),
    })
}

fn user(object: &mut Object) -> Option<User> {
    let blocks = blocks(object.get_mut("message")?.as_object_mut()?)?;
    Some(User {
        uuid: text(object, "uuid"),
        blocks,
        parent_tool_use_id: text(object, "parent_tool_use_id"),
        is_replay: flag(object, "isReplay").unwrap_or(false),
        is_synthetic: flag(object, "isSynthetic").unwrap_or(false),
        patch: map(object, "tool_use_result").and_then(patch).unwrap_or_default(),
    })
}

/// The change of a file; `None` unless every part of it is readable, because a partial change would be misleading.
fn patch(mut result: Object) -> Option<Vec<Hunk>> {
    let hunks = list(&mut result, "structuredPatch").into_iter().map(|hunk| {
        let Value::Object(mut hunk) = hunk else { return None };
        let lines = list(&mut hunk, "lines").into_iter().map(|line| match line {
            Value::String(line) => Some(line),
            _ => None,
        });
        Some(Hunk {
            old_start: hunk.get("oldStart")?.as_u64()?,
            new_start: hunk.get("newStart")?.as_u64()?,
            lines: lines.collect::<Option<_>>()?,
        })
    });
    hunks.collect()
}

fn result(object: &mut Object) -> TurnResult {
    let subtype = text(object, "subtype").unwrap_or_default();
    let is_error = flag(object, "is_error").unwrap_or(subtype != "success");
    let errors = list(object, "errors").into_iter().map(|error| match error {
        Value::String(text) => text,
        other => other.to_string(),
    });
    TurnResult {
        subtype,
        is_error,
        errors: errors.collect(),
        result: text(object, "result"),
        usage: map(object, "usage").unwrap_or_default(),
        total_cost_usd: object.get("total_cost_usd").and_then(Value::as_f64),
        num_turns: object.get("num_turns").and_then(Value::as_u64),
        stop_reason: text(object, "stop_reason"),
        terminal_reason: text(object, "terminal_reason"),
        origin_kind: map(object, "origin").and_then(|mut origin| text(&mut origin, "kind")),
        permission_denials: list(object, "permission_denials"),
        user_message_uuid: text(object, "user_message_uuid"),
    }
}

/// The content of a message, if it has any.
fn blocks(message: &mut Object) -> Option<Vec<Block>> {
    match message.get_mut("content")? {
        Value::String(text) => Some(vec![Block::Text { text: std::mem::take(text) }]),
        Value::Array(blocks) => Some(std::mem::take(blocks).into_iter().map(block).collect()),
        _ => None,
    }
}

fn block(value: Value) -> Block {
    let mut data = match value {
        Value::Object(data) => data,
        other => {
            return Block::Other {
                kind: String::new(),
                data: Object::from_iter([("value".to_owned(), other)]),
            };
        }
    };
    let kind = data.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let known = match kind.as_str() {
        "text" => text(&mut data, "text").map(|text| Block::Text { text }),
        "thinking" => text(&mut data, "thinking").map(|text| Block::Thinking { text }),
        "tool_use" => tool_use(&mut data),
        "tool_result" => tool_result(&mut data),
        _ => None,
    };
    known.unwrap_or(Block::Other { kind, data })
}

fn tool_use(data: &mut Object) -> Option<Block> {
    // All fields are checked before any is taken, so that an unrecognised block is kept whole.
    data.get("id")?.as_str()?;
    data.get("name")?.as_str()?;
    if data.get("input").is_some_and(|input| !input.is_object()) {
        return None;
    }
    Some(Block::ToolUse {
        id: text(data, "id")?,
        name: text(data, "name")?,
        input: map(data, "input").unwrap_or_default(),
    })
}

fn tool_result(data: &mut Object) -> Option<Block> {
    Some(Block::ToolResult {
        tool_use_id: text(data, "tool_use_id")?,
        content: data.get_mut("content").map(Value::take).unwrap_or_default(),
        is_error: flag(data, "is_error").unwrap_or(false),
    })
}

/// Takes a string out of an object.
pub(super) fn text(object: &mut Object, key: &str) -> Option<String> {
    match object.get_mut(key)? {
        Value::String(text) => Some(std::mem::take(text)),
        _ => None,
    }
}

/// Takes an object out of an object.
pub(super) fn map(object: &mut Object, key: &str) -> Option<Object> {
    match object.get_mut(key)? {
        Value::Object(map) => Some(std::mem::take(map)),
        _ => None,
    }
}

/// Takes anything but null out of an object.
pub(super) fn any(object: &mut Object, key: &str) -> Option<Value> {
    object.get_mut(key).map(Value::take).filter(|value| !value.is_null())
}

pub(super) fn flag(object: &Object, key: &str) -> Option<bool> {
    object.get(key).and_then(Value::as_bool)
}

fn list(object: &mut Object, key: &str) -> Vec<Value> {
    match object.get_mut(key) {
        Some(Value::Array(list)) => std::mem::take(list),
        _ => Vec::new(),
    }
}
