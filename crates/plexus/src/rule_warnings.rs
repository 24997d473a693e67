//! Warnings about a rule before it is added: it allows everything, or its tool is unknown. An unknown name may belong to a later version of
//! Claude Code, so it is not an error.

use plexus_policy::{RuleEntry, ToolClass, class_of, known_tools};

use crate::escape::exact;
use crate::suggest::closest;
use crate::terminal::one_line;

/// The warning about an allow rule; `None` if there is no reason for one.
pub(crate) fn warning(entry: &RuleEntry) -> Option<String> {
    let rule = entry.rule();
    let (tool, text) = (rule.tool(), rule.to_string());
    let shown = one_line(&exact(&text), 200);
    if tool == "*" {
        return Some(format!("`{shown}` allows everything: every call of every tool runs without asking"));
    }
    // Patterns are names of MCP tools; the hub checks that they name a server.
    if tool.starts_with("mcp__") || tool.contains('*') {
        return None;
    }
    match class_of(tool) {
        Some(ToolClass::Shell | ToolClass::Program(_)) if text == tool => Some(format!(
            "`{shown}` allows everything that {tool} can run: every command, without asking. A narrower rule is `{tool}(npm test:*)`"
        )),
        Some(_) => None,
        None => {
            let hint = match closest(tool, known_tools()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "tools of MCP servers are written mcp__SERVER__TOOL".to_owned(),
            };
            let versions = "no supported version of Claude Code has a tool of this name";
            Some(format!("`{shown}` may match nothing: {versions}; {hint}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plexus_policy::RuleEffect;

    fn warned(rule: &str) -> Option<String> {
        warning(&RuleEntry::parse(rule, RuleEffect::Allow).unwrap())
    }

    #[test]
    fn a_rule_that_allows_everything_is_named() {
        for rule in ["*", "Bash", "Bash(*)", "PowerShell"] {
            assert!(warned(rule).unwrap().contains("allows everything"), "{rule}");
        }
    }

    #[test]
    fn an_unknown_tool_gets_a_suggestion() {
        assert!(warned("Bsh").unwrap().ends_with("did you mean `Bash`?"));
        assert!(warned("edit").unwrap().ends_with("did you mean `Edit`?"));
        assert!(warned("Nonexistent").unwrap().ends_with("mcp__SERVER__TOOL"));
    }

    #[test]
    fn ordinary_rules_have_no_warning() {
        for rule in ["Bash(npm test:*)", "Read", "Edit(src/**)", "mcp__github__get_*", "mcp__x", "TodoWrite"]
        {
            assert_eq!(warned(rule), None, "{rule}");
        }
    }
}
