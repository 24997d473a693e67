//! Which rule to offer when a person says "always": what Claude Code suggests, or else exactly what was asked.

use plexus_protocol::Approval;
use serde_json::Value;

/// The rule to offer for this approval; `None` where it is better to have it written.
pub(crate) fn suggested(approval: &Approval) -> Option<String> {
    from_claude(approval).or_else(|| exactly(approval))
}

fn from_claude(approval: &Approval) -> Option<String> {
    let suggestions = approval.suggestions.as_ref()?;
    let adds =
        suggestions.as_array()?.iter().find(|one| one["type"] == "addRules" && one["behavior"] == "allow")?;
    // One rule is what can be remembered with an answer.
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
    // What means something in a rule is left for people to write.
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
    fn else_exactly_what_was_asked_where_that_can_be_written_down() {
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
