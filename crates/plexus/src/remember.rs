//! Suggests a rule for "always": the one from Claude Code, or a rule for exactly this call. A rule that does not match the call is not
//! suggested; Claude Code suggests `Bash(make:*)` even for a call whose options `:*` does not match. The hub checks a typed rule
//! before it is sent with an answer.

use std::path::Path;

use plexus_policy::{Call, RuleEffect, RuleEntry, covers};
use plexus_protocol::policy::PreviewResult;
use plexus_protocol::{Approval, ApprovalId};
use serde_json::{Value, json};

use crate::error::ExpectedError;
use crate::escape::exact;
use crate::hub::HubClient;
use crate::terminal::one_line;

/// The rule to suggest for this approval; `None` if the user has to write it.
pub(crate) fn suggested(approval: &Approval) -> Option<String> {
    let offers = [from_claude(approval), exactly(approval)];
    offers.into_iter().flatten().find(|rule| matches_call(rule, approval))
}

/// Asks the hub whether this rule matches the call of this approval. If it does not, that is an error, and the rule must not be sent
/// with an answer. Returns the other open approvals that the rule would allow.
pub(crate) async fn check(
    hub: &HubClient,
    id: ApprovalId,
    rule: &str,
) -> Result<Vec<ApprovalId>, ExpectedError> {
    let asked = json!({"approval_id": id, "rule": rule});
    match hub.call_with_timeout("policy.preview", asked).await? {
        PreviewResult::Ok { covers: true, settles: others, .. } => Ok(others),
        // The answer to a resolved approval has no effect; the hub then reports who was first.
        PreviewResult::AlreadyResolved { .. } => Ok(Vec::new()),
        PreviewResult::Ok { .. } => {
            let rule = one_line(&exact(rule), 200);
            Err(ExpectedError::Refused(format!("`{rule}` does not match this call; nothing was answered")))
        }
    }
}

/// As [`check`], but also fails if the rule would allow other open calls, because they cannot be shown here.
pub(crate) async fn check_alone(hub: &HubClient, id: ApprovalId, rule: &str) -> Result<(), ExpectedError> {
    let others = check(hub, id, rule).await?;
    let Some(other) = others.first() else { return Ok(()) };
    let (rule, count) = (one_line(&exact(rule), 200), others.len());
    let calls = if count == 1 { "another open call".to_owned() } else { format!("{count} other open calls") };
    Err(ExpectedError::Refused(format!(
        "`{rule}` would also allow {calls}, such as {other}; nothing was answered. Answer {} first, or use `plexus approve {id} \
         --always RULE` in a terminal, which shows {}",
        if count == 1 { "it" } else { "them" },
        if count == 1 { "it" } else { "them" },
    )))
}

/// Whether the rule matches the call. Only commands are checked here; the hub resolves paths.
fn matches_call(rule: &str, approval: &Approval) -> bool {
    if !matches!(approval.tool_name.as_str(), "Bash" | "Monitor") {
        return true;
    }
    let input = Value::Object(approval.input.clone());
    let (tool_name, cwd) = (approval.tool_name.as_str(), Path::new(&approval.cwd));
    let call = Call { tool_name, input: &input, cwd, home: None, now: 0 };
    RuleEntry::parse(rule, RuleEffect::Allow).is_ok_and(|entry| covers(&entry, &call).unwrap_or(false))
}

fn from_claude(approval: &Approval) -> Option<String> {
    let suggestions = approval.suggestions.as_ref()?;
    let adds =
        suggestions.as_array()?.iter().find(|one| one["type"] == "addRules" && one["behavior"] == "allow")?;
    // An answer can add one rule only.
    let [rule] = adds["rules"].as_array()?.as_slice() else { return None };
    let tool = rule["toolName"].as_str()?;
    // Claude Code suggests a rule for Bash for other tools that run commands; such a rule would not match this call.
    if tool == "Bash" && approval.tool_name != tool {
        return None;
    }
    Some(match rule["ruleContent"].as_str() {
        Some(content) => format!("{tool}({content})"),
        None => tool.to_owned(),
    })
}

