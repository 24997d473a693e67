//! Identifies the lines that an outbox already holds.
//!
//! After a restart the hub appends only missing lines. It recognises the lines it sent before by their ids.

use serde_json::Value;

use crate::Object;
use crate::skeleton::{self, Shape};

/// The id of a sent line.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SentId {
    /// A request of the hub, by its `request_id`.
    Request(String),
    /// A reply, by the `request_id` of the child's request.
    Reply(String),
    /// A prompt, by its `uuid`.
    Prompt(String),
}

static LINE: Shape = Shape::Object(&[("response", Shape::Object(&[]))]);

/// The id of an outbox line of any length; `None` if it has none.
pub fn sent_id(line: &[u8]) -> Option<SentId> {
    let message = skeleton::read(line, &LINE).ok()?;
    let text = |object: &Object, key| Some(object.get(key)?.as_str()?.to_owned());
    match message.get("type").and_then(Value::as_str)? {
        "control_request" => text(&message, "request_id").map(SentId::Request),
        "control_response" => text(message.get("response")?.as_object()?, "request_id").map(SentId::Reply),
        "user" => text(&message, "uuid").map(SentId::Prompt),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        GateAnswer, PermissionResult, mcp_status, reply_error, reply_gate, reply_permission, user_message,
    };

    #[test]
    fn the_id_of_a_sent_line_is_read_back() {
        let id = |line: String| sent_id(line.as_bytes());
        let allow = PermissionResult::Allow {
            updated_input: Object::from_iter([("request_id".to_owned(), Value::from("not this"))]),
            updated_permissions: vec![],
        };
        assert_eq!(id(mcp_status("a")), Some(SentId::Request("a".into())));
        assert_eq!(id(reply_permission("b", &allow)), Some(SentId::Reply("b".into())));
        assert_eq!(id(reply_gate("c", &GateAnswer::NoOpinion)), Some(SentId::Reply("c".into())));
        assert_eq!(id(reply_error("d", "no")), Some(SentId::Reply("d".into())));
        assert_eq!(id(user_message("e", "hello @x", &[], None)), Some(SentId::Prompt("e".into())));
    }

    #[test]
    fn the_id_of_a_prompt_of_16_megabytes_is_read_back() {
        let line = user_message("e", &"sixteen bytes é\n".repeat(1024 * 1024), &[], None);
        assert_eq!(sent_id(line.as_bytes()), Some(SentId::Prompt("e".into())));
    }

    #[test]
    fn a_line_that_is_not_a_message_has_no_id() {
        for line in [r#"{"go":"nonce"}"#, r#"{"type":"user"}"#, r#"{"type":"user","uuid":"x""#, "", "x"] {
            assert_eq!(sent_id(line.as_bytes()), None, "{line}");
        }
    }
}
