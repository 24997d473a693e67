//! Parses the arguments of `plexus run` that need more than a string: the prompt from stdin or a file, the MCP servers or hooks
//! of a file, and the budget. They are checked before a hub is started; `modes` checks the mode and the policy.

use std::io::Read as _;

use serde_json::{Map, Value};

use crate::error::{ExpectedError, system};

/// The prompt: `-` reads stdin, `@FILE` reads a file.
pub(crate) fn prompt(given: &str) -> Result<String, ExpectedError> {
    let text = match (given, given.strip_prefix('@')) {
        ("-", _) => {
            let mut text = String::new();
            std::io::stdin().lock().read_to_string(&mut text).map_err(system)?;
            text
        }
        (_, Some(file)) => std::fs::read_to_string(file).map_err(|error| {
            let message = format!("cannot read {file}: {error}. If the prompt itself starts with @, pass `-` and the text on stdin");
            ExpectedError::Usage(message)
        })?,
        (text, None) => text.to_owned(),
    };
    if text.trim().is_empty() {
        return Err(ExpectedError::Usage("the prompt is empty".to_owned()));
    }
    Ok(text)
}

/// The MCP servers in a file of Claude Code's format: `{"mcpServers": {…}}`.
pub(super) fn mcp_servers(file: &std::path::Path) -> Result<Map<String, Value>, ExpectedError> {
    let usage = |why: String| ExpectedError::Usage(format!("--mcp {}: {why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| usage(error.to_string()))?;
    let mut read: Value = serde_json::from_str(&text).map_err(|error| usage(error.to_string()))?;
    match read["mcpServers"].take() {
        Value::Object(servers) => Ok(servers),
        _ => Err(usage("the file has no `mcpServers` object".to_owned())),
    }
}

/// The hooks in a file: a settings file of Claude Code with `hooks`, or the content of `hooks` alone. The hub checks them.
pub(super) fn hooks(file: &std::path::Path) -> Result<Map<String, Value>, ExpectedError> {
    let usage = |why: String| ExpectedError::Usage(format!("--hooks {}: {why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| usage(error.to_string()))?;
    let mut read: Map<String, Value> =
        serde_json::from_str(&text).map_err(|error| usage(error.to_string()))?;
    match read.remove("hooks") {
        Some(Value::Object(hooks)) => Ok(hooks),
        Some(_) => Err(usage("`hooks` is not an object".to_owned())),
        None => Ok(read),
    }
}

pub(super) fn budget(given: &str) -> Result<f64, String> {
    let amount = given.strip_prefix('$').unwrap_or(given).parse::<f64>().ok();
    amount
        .filter(|amount| *amount > 0.0 && amount.is_finite())
        .ok_or_else(|| "give an amount in dollars, such as 2.50".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_text_or_a_file_and_never_empty() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("prompt.md");
        std::fs::write(&file, "Fix\nit\n").unwrap();
        assert_eq!(prompt("Fix it").unwrap(), "Fix it");
        assert_eq!(prompt(&format!("@{}", file.display())).unwrap(), "Fix\nit\n");
        assert!(
            matches!(prompt("@/no/such/file"), Err(ExpectedError::Usage(why)) if why.contains("on stdin"))
        );
        assert!(matches!(prompt(" \n"), Err(ExpectedError::Usage(_))));
    }

    #[test]
    fn a_budget_is_an_amount_in_dollars() {
        assert_eq!([budget("2.5"), budget("$1")], [Ok(2.5), Ok(1.0)]);
        for invalid in ["0", "-1", "NaN", "inf", "two"] {
            assert!(budget(invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn hooks_are_read_from_a_settings_file_or_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hooks.json");
        for text in [r#"{"hooks": {"Stop": []}, "model": "x"}"#, r#"{"Stop": []}"#] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(Value::Object(hooks(&file).unwrap()), serde_json::json!({"Stop": []}));
        }
        for text in ["[]", r#"{"hooks": []}"#, "{"] {
            std::fs::write(&file, text).unwrap();
            assert!(
                matches!(hooks(&file), Err(ExpectedError::Usage(why)) if why.contains("--hooks")),
                "{text}"
            );
        }
    }

    #[test]
    fn mcp_servers_are_read_from_claude_codes_format() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mcp.json");
        std::fs::write(&file, r#"{"mcpServers": {"a": {"command": "x"}}}"#).unwrap();
        assert_eq!(mcp_servers(&file).unwrap()["a"]["command"], "x");
        std::fs::write(&file, r#"{"a": {"command": "x"}}"#).unwrap();
        assert!(matches!(mcp_servers(&file), Err(ExpectedError::Usage(why)) if why.contains("mcpServers")));
    }
}