fn exactly(approval: &Approval) -> Option<String> {
    let tool = approval.tool_name.as_str();
    let given = |key: &str| approval.input.get(key).and_then(Value::as_str);
    // Text with special characters of the rule syntax is left for the user to write.
    let plain = |text: &str| !text.is_empty() && !text.contains(['*', '(', ')', '\\', '\n', ':', '"', '\'']);
    match tool {
        "Bash" | "Monitor" => {
            given("command").filter(|command| plain(command)).map(|command| format!("{tool}({command})"))
        }
        "Edit" | "Write" | "MultiEdit" => {
            let path = given("file_path").filter(|path| plain(path))?;
            Some(if path.starts_with('/') { format!("Edit(/{path})") } else { format!("Edit({path})") })
        }
        _ if tool.starts_with("mcp__") => Some(tool.to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn approval(tool: &str, input: Value, suggestions: Value) -> Approval {
        let id = "0b5c0000-0000-4000-8000-000000000000";
        serde_json::from_value(json!({
            "id": id, "session_id": id, "session_name": "a", "kind": "tool", "tool_name": tool, "tool_use_id": "t",
            "input": input, "status": "pending", "created_at": 0, "asked_of": {"kind": "operator"}, "cwd": "/",
            "suggestions": suggestions,
        }))
        .unwrap()
    }

    #[test]
    fn claude_codes_own_suggestion_comes_first() {
        let suggestions = json!([
            {"type": "setMode", "mode": "acceptEdits"},
            {"type": "addRules", "behavior": "allow", "rules": [{"toolName": "Bash", "ruleContent": "touch:*"}]},
        ]);
        let watched = approval("Monitor", json!({"command": "touch a"}), suggestions.clone());
        assert_eq!(suggested(&watched).as_deref(), Some("Monitor(touch a)"));
        let asked = approval("Bash", json!({"command": "touch a"}), suggestions);
        assert_eq!(suggested(&asked).as_deref(), Some("Bash(touch:*)"));
    }

    #[test]
    fn a_rule_is_suggested_only_if_it_matches_the_call() {
        let rule = |command: &str, content: &str| {
            let suggestions = json!([
                {"type": "addRules", "behavior": "allow", "rules": [{"toolName": "Bash", "ruleContent": content}]},
            ]);
            suggested(&approval("Bash", json!({"command": command}), suggestions))
        };
        assert_eq!(rule("make test", "make:*").as_deref(), Some("Bash(make:*)"));
        assert_eq!(rule("make -C x test", "make:*").as_deref(), Some("Bash(make -C x test)"));
        assert_eq!(rule("sort -o a b", "sort:*").as_deref(), Some("Bash(sort -o a b)"));
        assert_eq!(rule("mytool --flag a", "mytool:*").as_deref(), Some("Bash(mytool --flag a)"));
        assert_eq!(rule("mytool --flag a", "mytool --flag:*").as_deref(), Some("Bash(mytool --flag:*)"));
        assert_eq!(rule("ls && rm a", "ls:*"), None, "no single rule covers two commands");
    }

    #[test]
    fn without_a_suggestion_the_rule_is_exactly_the_call() {
        let rule = |tool, input| suggested(&approval(tool, input, Value::Null));
        assert_eq!(rule("Bash", json!({"command": "touch a"})).as_deref(), Some("Bash(touch a)"));
        assert_eq!(rule("Bash", json!({"command": "rm *"})), None);
        assert_eq!(rule("Monitor", json!({"command": "tail -f a"})).as_deref(), Some("Monitor(tail -f a)"));
        assert_eq!(rule("PowerShell", json!({"command": "ls"})), None);
        assert_eq!(rule("Write", json!({"file_path": "/a/b"})).as_deref(), Some("Edit(//a/b)"));
        assert_eq!(rule("mcp__github__get", json!({})).as_deref(), Some("mcp__github__get"));
        assert_eq!(rule("Other", json!({})), None);
    }
}
