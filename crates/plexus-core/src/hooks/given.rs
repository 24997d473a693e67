//! Checks the hooks that a caller of `claudecode.create` gives. An error says what to change; a hook that would not run, or that would
//! answer approvals, is never accepted.

use plexus_claude::HookEvent;
use plexus_protocol::claudecode::{HookCommand, Hooks};
use plexus_protocol::{Error, ErrorKind, Principal};

use super::matcher::Matcher;
use super::run::MAX_TIMEOUT_SECS;

/// The maximum number of commands of a session.
const MAX_COMMANDS: usize = 32;
/// The maximum length of a command, in bytes.
const MAX_COMMAND_BYTES: usize = 16 * 1024;

/// Accepts hooks of the operator; `None` if they contain no command.
pub(crate) fn check(by: &Principal, given: Option<Hooks>) -> Result<Option<Hooks>, Error> {
    let Some(hooks) = given else { return Ok(None) };
    if *by != Principal::Operator {
        let message =
            "only the operator can give a session hooks, because their commands run without an approval";
        return Err(Error::new(ErrorKind::Forbidden, message).with("field", "hooks"));
    }
    let mut commands = 0;
    for (name, groups) in &hooks.0 {
        let field = format!("hooks.{name}");
        let event = HookEvent::named(name).ok_or_else(|| Error::invalid(&field, unsupported(name)))?;
        for group in groups {
            let matcher = group.matcher.as_deref();
            let parsed = Matcher::parse(matcher).map_err(|error| {
                let shown = matcher.unwrap_or_default();
                Error::invalid(
                    &field,
                    format!("the matcher `{shown}` is not a valid regular expression: {error}"),
                )
            })?;
            let has_subject = !matches!(event, HookEvent::UserPromptSubmit | HookEvent::Stop);
            if !has_subject && !matches!(parsed, Matcher::All) {
                let why = format!("{name} is not about a tool, so it has no matcher; remove the matcher");
                return Err(Error::invalid(&field, why));
            }
            for command in &group.hooks {
                commands += 1;
                check_command(command).map_err(|why| Error::invalid(&field, why))?;
            }
        }
    }
    if commands > MAX_COMMANDS {
        let why = format!("a session can have at most {MAX_COMMANDS} commands; this one has {commands}");
        return Err(Error::invalid("hooks", why));
    }
    Ok((commands > 0).then_some(hooks))
}

fn check_command(command: &HookCommand) -> Result<(), String> {
    let HookCommand { command, timeout, .. } = command;
    if command.trim().is_empty() || command.contains('\0') {
        return Err("a command is empty or contains a NUL character".to_owned());
    }
    if command.len() > MAX_COMMAND_BYTES {
        return Err(format!("a command is longer than {MAX_COMMAND_BYTES} bytes; put it in a script"));
    }
    match timeout {
        Some(secs) if !(1..=MAX_TIMEOUT_SECS).contains(secs) => {
            Err(format!("the timeout of `{command}` must be between 1 and {MAX_TIMEOUT_SECS} seconds"))
        }
        _ => Ok(()),
    }
}

fn unsupported(name: &str) -> String {
    let why = match name {
        "PermissionRequest" => {
            "a PermissionRequest hook would answer approvals, which only people and agents decide; to deny calls, use PreToolUse"
        }
        "SessionStart" | "Setup" => {
            "Claude Code runs hooks for this event before the hub can register them; use UserPromptSubmit, or `append_system_prompt`"
        }
        _ => "Plexus does not run hooks for this event",
    };
    let events: Vec<&str> = HookEvent::ALL.into_iter().map(HookEvent::as_str).collect();
    format!("{why}. Supported events: {}", events.join(", "))
}

#[cfg(test)]
mod tests {
    use plexus_protocol::SessionId;
    use serde_json::{Value, json};

    use super::*;

    fn hooks(value: Value) -> Option<Hooks> {
        Some(serde_json::from_value(value).expect("hooks"))
    }

    fn command(event: &str) -> Option<Hooks> {
        hooks(json!({event: [{"hooks": [{"type": "command", "command": "true"}]}]}))
    }

    #[test]
    fn hooks_of_the_operator_are_accepted() {
        for event in HookEvent::ALL {
            let given = command(event.as_str());
            assert_eq!(check(&Principal::Operator, given.clone()).expect("accepted"), given);
        }
        assert_eq!(check(&Principal::Operator, None).expect("accepted"), None);
        assert_eq!(check(&Principal::Operator, hooks(json!({"Stop": []}))).expect("accepted"), None);
    }

    #[test]
    fn hooks_of_an_agent_are_refused() {
        let agent = Principal::Session { id: SessionId::random(), run: 1 };
        let error = check(&agent, command("Stop")).expect_err("refused");
        assert_eq!(error.kind, ErrorKind::Forbidden);
        // Even if they contain no command: an agent has no reason to pass the parameter.
        assert!(check(&agent, hooks(json!({}))).is_err());
    }

    #[test]
    fn an_unsupported_event_is_refused_with_the_reason_and_the_alternatives() {
        for (event, reason) in [
            ("PermissionRequest", "answer approvals"),
            ("SessionStart", "before the hub can register"),
            ("Elicitation", "does not run"),
            ("preToolUse", "does not run"),
        ] {
            let error = check(&Principal::Operator, command(event)).expect_err("refused").to_string();
            assert!(error.contains(reason) && error.contains("UserPromptSubmit, Stop"), "{error}");
        }
    }

    #[test]
    fn a_hook_that_could_not_run_is_refused() {
        let run = |hook: Value| json!([{"hooks": [hook]}]);
        for given in [
            json!({"PreToolUse": [{"matcher": "Ba(sh", "hooks": []}]}),
            json!({"Stop": [{"matcher": "Bash", "hooks": []}]}),
            json!({"Stop": run(json!({"type": "command", "command": " "}))}),
            json!({"Stop": run(json!({"type": "command", "command": "a\0b"}))}),
            json!({"Stop": run(json!({"type": "command", "command": "a", "timeout": 0}))}),
            json!({"Stop": run(json!({"type": "command", "command": "a", "timeout": 601}))}),
            json!({"Stop": run(json!({"type": "command", "command": "a".repeat(20_000)}))}),
            json!({"Stop": [{"hooks": vec![json!({"type": "command", "command": "a"}); 33]}]}),
        ] {
            assert!(check(&Principal::Operator, hooks(given.clone())).is_err(), "{given}");
        }
    }
}
