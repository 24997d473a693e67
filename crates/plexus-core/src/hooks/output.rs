//! Interprets the exit code and the output of a hook's command, in Claude Code's format. The answer is built from the hub's own
//! types; no output is passed on unchanged. Output that would allow a call is ignored, output that would change one denies it,
//! and unreadable output is a failure.

use plexus_claude::{HookAnswer, HookDecision, HookEvent};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::processes::sandboxed_command::{CommandEnd, EndedCommand};

/// The maximum output of a command on stdout, in bytes. A command that writes more blocks until its time limit.
pub(super) const MAX_STDOUT: u64 = 256 * 1024;
/// The longest reason that is stored and sent to the model.
const MAX_REASON_BYTES: usize = 4 * 1024;

/// The answer of all commands to a callback.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HookOutcome {
    pub(crate) answer: HookAnswer,
    /// The command that gave the decision.
    pub(crate) decided_by: Option<String>,
    /// The commands that failed, and why.
    pub(crate) failures: Vec<HookFailure>,
}

/// A command that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HookFailure {
    pub(crate) command: String,
    pub(crate) why: String,
}

impl HookOutcome {
    /// The outcome of hooks that could not be run.
    pub(crate) fn of_failure(event: HookEvent, command: &str, why: String) -> Self {
        let mut outcome = Self::default();
        outcome.add(event, command, Err(why));
        outcome
    }

    /// Adds the answer of one command, or why it failed. The strictest decision counts, and of two equal ones the first.
    pub(super) fn add(&mut self, event: HookEvent, command: &str, answer: Result<HookAnswer, String>) {
        let HookAnswer { decision, context } = answer.unwrap_or_else(|why| {
            let failure = HookFailure { command: command.to_owned(), why: why.clone() };
            self.failures.push(failure);
            HookAnswer::of_failure(event, format!("The hook `{command}` failed, so this is denied: {why}"))
        });
        if strictness(decision.as_ref()) > strictness(self.answer.decision.as_ref()) {
            self.answer.decision = decision;
            self.decided_by = Some(command.to_owned());
        }
        self.answer.context = match (self.answer.context.take(), context) {
            (Some(first), Some(second)) => Some(format!("{first}\n{second}")),
            (first, second) => first.or(second),
        };
    }
}

fn strictness(decision: Option<&HookDecision>) -> u8 {
    match decision {
        None => 0,
        Some(HookDecision::Ask { .. }) => 1,
        Some(HookDecision::Block { .. }) => 2,
        Some(HookDecision::Stop { .. }) => 3,
    }
}

/// The answer of a command, or why it failed.
pub(super) fn read(event: HookEvent, ended: &EndedCommand) -> Result<HookAnswer, String> {
    let code = match &ended.how {
        CommandEnd::Exited(code) => *code,
        CommandEnd::Signalled(signal) => return Err(format!("signal {signal} killed it")),
        CommandEnd::NotStarted(error) => return Err(format!("it could not be started: {error}")),
        CommandEnd::Unknown => return Err("its keeper was killed, and its exit status is unknown".to_owned()),
        CommandEnd::TimedOut => {
            return Err(format!(
                "it exceeded its time limit, or wrote more than {} KiB to stdout",
                MAX_STDOUT / 1024
            ));
        }
        CommandEnd::Cancelled | CommandEnd::Closing => return Err("it was stopped".to_owned()),
    };
    match code {
        0 => read_stdout(event, &ended.stdout),
        2 => {
            let stderr = ended.last_lines.join("\n");
            let reason = if stderr.trim().is_empty() { "exit code 2, without a message" } else { &stderr };
            Ok(HookAnswer { decision: Some(HookDecision::Block { reason: short(reason) }), context: None })
        }
        code => {
            let stderr = short(&ended.last_lines.join("\n"));
            Err(format!("it exited with code {code} {stderr}").trim_end().to_owned())
        }
    }
}

/// The fields of the output that the hub reads. All other fields are ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Output {
    r#continue: Option<bool>,
    stop_reason: Option<String>,
    decision: Option<String>,
    reason: Option<String>,
    r#async: Option<bool>,
    /// A map, because a struct could also be read from a list.
    hook_specific_output: Option<Map<String, Value>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SpecificOutput {
    hook_event_name: Option<String>,
    permission_decision: Option<String>,
    permission_decision_reason: Option<String>,
    additional_context: Option<String>,
    updated_input: Option<Value>,
}

