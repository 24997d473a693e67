//! What the hub writes to a child's stdin, one message per line.
//!
//! Every function gives one line without its newline; it starts with `{"type":`, by which the keeper tells it from
//! its own orders. Sending it, once and in order, is left to others.

use serde_json::{Map, Value, json};

use crate::PermissionResult;

/// The id of our PreToolUse callback.
pub const GATE_CALLBACK: &str = "plexus_gate";

/// How long the callback may take: the longest time that does not overflow in Claude Code 2.1.197.
pub const GATE_TIMEOUT_SECS: u64 = 2_147_483;

/// The gate's answer to a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateAnswer {
    /// The call takes Claude Code's own course.
    NoOpinion,
    /// The call runs, unless Claude Code has its own reason to ask.
    Allow {
        /// Why.
        reason: String,
    },
    /// The call is asked about.
    Ask {
        /// Why.
        reason: String,
    },
    /// The call does not run.
    Deny {
        /// Why; the model is told.
        reason: String,
    },
}

/// The first message to a process: our callback on every tool, and agents besides Claude Code's own, by name.
pub fn initialize(request_id: &str, agents: &Map<String, Value>) -> String {
    // A matcher that is left out matches every tool.
    let gate = json!({"hookCallbackIds": [GATE_CALLBACK], "timeout": GATE_TIMEOUT_SECS});
    initialize_with(request_id, json!({"subtype": "initialize", "hooks": {"PreToolUse": [gate]}}), agents)
}

/// The first message to a process whose operator wants no gate.
pub fn initialize_ungated(request_id: &str, agents: &Map<String, Value>) -> String {
    initialize_with(request_id, json!({"subtype": "initialize"}), agents)
}

fn initialize_with(request_id: &str, mut body: Value, agents: &Map<String, Value>) -> String {
    if !agents.is_empty() {
        body["agents"] = Value::Object(agents.clone());
    }
    request(request_id, body)
}

/// A prompt, known by its `uuid`, that means what it says: no `@path` in it is read and no `/command` is run.
///
/// `client_composed` says so to newer versions. 2.1.197 does not know it but looks only at the last text block, so a
/// prompt that holds anything of the kind is sent as two blocks, of which the last holds none.
pub fn user_message(uuid: &str, text: &str) -> String {
    let content = match harmless_tail(text) {
        None => json!(text),
        Some(at) => json!([{"type": "text", "text": text[..at]}, {"type": "text", "text": text[at..]}]),
    };
    json!({
        "type": "user",
        "uuid": uuid,
        "message": {"role": "user", "content": content},
        "parent_tool_use_id": null,
        "session_id": "",
        "client_composed": true,
    })
    .to_string()
}

/// A prompt, known by its `uuid`, in which Claude Code reads the files that are named as `@path`.
pub fn user_message_expanded(uuid: &str, text: &str) -> String {
    json!({
        "type": "user",
        "uuid": uuid,
        "message": {"role": "user", "content": text},
        "parent_tool_use_id": null,
        "session_id": "",
    })
    .to_string()
}

/// Ends the running turn.
pub fn interrupt(request_id: &str) -> String {
    request(request_id, json!({"subtype": "interrupt"}))
}

/// Takes back a message that the child has not begun to read.
pub fn cancel_message(request_id: &str, message_uuid: &str) -> String {
    request(request_id, json!({"subtype": "cancel_async_message", "message_uuid": message_uuid}))
}

/// Asks for the state of the MCP servers.
pub fn mcp_status(request_id: &str) -> String {
    request(request_id, json!({"subtype": "mcp_status"}))
}

/// Puts the child in another mode.
pub fn set_permission_mode(request_id: &str, mode: &str) -> String {
    request(request_id, json!({"subtype": "set_permission_mode", "mode": mode}))
}

/// Changes the model; `None` goes back to Claude Code's own choice.
pub fn set_model(request_id: &str, model: Option<&str>) -> String {
    // A value that is not a text hangs older versions.
    request(request_id, json!({"subtype": "set_model", "model": model.unwrap_or("default")}))
}

/// Refuses a request. Never for the gate's callback: there an error lets the tool run.
pub fn reply_error(request_id: &str, message: &str) -> String {
    json!({
        "type": "control_response",
        "response": {"subtype": "error", "request_id": request_id, "error": message},
    })
    .to_string()
}

/// Answers the gate's callback, always with success and a decision that Claude Code knows.
pub fn reply_gate(request_id: &str, answer: &GateAnswer) -> String {
    let (decision, reason) = match answer {
        GateAnswer::NoOpinion => return reply(request_id, json!({})),
        GateAnswer::Allow { reason } => ("allow", reason),
        GateAnswer::Ask { reason } => ("ask", reason),
        GateAnswer::Deny { reason } => ("deny", reason),
    };
    let output = json!({
        "hookEventName": "PreToolUse",
        "permissionDecision": decision,
        "permissionDecisionReason": reason,
    });
    reply(request_id, json!({"hookSpecificOutput": output}))
}

/// Answers a call that needs a decision.
pub fn reply_ask(request_id: &str, answer: &PermissionResult) -> String {
    reply(request_id, answer.to_value())
}

fn request(request_id: &str, request: Value) -> String {
    json!({"type": "control_request", "request_id": request_id, "request": request}).to_string()
}

