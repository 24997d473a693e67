//! The server-sent events of a permit stream: an opening event with the stream id, heartbeats, and one response.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

/// The first event of a stream: the id for reconnecting, and the delay before it.
pub(crate) fn opening(event_id: &str, retry: Duration) -> Bytes {
    Bytes::from(format!("id: {event_id}\nretry: {}\ndata: \n\n", retry.as_millis()))
}

/// A heartbeat: progress for the caller's token, or a comment if the caller gave none.
pub(crate) fn sign_of_life(progress_token: Option<&Value>, count: u64) -> Bytes {
    match progress_token {
        None => Bytes::from_static(b": waiting\n\n"),
        Some(token) => message(&json!({
            "jsonrpc": "2.0",
            "method": "notifications/progress",
            "params": {"progressToken": token, "progress": count, "message": "waiting for a decision"},
        })),
    }
}

/// The response to `tools/call loopback_permit`: exactly one text block that contains the decision as JSON.
pub(crate) fn decision(jsonrpc_id: &Value, decision: &Value) -> Bytes {
    message(&json!({
        "jsonrpc": "2.0",
        "id": jsonrpc_id,
        // Protocol 2026-07-28 requires `resultType`; earlier clients ignore it.
        "result": {
            "resultType": "complete",
            "content": [{"type": "text", "text": decision.to_string()}],
            "isError": false,
        },
    }))
}

/// JSON contains no raw line breaks, so one `data` line is enough.
fn message(value: &Value) -> Bytes {
    Bytes::from(format!("event: message\ndata: {value}\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_starts_with_its_id_and_retry_interval() {
        assert_eq!(opening("abc", Duration::from_secs(5)), "id: abc\nretry: 5000\ndata: \n\n");
    }

    #[test]
    fn heartbeats_are_progress_messages_if_a_token_was_given() {
        assert_eq!(sign_of_life(None, 1), ": waiting\n\n");
        let with_token = sign_of_life(Some(&json!(7)), 3);
        let text = std::str::from_utf8(&with_token).unwrap();
        let data: Value =
            serde_json::from_str(text.lines().nth(1).unwrap().strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(data["method"], "notifications/progress");
        assert_eq!((&data["params"]["progressToken"], &data["params"]["progress"]), (&json!(7), &json!(3)));
    }

    #[test]
    fn the_decision_is_one_text_block_on_one_line() {
        let allow = json!({"behavior": "allow", "updatedInput": {"command": "echo a\necho b"}});
        let bytes = decision(&json!("x"), &allow);
        let text = std::str::from_utf8(&bytes).unwrap();
        assert_eq!(text.matches('\n').count(), 3, "{text}");
        let data: Value =
            serde_json::from_str(text.lines().nth(1).unwrap().strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!((&data["id"], &data["result"]["resultType"]), (&json!("x"), &json!("complete")));
        let block = &data["result"]["content"][0];
        assert_eq!(block["type"], "text");
        assert_eq!(serde_json::from_str::<Value>(block["text"].as_str().unwrap()).unwrap(), allow);
    }
}