fn read_stdout(event: HookEvent, stdout: &[u8]) -> Result<HookAnswer, String> {
    let text = std::str::from_utf8(stdout).map_err(|_| "its output is not UTF-8".to_owned())?.trim();
    if text.starts_with('{') {
        let output =
            serde_json::from_str(text).map_err(|error| format!("its output cannot be read: {error}"))?;
        return answer(event, output);
    }
    match event {
        // As in Claude Code, plain text is context for the model here.
        HookEvent::UserPromptSubmit if !text.is_empty() => {
            Ok(HookAnswer { decision: None, context: Some(text.to_owned()) })
        }
        // Text before an answer would hide the answer.
        HookEvent::PreToolUse if text.contains('{') => {
            Err("its output is neither a JSON object nor text without `{`; write other output to stderr"
                .to_owned())
        }
        _ => Ok(HookAnswer::default()),
    }
}

fn answer(event: HookEvent, output: Output) -> Result<HookAnswer, String> {
    let specific = Value::Object(output.hook_specific_output.unwrap_or_default());
    let specific: SpecificOutput = serde_json::from_value(specific)
        .map_err(|error| format!("its hookSpecificOutput cannot be read: {error}"))?;
    if let Some(name) = specific.hook_event_name.filter(|name| name != event.as_str()) {
        return Err(format!("it answered for the event `{}` instead of {}", short(&name), event.as_str()));
    }
    if output.r#async == Some(true) {
        return Err("`async` is not supported".to_owned());
    }
    let context = specific.additional_context.filter(|context| !context.trim().is_empty());
    let reason = |given: Option<String>, otherwise: &str| match given {
        Some(given) if !given.trim().is_empty() => short(&given),
        _ => otherwise.to_owned(),
    };
    const NO_REASON: &str = "The hook gave no reason.";
    if output.r#continue == Some(false) {
        let reason = reason(output.stop_reason.or(output.reason), NO_REASON);
        return Ok(HookAnswer { decision: Some(HookDecision::Stop { reason }), context });
    }
    if event == HookEvent::PreToolUse && specific.updated_input.is_some_and(|input| !input.is_null()) {
        let reason = "The hook tried to change the input of the call. A call runs only as it was shown, so it is denied.";
        return Ok(HookAnswer { decision: Some(HookDecision::Block { reason: reason.to_owned() }), context });
    }
    let permission = specific.permission_decision.filter(|_| event == HookEvent::PreToolUse);
    let of_call = match permission.as_deref() {
        None | Some("allow") => None,
        Some("deny") => {
            let reason = reason(specific.permission_decision_reason.or(output.reason.clone()), NO_REASON);
            Some(HookDecision::Block { reason })
        }
        Some("ask") => {
            let reason = reason(specific.permission_decision_reason.or(output.reason.clone()), NO_REASON);
            Some(HookDecision::Ask { reason })
        }
        Some(other) => return Err(format!("the decision `{}` is not supported", short(other))),
    };
    let general = match output.decision.as_deref() {
        None | Some("approve" | "allow") => None,
        Some("block" | "deny") => Some(HookDecision::Block { reason: reason(output.reason, NO_REASON) }),
        Some("ask") if event == HookEvent::PreToolUse => {
            Some(HookDecision::Ask { reason: reason(output.reason, NO_REASON) })
        }
        Some(other) => return Err(format!("the decision `{}` is not supported", short(other))),
    };
    let stricter = |a: Option<HookDecision>, b: Option<HookDecision>| {
        if strictness(b.as_ref()) > strictness(a.as_ref()) { b } else { a }
    };
    Ok(HookAnswer { decision: stricter(of_call, general), context })
}

fn short(text: &str) -> String {
    let text = text.trim();
    let end = text.floor_char_boundary(MAX_REASON_BYTES);
    if end < text.len() { format!("{}…", &text[..end]) } else { text.to_owned() }
}

#[cfg(test)]
mod tests;
