//! Encodes the hub's messages to a child's stdin, one per line.
//!
//! Every function returns one line without its newline. It starts with `{"type":`, which distinguishes it from commands
//! to the keeper. Callers send each line once and in order.

use serde_json::{Map, Value, json};

use crate::{HookEvent, PermissionResult, Version};

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

/// The contents of the first message to a process.
#[derive(Debug, Clone, Copy)]
pub struct Initialize<'a> {
    /// Whether the process calls the hub before every tool.
    pub gate: Gate,
    /// The events for which the process calls the user's hooks.
    pub hooks: &'a [HookEvent],
    /// Additional agents, by name.
    pub agents: &'a Map<String, Value>,
    /// The system prompt of a resumed conversation.
    pub system_prompt: ResumedSystemPrompt,
}

/// Whether a process calls the hub before every tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// It calls the hub.
    Callback,
    /// The operator has disabled the gate.
    Disabled,
}

/// The system prompt of a resumed conversation. Newer versions of Claude Code record the first one in the transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumedSystemPrompt {
    /// The recorded one, if the version records it.
    Recorded,
    /// The one of this process.
    Own,
}

impl Initialize<'_> {
    /// The first message to a process.
    pub fn line(self, request_id: &str) -> String {
        let mut body = json!({"subtype": "initialize"});
        // An omitted matcher matches every tool.
        let callback = |id: &str| json!({"hookCallbackIds": [id], "timeout": GATE_TIMEOUT_SECS});
        let mut hooks = Map::new();
        if self.gate == Gate::Callback {
            hooks.insert("PreToolUse".to_owned(), json!([callback(GATE_CALLBACK)]));
        }
        for event in self.hooks {
            let matchers = hooks.entry(event.as_str()).or_insert_with(|| json!([]));
            if let Value::Array(matchers) = matchers {
                matchers.push(callback(event.callback()));
            }
        }
        if !hooks.is_empty() {
            body["hooks"] = Value::Object(hooks);
        }
        if !self.agents.is_empty() {
            body["agents"] = Value::Object(self.agents.clone());
        }
        if self.system_prompt == ResumedSystemPrompt::Own {
            body["systemPromptSnapshot"] = json!(false);
        }
        request(request_id, body)
    }
}

/// A file of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttachedFile<'a> {
    /// Its name, which the model receives as text before the file.
    pub name: &'a str,
    /// Its contents.
    pub contents: FileContents<'a>,
}

