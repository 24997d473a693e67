//! `plexus mcp-config`: prints the configuration that adds Plexus to an MCP client. It starts the relay on stdio, so it contains no
//! secret.

use std::path::Path;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::error::{ExpectedError, system};
use crate::output;
use crate::settings::DataDirArg;

/// Arguments of `plexus mcp-config`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  plexus mcp-config                  the entry, for any client\n  \
    plexus mcp-config claude-code      what to run or write for Claude Code")]
pub(crate) struct McpConfigArgs {
    /// The MCP client.
    pub(crate) client: Option<McpClient>,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    /// Print only the JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Known MCP clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum McpClient {
    /// Claude Code.
    ClaudeCode,
    /// Claude Desktop.
    ClaudeDesktop,
    /// Cursor.
    Cursor,
}

/// Prints the configuration.
pub(crate) fn run(args: &McpConfigArgs) -> Result<(), ExpectedError> {
    let program = std::env::current_exe().map_err(system)?;
    let dir = args.data_dir.data_dir.as_ref().map(|_| args.data_dir.resolve()).transpose()?;
    let mut entry = entry(&program, dir.as_deref());
    if matches!(args.client, None | Some(McpClient::ClaudeCode)) {
        // Otherwise Claude Code loads the tools on demand, and the agent does not wait for approval requests.
        entry["alwaysLoad"] = json!(true);
    }
    if !args.json
        && let Some(client) = args.client
    {
        output::print(&command_of(client, &entry));
    }
    output::json(&json!({"mcpServers": {"plexus": entry}}));
    Ok(())
}

fn entry(program: &Path, dir: Option<&Path>) -> Value {
    let mut words = vec!["mcp".to_owned()];
    if let Some(dir) = dir {
        words.extend(["--data-dir".to_owned(), dir.to_string_lossy().into_owned()]);
    }
    json!({"command": program, "args": words})
}

fn command_of(client: McpClient, entry: &Value) -> String {
    match client {
        McpClient::ClaudeCode => {
            let entry = quoted(&entry.to_string());
            format!(
                "For yourself, in every project:\n\n  claude mcp add-json --scope user plexus {entry}\n\n\
                 Or in .mcp.json of one project:\n"
            )
        }
        McpClient::ClaudeDesktop => {
            "In claude_desktop_config.json (Settings, Developer, Edit Config), then restart it:\n".to_owned()
        }
        McpClient::Cursor => "In ~/.cursor/mcp.json, or in .cursor/mcp.json of one project:\n".to_owned(),
    }
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_starts_the_relay_and_contains_no_secret() {
        let entry = entry(Path::new("/opt/my bin/plexus"), Some(Path::new("/data")));
        assert_eq!(entry, json!({"command": "/opt/my bin/plexus", "args": ["mcp", "--data-dir", "/data"]}));
        let command_of = command_of(McpClient::ClaudeCode, &entry);
        let line =
            "plexus '{\"command\":\"/opt/my bin/plexus\",\"args\":[\"mcp\",\"--data-dir\",\"/data\"]}'\n";
        assert!(command_of.contains(line), "{command_of}");
    }
}
