//! Encodes the hub's messages to a child's stdin, one per line.
//!
//! Every function returns one line without its newline. It starts with `{"type":`, which distinguishes it from commands
//! to the keeper. Callers send each line once and in order.

use serde_json::{Map, Value, json};

use crate::{PermissionResult, Version};

/// The id of the hub's PreToolUse callback.
pub const GATE_CALLBACK: &str = "plexus_gate";

/// The timeout of the callback: the longest time that does not overflow in Claude Code 2.1.197.
pub const GATE_TIMEOUT_SECS: u64 = 2_147_483;

/// The gate's answer to a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateAnswer {
    /// Claude Code's permission rules decide.
    NoOpinion,
    /// The call runs, unless Claude Code itself requires approval.
    Allow {
        /// The reason.
        reason: String,
    },
    /// The call needs approval.
    Ask {
        /// The reason.
        reason: String,
    },
    /// The call does not run.
    Deny {
        /// The reason, which the model receives.
        reason: String,
    },
}

/// The first message to a process. It registers the hub's callback for every tool, and additional agents by name.
pub fn initialize(request_id: &str, agents: &Map<String, Value>) -> String {
    // An omitted matcher matches every tool.
    let gate = json!({"hookCallbackIds": [GATE_CALLBACK], "timeout": GATE_TIMEOUT_SECS});
    initialize_with(request_id, json!({"subtype": "initialize", "hooks": {"PreToolUse": [gate]}}), agents)
}

/// The first message to a process whose operator has disabled the gate.
pub fn initialize_ungated(request_id: &str, agents: &Map<String, Value>) -> String {
    initialize_with(request_id, json!({"subtype": "initialize"}), agents)
}

fn initialize_with(request_id: &str, mut body: Value, agents: &Map<String, Value>) -> String {
    if !agents.is_empty() {
        body["agents"] = Value::Object(agents.clone());
    }
    request(request_id, body)
}

/// A prompt with its `uuid`, sent literally: Claude Code reads no `@path` and runs no `/command` in it.
///
/// Claude Code examines only the last text block. A prompt that contains a path or command is therefore sent as two blocks, of which
/// the last contains neither. `client_composed` requests the same from newer versions, except from those that then leave out the
/// instructions of plan mode. A process whose version is unknown may be one of them.
pub fn user_message(uuid: &str, text: &str, version: Option<Version>) -> String {
    let content = match harmless_tail(text) {
        None => json!(text),
        Some(at) => json!([{"type": "text", "text": text[..at]}, {"type": "text", "text": text[at..]}]),
    };
    let mut line = json!({
        "type": "user",
        "uuid": uuid,
        "message": {"role": "user", "content": content},
        "parent_tool_use_id": null,
        "session_id": "",
    });
    if version.is_some_and(|version| !version.drops_instructions_of_composed_prompts()) {
        line["client_composed"] = json!(true);
    }
    line.to_string()
}

/// A prompt with its `uuid`. Claude Code reads the files that it names as `@path`.
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

/// Interrupts the running turn.
pub fn interrupt(request_id: &str) -> String {
    request(request_id, json!({"subtype": "interrupt"}))
}

/// Cancels a message that the child has not started to read.
pub fn cancel_message(request_id: &str, message_uuid: &str) -> String {
    request(request_id, json!({"subtype": "cancel_async_message", "message_uuid": message_uuid}))
}

/// Requests the state of the MCP servers.
pub fn mcp_status(request_id: &str) -> String {
    request(request_id, json!({"subtype": "mcp_status"}))
}

/// Sets the child's permission mode.
pub fn set_permission_mode(request_id: &str, mode: &str) -> String {
    request(request_id, json!({"subtype": "set_permission_mode", "mode": mode}))
}

/// Sets the model; `None` restores Claude Code's default.
pub fn set_model(request_id: &str, model: Option<&str>) -> String {
    // Older versions hang on a value that is not a string.
    request(request_id, json!({"subtype": "set_model", "model": model.unwrap_or("default")}))
}

/// Rejects a request. Never use it for the gate's callback, where an error lets the tool run.
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

/// Answers a tool call that needs approval.
pub fn reply_permission(request_id: &str, answer: &PermissionResult) -> String {
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

/// Where to split a prompt so that its last part names no path and is not a command; `None` if no split is needed.
fn harmless_tail(text: &str) -> Option<usize> {
    if !text.contains('@') && !text.trim_start().starts_with('/') {
        return None;
    }
    let end = text.trim_end().len();
    // Preferably between two words, because blocks of a message sent in mid-turn are joined with a line break.
    let last_word =
        text[..end].char_indices().rev().find(|(_, c)| c.is_whitespace()).map(|(at, c)| at + c.len_utf8());
    if let Some(at) = last_word.filter(|&at| !text[at..].contains('@') && !text[at..].starts_with('/')) {
        return Some(at);
    }
    // Otherwise inside the word, after the special character.
    let special = text[..end].rfind('@').map_or(last_word.unwrap_or(0), |at| at + 1);
    let at = end - text[special..end].trim_start_matches('/').len();
    if at < end {
        return Some(at);
    }
    // The text ends in `@` or `/`, which alone is neither a path nor a command. The API rejects a blank block.
    text[..end].char_indices().next_back().map(|(at, _)| at).filter(|&at| !text[..at].trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(text: &str) -> Vec<String> {
        let line: Value = serde_json::from_str(&user_message("u", text, None)).unwrap();
        match &line["message"]["content"] {
            Value::String(text) => vec![text.clone()],
            blocks => {
                blocks.as_array().unwrap().iter().map(|b| b["text"].as_str().unwrap().to_owned()).collect()
            }
        }
    }

    #[test]
    fn every_message_is_one_line_with_a_prefix_that_the_keeper_recognises() {
        let nasty = "a\nb\r\n\"\\\u{2028}\0é";
        let deny = PermissionResult::Deny { message: nasty.into(), interrupt: true };
        let lines = [
            initialize(nasty, &Map::new()),
            user_message(nasty, nasty, None),
            user_message(nasty, &format!("@x {nasty}"), Version::parse("2.1.263")),
            interrupt(nasty),
            mcp_status(nasty),
            set_permission_mode(nasty, nasty),
            reply_error(nasty, nasty),
            reply_gate(nasty, &GateAnswer::NoOpinion),
            reply_gate(nasty, &GateAnswer::Deny { reason: nasty.into() }),
            reply_permission(nasty, &deny),
        ];
        for line in lines {
            assert!(line.starts_with(r#"{"type":"#), "{line}");
            assert!(!line.contains(['\n', '\r']), "{line}");
            assert!(serde_json::from_str::<Value>(&line).is_ok());
        }
    }

    #[test]
    fn the_gate_applies_to_every_tool() {
        let expected = r#"{"type":"control_request","request_id":"i","request":{"subtype":"initialize","hooks":{"PreToolUse":[{"hookCallbackIds":["plexus_gate"],"timeout":2147483}]}}}"#;
        assert_eq!(initialize("i", &Map::new()), expected);
    }

    #[test]
    fn every_gate_answer_is_a_success_with_a_valid_decision() {
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
