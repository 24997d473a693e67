//! One tool call: the PreToolUse callback, the permission request if one is needed, the tool itself, and its result.

use std::path::PathBuf;

use rustix::time::{ClockId, Timespec, clock_gettime};
use serde_json::{Map, Value, json};

use crate::host::{Answer, Unanswered};
use crate::launch::PromptSurface;
use crate::script::{Call, Conduct};
use crate::tools;
use crate::turn::{Stop, Turn, assistant};

const REJECTED: &str = "The user doesn't want to proceed with this tool use. The tool use was rejected.";

/// A call that may run: its input, when the request that allows it was sent, and when the answer was read.
pub(crate) struct Released {
    pub input: Map<String, Value>,
    pub requested_at: Timespec,
    pub at: Timespec,
}

impl Released {
    /// A call that needs no answer.
    fn now(input: Map<String, Value>) -> Self {
        let at = clock_gettime(ClockId::Monotonic);
        Self { input, requested_at: at, at }
    }
}

/// The answer of the gate.
enum Gate {
    Allow(Released),
    Ask,
    NoOpinion,
}

/// Why a call does not run.
enum Refusal {
    Denied(String),
    Interrupted(String),
    Impossible(String),
}

impl From<Unanswered> for Refusal {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::Interrupted => Self::Interrupted(REJECTED.to_owned()),
            other => Self::Denied(other.to_string()),
        }
    }
}

/// Sends the call through the gate, runs it if it is allowed, and writes its result.
pub(crate) fn perform(turn: &Turn<'_>, id: &str, call: &Call) -> Result<(), Stop> {
    let bypassed = || Ok("ran without a decision".to_owned());
    let output = match call.conduct {
        Conduct::SkipsGate => bypassed(),
        Conduct::IgnoresQuestion => match gate(turn, id, call) {
            Ok(_) => {
                turn.host.open_request(permission_request(id, call));
                bypassed()
            }
            Err(refusal) => return refused(turn, id, call, refusal),
        },
        Conduct::Obeys | Conduct::StopsWhenDenied | Conduct::IgnoresDenial => match decide(turn, id, call) {
            Ok(released) => tools::run(turn.host, id, &call.tool, &released),
            Err(Refusal::Denied(_)) if call.conduct == Conduct::IgnoresDenial => bypassed(),
            Err(refusal) => return refused(turn, id, call, refusal),
        },
    };
    write_result(turn, id, &output);
    if turn.host.is_interrupted() { Err(Stop::Interrupted) } else { Ok(()) }
}

fn decide(turn: &Turn<'_>, id: &str, call: &Call) -> Result<Released, Refusal> {
    if turn.host.is_interrupted() {
        return Err(Refusal::Interrupted(REJECTED.to_owned()));
    }
    match gate(turn, id, call)? {
        Gate::Allow(released) => Ok(released),
        // As Claude Code's permission rules do: reading runs, everything else needs permission.
        Gate::NoOpinion if call.tool == "Read" => Ok(Released::now(call.input.clone())),
        Gate::NoOpinion | Gate::Ask => ask(turn, id, call),
    }
}

fn gate(turn: &Turn<'_>, id: &str, call: &Call) -> Result<Gate, Refusal> {
    let host = turn.host;
    let mut gate = Gate::NoOpinion;
    for callback in host.callbacks() {
        let answer = host.ask(json!({
            "subtype":"hook_callback", "callback_id":callback, "tool_use_id":id,
            "input":{
                "session_id":host.launch.session_id, "transcript_path":"", "cwd":host.launch.cwd,
                "permission_mode":host.permission_mode(), "hook_event_name":"PreToolUse",
                "tool_name":call.tool, "tool_input":call.input, "tool_use_id":id
            }
        }));
        let Answer { response: answer, requested_at, at } = match answer {
            Ok(answer) => answer,
            // An error reply opens the gate. A hub must never send one.
            Err(Unanswered::Refused(_)) => return Ok(Gate::Allow(Released::now(call.input.clone()))),
            Err(unanswered) => return Err(unanswered.into()),
        };
        let output = &answer["hookSpecificOutput"];
        match output["permissionDecision"].as_str() {
            Some("deny") => {
                let reason =
                    output["permissionDecisionReason"].as_str().unwrap_or("denied by a PreToolUse hook");
                return Err(Refusal::Denied(reason.to_owned()));
            }
            Some("ask") => gate = Gate::Ask,
            None if answer.is_object() && output.is_null() => {}
            // `allow`, and every invalid answer.
            _ => {
                let input = output["updatedInput"].as_object().unwrap_or(&call.input).clone();
                gate = Gate::Allow(Released { input, requested_at, at });
            }
        }
    }
    Ok(gate)
}

