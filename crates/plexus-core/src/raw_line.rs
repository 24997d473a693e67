//! A line of a child's output as the operator sees it. Claude Code repeats the configuration of its MCP servers in the
//! answer to `mcp_status`, with headers that contain secrets and, over HTTP, the token of the run. That part is hidden.

use std::borrow::Cow;

use serde_json::{Value, json};

/// Shown in place of an incomplete line about MCP servers.
const UNREADABLE: &str = "(an incomplete line about MCP servers, hidden by plexus)";

/// The text of a line, with the configurations of MCP servers replaced. Invalid UTF-8 is replaced, too.
pub(crate) fn shown(line: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(line);
    if !text.contains("mcpServers") {
        return text;
    }
    let Ok(mut message) = serde_json::from_str::<Value>(&text) else {
        // A process that was killed may have written half of the line, with secrets in it.
        return if text.starts_with('{') { UNREADABLE.into() } else { text };
    };
    let Some(servers) = message.pointer_mut("/response/response/mcpServers").and_then(Value::as_array_mut)
    else {
        return text;
    };
    let configs: Vec<&mut Value> = servers.iter_mut().filter_map(|server| server.get_mut("config")).collect();
    if configs.is_empty() {
        return text;
    }
    for config in configs {
        *config = json!("hidden by plexus");
    }
    message.to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configurations_of_servers_are_hidden() {
        let line = br#"{"type":"control_response","response":{"subtype":"success","request_id":"m1","response":{"mcpServers":[{"name":"web","status":"connected","config":{"type":"http","url":"http://x/?key=SECRET","headers":{"Authorization":"Bearer SECRET"}}}]}}}"#;
        let shown = shown(line);
        assert!(!shown.contains("SECRET"), "{shown}");
        assert!(shown.contains(r#""name":"web""#) && shown.contains(r#""status":"connected""#), "{shown}");
    }

    #[test]
    fn half_a_line_about_servers_is_hidden() {
        assert_eq!(shown(br#"{"response":{"mcpServers":[{"config":{"headers":{"A":"SECRET"#), UNREADABLE);
    }

    #[test]
    fn other_lines_stay_as_they_are() {
        for line in [
            r#"{"type":"assistant", "text":"mcpServers: {\"config\": 1}"}"#,
            r#"{"mcpServers":[{"config":1}]}"#,
            r#"{"type":"control_response","response":{"response":{"mcpServers":[ ]}}}"#,
            "mcpServers, but no JSON",
            "",
        ] {
            assert_eq!(shown(line.as_bytes()), line);
        }
        assert_eq!(shown(b"a\xffb"), "a\u{fffd}b");
    }
}