fn reply(request_id: &str, response: Value) -> String {
    json!({
        "type": "control_response",
        "response": {"subtype": "success", "request_id": request_id, "response": response},
    })
    .to_string()
}

/// Where to split a prompt so that what comes last mentions no path and is no command; `None` if it need not be split.
fn harmless_tail(text: &str) -> Option<usize> {
    if !text.contains('@') && !text.trim_start().starts_with('/') {
        return None;
    }
    let end = text.trim_end().len();
    // Best between two words, since a message sent in mid-turn has its blocks joined with a line break.
    let last_word =
        text[..end].char_indices().rev().find(|(_, c)| c.is_whitespace()).map(|(at, c)| at + c.len_utf8());
    if let Some(at) = last_word.filter(|&at| !text[at..].contains('@') && !text[at..].starts_with('/')) {
        return Some(at);
    }
    // Else inside the word, after what makes it special.
    let special = text[..end].rfind('@').map_or(last_word.unwrap_or(0), |at| at + 1);
    let at = end - text[special..end].trim_start_matches('/').len();
    if at < end {
        return Some(at);
    }
    // It ends in `@` or `/`, which alone is neither a path nor a command. The API takes no blank block.
    text[..end].char_indices().next_back().map(|(at, _)| at).filter(|&at| !text[..at].trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(text: &str) -> Vec<String> {
        let line: Value = serde_json::from_str(&user_message("u", text)).unwrap();
        match &line["message"]["content"] {
            Value::String(text) => vec![text.clone()],
            blocks => {
                blocks.as_array().unwrap().iter().map(|b| b["text"].as_str().unwrap().to_owned()).collect()
            }
        }
    }

    #[test]
    fn every_line_is_one_line_with_the_prefix_the_keeper_knows() {
        let nasty = "a\nb\r\n\"\\\u{2028}\0é";
        let deny = PermissionResult::Deny { message: nasty.into(), interrupt: true };
        let lines = [
            initialize(nasty, &Map::new()),
            user_message(nasty, nasty),
            user_message(nasty, &format!("@x {nasty}")),
            interrupt(nasty),
            mcp_status(nasty),
            set_permission_mode(nasty, nasty),
            reply_error(nasty, nasty),
            reply_gate(nasty, &GateAnswer::NoOpinion),
            reply_gate(nasty, &GateAnswer::Deny { reason: nasty.into() }),
            reply_ask(nasty, &deny),
        ];
        for line in lines {
            assert!(line.starts_with(r#"{"type":"#), "{line}");
            assert!(!line.contains(['\n', '\r']), "{line}");
            assert!(serde_json::from_str::<Value>(&line).is_ok());
        }
    }

    #[test]
    fn the_gate_stands_before_every_tool() {
        let expected = r#"{"type":"control_request","request_id":"i","request":{"subtype":"initialize","hooks":{"PreToolUse":[{"hookCallbackIds":["plexus_gate"],"timeout":2147483}]}}}"#;
        assert_eq!(initialize("i", &Map::new()), expected);
    }

    #[test]
    fn whatever_the_gate_answers_is_a_success_with_a_known_decision() {
        let reason = || "because".to_owned();
        let answers = [
            (GateAnswer::NoOpinion, json!({})),
            (GateAnswer::Allow { reason: reason() }, json!("allow")),
            (GateAnswer::Ask { reason: reason() }, json!("ask")),
            (GateAnswer::Deny { reason: reason() }, json!("deny")),
        ];
        for (answer, expected) in answers {
            let line: Value = serde_json::from_str(&reply_gate("r", &answer)).unwrap();
            assert_eq!(line["response"]["subtype"], "success");
            assert_eq!(line["response"]["request_id"], "r");
            let response = &line["response"]["response"];
            let output = &response["hookSpecificOutput"];
            if answer == GateAnswer::NoOpinion {
                assert_eq!(*response, expected);
            } else {
                assert_eq!(output["permissionDecision"], expected);
                assert_eq!(output["permissionDecisionReason"], "because");
                assert_eq!(output["hookEventName"], "PreToolUse");
            }
        }
    }

    #[test]
    fn a_plain_prompt_is_one_text() {
        for text in ["hello", "", "a/b and c", "1 / 2"] {
            assert_eq!(blocks(text), [text]);
        }
    }

    #[test]
    fn a_prompt_with_a_path_or_command_ends_in_a_block_without_one() {
        let cases: [(&str, &[&str]); 13] = [
            ("look at @/etc/x please", &["look at @/etc/x ", "please"]),
            ("look at @/etc/x", &["look at @/", "etc/x"]),
            ("review @src/main.rs\n", &["review @", "src/main.rs\n"]),
            ("/evil", &["/", "evil"]),
            ("  /evil now", &["  /evil ", "now"]),
            ("/evil /now", &["/evil /", "now"]),
            ("@/", &["@", "/"]),
            ("hi @", &["hi ", "@"]),
            ("see @a //", &["see @", "a //"]),
            ("@", &["@"]),
            ("/", &["/"]),
            ("  /", &["  /"]),
            ("mail é@漢", &["mail é@", "漢"]),
        ];
        for (text, expected) in cases {
            assert_eq!(blocks(text), expected, "{text:?}");
        }
    }
}