fn ask(turn: &Turn<'_>, id: &str, call: &Call) -> Result<Released, Refusal> {
    let host = turn.host;
    match &host.launch.surface {
        PromptSurface::Stdio => {}
        PromptSurface::Nowhere if host.permission_mode() == "bypassPermissions" => {
            return Ok(Released::now(call.input.clone()));
        }
        PromptSurface::Nowhere => {
            let reason =
                format!("Claude requested permissions to use {}, but you haven't granted it yet.", call.tool);
            return Err(Refusal::Denied(reason));
        }
        PromptSurface::Mcp(tool) => {
            return Err(Refusal::Impossible(format!(
                "the scripted agent does not speak MCP and cannot ask {tool}"
            )));
        }
    }
    host.send_state("requires_action");
    let answer = host.ask(permission_request(id, call));
    host.send_state("running");
    let Answer { response: answer, requested_at, at } = answer?;
    match (answer["behavior"].as_str(), answer["updatedInput"].as_object(), answer["message"].as_str()) {
        (Some("allow"), Some(input), _) => {
            for mode in answer["updatedPermissions"].as_array().into_iter().flatten().filter_map(new_mode) {
                host.set_permission_mode(mode);
                host.send_permission_mode();
            }
            Ok(Released { input: input.clone(), requested_at, at })
        }
        // As strict as 2.1.197.
        (Some("allow"), None, _) => {
            Err(Refusal::Denied("invalid answer: allow without updatedInput".to_owned()))
        }
        (Some("deny"), _, Some(message)) if answer["interrupt"] == true => {
            host.interrupt();
            Err(Refusal::Interrupted(message.to_owned()))
        }
        (Some("deny"), _, Some(message)) => Err(Refusal::Denied(message.to_owned())),
        _ => Err(Refusal::Denied("invalid answer to can_use_tool".to_owned())),
    }
}

/// The mode that an approved plan continues in.
fn new_mode(update: &Value) -> Option<&str> {
    update["mode"].as_str().filter(|_| update["type"] == "setMode")
}

fn permission_request(id: &str, call: &Call) -> Value {
    let mut request = json!({
        "subtype":"can_use_tool", "tool_name":call.tool, "display_name":call.tool, "input":call.input,
        "tool_use_id":id, "permission_suggestions":[]
    });
    if let Some(reason) = &call.reason {
        request["decision_reason"] = json!(reason);
    }
    request
}

fn refused(turn: &Turn<'_>, id: &str, call: &Call, refusal: Refusal) -> Result<(), Stop> {
    let (reason, end) = match refusal {
        Refusal::Denied(reason) if call.conduct == Conduct::StopsWhenDenied => {
            (reason.clone(), Err(Stop::Denied(reason)))
        }
        Refusal::Denied(reason) => (reason, Ok(())),
        Refusal::Interrupted(reason) => (reason, Err(Stop::Interrupted)),
        Refusal::Impossible(reason) => (reason.clone(), Err(Stop::Failed(reason))),
    };
    turn.tally().denials.push(json!({"tool_name":call.tool,"tool_use_id":id,"tool_input":call.input}));
    write_result(turn, id, &Err(reason));
    end
}

fn write_result(turn: &Turn<'_>, id: &str, output: &tools::Output) {
    let (Ok(content) | Err(content)) = output;
    let block = json!({"type":"tool_result","tool_use_id":id,"content":content,"is_error":output.is_err()});
    let message = json!({"role":"user","content":[block]});
    turn.host.send_message(json!({"type":"user","message":message,"parent_tool_use_id":null}));
}

/// Sends a permission request and withdraws it, at once or when the file exists.
pub(crate) fn cancel_open(turn: &Turn<'_>, once: Option<PathBuf>) {
    let input = json!({"command":"true","description":"a question that is withdrawn"});
    let input = input.as_object().cloned().unwrap_or_default();
    let call = Call { tool: "Bash".to_owned(), input, id: None, reason: None, conduct: Conduct::Obeys };
    let id = turn.next_id();
    let block = json!({"type":"tool_use","id":id,"name":call.tool,"input":call.input});
    turn.host.send_message(assistant(&turn.next_message(), block));
    let reason = match gate(turn, &id, &call) {
        Ok(_) => {
            let request = turn.host.open_request(permission_request(&id, &call));
            if let Some(path) = once.map(|path| turn.host.launch.cwd.join(path)) {
                turn.host.wait_until(|| path.exists());
            }
            turn.host.withdraw(&request);
            "the question was withdrawn".to_owned()
        }
        Err(Refusal::Denied(reason) | Refusal::Interrupted(reason) | Refusal::Impossible(reason)) => reason,
    };
    write_result(turn, &id, &Err(reason));
}