/// The contents of a file of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileContents<'a> {
    /// An image, in base64.
    Image {
        /// Its type, such as `image/png`.
        media_type: &'a str,
        /// The base64.
        data: &'a str,
    },
    /// A PDF document, in base64. Claude Code drops it from a message that it receives during a turn.
    Pdf(&'a str),
    /// Text.
    Text(&'a str),
}

/// A prompt with its `uuid`, sent literally: Claude Code reads no `@path` and runs no `/command` in it.
///
/// Claude Code examines only the last text block. A prompt that contains a path or command is therefore sent as two blocks, of which
/// the last contains neither. Files precede the prompt, so neither their names nor their texts are examined. `client_composed` requests
/// the same from newer versions, except from those that then leave out the instructions of plan mode. A process whose version is
/// unknown may be one of them.
pub fn user_message(uuid: &str, text: &str, files: &[AttachedFile<'_>], version: Option<Version>) -> String {
    let content = match (harmless_tail(text), files) {
        (None, []) => json!(text),
        (tail, files) => {
            let (head, tail) = text.split_at(tail.unwrap_or(0));
            let mut blocks: Vec<Value> = files.iter().flat_map(file_blocks).collect();
            blocks.extend([head, tail].into_iter().filter(|part| !part.is_empty()).map(text_block));
            Value::Array(blocks)
        }
    };
    let mut line = user_line(uuid, content);
    if version.is_some_and(|version| !version.drops_instructions_of_composed_prompts()) {
        line["client_composed"] = json!(true);
    }
    line.to_string()
}

/// A prompt with its `uuid`. Claude Code reads the files that the prompt names as `@path`, but examines no attached file.
pub fn user_message_expanded(uuid: &str, text: &str, files: &[AttachedFile<'_>]) -> String {
    let content = match files {
        [] => json!(text),
        files => files.iter().flat_map(file_blocks).chain([text_block(text)]).collect(),
    };
    user_line(uuid, content).to_string()
}

/// One of Claude Code's own commands, such as `/compact`, with its `uuid`. Only a process that was started with commands runs it.
pub fn command(uuid: &str, command: &str) -> String {
    user_line(uuid, json!(command)).to_string()
}

fn user_line(uuid: &str, content: Value) -> Value {
    json!({
        "type": "user",
        "uuid": uuid,
        "message": {"role": "user", "content": content},
        "parent_tool_use_id": null,
        "session_id": "",
    })
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// The blocks of a file. A text says its name, because the API has no name for an image.
fn file_blocks(file: &AttachedFile<'_>) -> Vec<Value> {
    let name = file.name;
    match file.contents {
        FileContents::Image { media_type, data } => {
            let source = json!({"type": "base64", "media_type": media_type, "data": data});
            vec![text_block(&format!("Image {name}:")), json!({"type": "image", "source": source})]
        }
        FileContents::Pdf(data) => {
            let source = json!({"type": "base64", "media_type": "application/pdf", "data": data});
            vec![text_block(&format!("Document {name}:")), json!({"type": "document", "source": source})]
        }
        FileContents::Text(text) => vec![text_block(&format!("File {name}:\n\n{text}"))],
    }
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

/// Requests the total cost of the process, as a text for people.
pub fn get_session_cost(request_id: &str) -> String {
    request(request_id, json!({"subtype": "get_session_cost"}))
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

pub(crate) fn reply(request_id: &str, response: Value) -> String {
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

    fn gated(system_prompt: ResumedSystemPrompt, id: &str) -> String {
        Initialize { gate: Gate::Callback, hooks: &[], agents: &Map::new(), system_prompt }.line(id)
    }

    fn blocks(text: &str) -> Vec<String> {
        let line: Value = serde_json::from_str(&user_message("u", text, &[], None)).unwrap();
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
            gated(ResumedSystemPrompt::Recorded, nasty),
            user_message(nasty, nasty, &[], None),
            user_message(nasty, &format!("@x {nasty}"), &[], Version::parse("2.1.263")),
            user_message(
                nasty,
                nasty,
                &[AttachedFile { name: nasty, contents: FileContents::Text(nasty) }],
                None,
            ),
            command(nasty, nasty),
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
        assert_eq!(gated(ResumedSystemPrompt::Recorded, "i"), expected);
        let own: Value = serde_json::from_str(&gated(ResumedSystemPrompt::Own, "i")).unwrap();
        assert_eq!(own["request"]["systemPromptSnapshot"], false);
        let agents = &Map::new();
        let system_prompt = ResumedSystemPrompt::Recorded;
        let ungated = Initialize { gate: Gate::Disabled, hooks: &[], agents, system_prompt };
        assert!(!ungated.line("i").contains("hooks"));
    }

    #[test]
    fn the_gate_stays_the_first_callback_beside_the_users_hooks() {
        let hooks = &[HookEvent::PreToolUse, HookEvent::Stop];
        let system_prompt = ResumedSystemPrompt::Recorded;
        let both = Initialize { gate: Gate::Callback, hooks, agents: &Map::new(), system_prompt };
        let line: Value = serde_json::from_str(&both.line("i")).unwrap();
        let ids = |event: &str| -> Vec<String> {
            let matchers = line["request"]["hooks"][event].as_array().unwrap().iter();
            matchers.map(|matcher| matcher["hookCallbackIds"][0].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(ids("PreToolUse"), ["plexus_gate", "plexus_hook_PreToolUse"]);
        assert_eq!(ids("Stop"), ["plexus_hook_Stop"]);
        assert!(line["request"]["hooks"]["PreToolUse"][0].get("matcher").is_none());
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
    fn files_precede_the_prompt_so_that_claude_code_examines_only_the_prompt() {
        let files = [
            AttachedFile {
                name: "a.png",
                contents: FileContents::Image { media_type: "image/png", data: "AA==" },
            },
            AttachedFile { name: "@b.pdf", contents: FileContents::Pdf("BB==") },
            AttachedFile { name: "c.md", contents: FileContents::Text("/compact @/etc/passwd") },
        ];
        let content = |line: &str| serde_json::from_str::<Value>(line).unwrap()["message"]["content"].take();
        let files_only = json!([
            {"type": "text", "text": "Image a.png:"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
            {"type": "text", "text": "Document @b.pdf:"},
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "BB=="}},
            {"type": "text", "text": "File c.md:\n\n/compact @/etc/passwd"},
        ]);
        for (text, tail) in [("look", vec!["look"]), ("look at @x", vec!["look at @", "x"])] {
            let mut expected = files_only.as_array().unwrap().clone();
            expected.extend(tail.into_iter().map(text_block));
            assert_eq!(content(&user_message("u", text, &files, None)), Value::Array(expected));
        }
        let expanded = content(&user_message_expanded("u", "look at @x", &files));
        assert_eq!(expanded.as_array().unwrap().last(), Some(&text_block("look at @x")));
        assert_eq!(content(&command("u", "/compact keep it")), "/compact keep it");
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
