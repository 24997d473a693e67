//! Explains events of Claude Code to the user: problems with the model (a rejected login, a rate limit, a retry), compactions, and what the
//! hooks of a session decided. The text says whether the user has to act; Claude Code retries on its own.

use serde_json::Value;

use crate::terminal::one_line;

const LOGIN: &str =
    "Run `claude` and log in with /login, or set ANTHROPIC_API_KEY for the hub and the session.";

/// The line about a system event of a session, if it is about the model, its context or a hook.
pub(crate) fn notice(event: &Value) -> Option<String> {
    let data = &event["data"];
    match event["subtype"].as_str()? {
        "api_retry" => Some(retry(data)),
        "rate_limit_event" if data["rate_limit_info"]["status"] == "rejected" => {
            Some("The rate limit of your account is reached. The agent waits until it resets.".to_owned())
        }
        "stalled" => {
            let secs = data["quiet_secs"].as_f64().unwrap_or_default();
            Some(format!("The model has sent nothing for {secs:.0} s. Ctrl-C interrupts the turn."))
        }
        "hook" => Some(hook(data)),
        "status" if data["status"] == "compacting" => Some("Compacting the conversation…".to_owned()),
        "status" if data["compact_result"] == "failed" => {
            let why = data["compact_error"].as_str().unwrap_or("no reason was given");
            Some(format!("The conversation was not compacted: {}", one_line(why, 200)))
        }
        "compact_boundary" => {
            let tokens = |name: &str| data["compact_metadata"][name].as_u64();
            let change = match (tokens("pre_tokens"), tokens("post_tokens")) {
                (Some(before), Some(after)) => format!(" from {before} to {after} tokens"),
                _ => String::new(),
            };
            Some(format!("The conversation was compacted{change}. The agent continues with a summary of it."))
        }
        _ => None,
    }
}

/// What to do about the error message of a turn, if it is about the model.
pub(crate) fn advice(message: &str) -> Option<&'static str> {
    let message = message.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| message.contains(word));
    if has(&["401", "authentication", "invalid api key", "/login", "oauth token"]) {
        Some(LOGIN)
    } else if has(&["credit balance", "billing"]) {
        Some("The account has no credit. Add credit, then send the prompt again.")
    } else if has(&["429", "rate limit", "529", "overloaded"]) {
        Some("Wait a moment, then send the prompt again.")
    } else if has(&["connection error", "econnrefused", "enotfound", "etimedout"]) {
        Some("Check the network connection, the proxy settings and ANTHROPIC_BASE_URL.")
    } else {
        None
    }
}

fn hook(data: &Value) -> String {
    let text = |name: &str| one_line(data[name].as_str().unwrap_or_default(), 200);
    let about = match (text("event").as_str(), text("tool_name").as_str()) {
        ("UserPromptSubmit", _) => "the prompt".to_owned(),
        ("Stop", _) => "the end of the turn".to_owned(),
        ("SubagentStop", _) => "the end of a sub-agent".to_owned(),
        ("PostToolUse", tool) => format!("the result of {tool}"),
        (_, tool) => tool.to_owned(),
    };
    let (status, reason) = (text("status"), text("reason"));
    match status.as_str() {
        "denied" => format!("A hook denied {about}: {reason}"),
        "asked" => format!("A hook requires approval of {about}: {reason}"),
        "blocked" => format!("A hook objects to {about}: {reason}"),
        "stopped" => format!("A hook stopped the turn at {about}: {reason}"),
        _ => format!("The hook `{}` failed for {about}: {reason}", text("command")),
    }
}

fn retry(data: &Value) -> String {
    let status = data["error_status"].as_u64();
    let kind = data["error"].as_str().unwrap_or_default();
    let (problem, advice) = match (status, kind) {
        (Some(401 | 403), _) | (_, "authentication_failed") => {
            ("The model provider rejected the login", LOGIN)
        }
        (Some(402), _) | (_, "billing_error") => ("The account has no credit", "Add credit to the account."),
        (Some(429), _) | (_, "rate_limit") => ("Rate limit reached", ""),
        (Some(529), _) | (_, "overloaded") => ("The model is overloaded", ""),
        (Some(_), _) => ("The model request failed", ""),
        (None, _) => ("The model cannot be reached", "Check the network connection and ANTHROPIC_BASE_URL."),
    };
    let status = status.map(|status| format!(" (HTTP {status})")).unwrap_or_default();
    let number = |name: &str| data[name].as_u64();
    let attempt = match (number("attempt"), number("max_retries")) {
        (Some(attempt), Some(all)) => format!(" {attempt} of {all}"),
        (Some(attempt), None) => format!(" {attempt}"),
        _ => String::new(),
    };
    let delay = data["retry_delay_ms"].as_f64().map(|ms| format!(" in {:.0} s", (ms / 1000.0).max(1.0)));
    let text = format!("{problem}{status}. Retry{attempt}{}. {advice}", delay.unwrap_or_default());
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_retry_says_why_and_what_to_do() {
        let shown = |data: Value| notice(&json!({"subtype": "api_retry", "data": data})).unwrap();
        let overloaded = json!({"attempt": 2, "max_retries": 10, "retry_delay_ms": 4200.5, "error_status": 529, "error": "overloaded"});
        assert_eq!(shown(overloaded), "The model is overloaded (HTTP 529). Retry 2 of 10 in 4 s.");
        assert!(shown(json!({"error_status": 401})).ends_with("for the hub and the session."));
        assert!(
            shown(json!({"error_status": null, "error": "unknown"}))
                .starts_with("The model cannot be reached. Retry. Check")
        );
        assert_eq!(notice(&json!({"subtype": "init", "data": {}})), None);
    }

    #[test]
    fn a_hook_says_what_it_decided_and_why() {
        let shown = |data: Value| notice(&json!({"subtype": "hook", "data": data})).unwrap();
        let denied =
            json!({"event": "PreToolUse", "tool_name": "Bash", "status": "denied", "reason": "no\nrm"});
        assert_eq!(shown(denied), "A hook denied Bash: no⏎rm");
        let failed =
            json!({"event": "Stop", "status": "failed", "command": "x", "reason": "it exited with code 1"});
        assert_eq!(shown(failed), "The hook `x` failed for the end of the turn: it exited with code 1");
        let hostile = json!({"event": "PreToolUse", "tool_name": "\u{1b}[2J", "status": "denied", "reason": "\u{202e}"});
        assert!(!shown(hostile).contains(['\u{1b}', '\u{202e}']));
    }

    #[test]
    fn an_error_message_gets_fitting_advice() {
        assert_eq!(advice("API Error: 401 {\"type\":\"error\"}"), Some(LOGIN));
        assert_eq!(advice("Invalid API key · Please run /login"), Some(LOGIN));
        assert!(advice("API Error: 529 Overloaded").unwrap().starts_with("Wait"));
        assert_eq!(advice("the process ended"), None);
    }
}
