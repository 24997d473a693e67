//! A small MCP server on stdio that logs its calls, for tests of what reaches a server. It has two tools: `note`, and `peek`, which claims to
//! be read-only.

use std::io::{BufRead, Write};
use std::path::PathBuf;

use serde_json::{Value, json};

/// The variable with the path of its log: one JSON line for its start and one per call.
pub const LOG_VARIABLE: &str = "TOOL_SERVER_LOG";
/// The variable with the path of a file that it tries to read at its start.
pub const LOOK_VARIABLE: &str = "TOOL_SERVER_LOOK";

/// Serves until stdin is closed.
///
/// # Errors
/// If it cannot read, or cannot write its output or its log.
pub fn run() -> anyhow::Result<()> {
    let log = std::env::var_os(LOG_VARIABLE).map(PathBuf::from);
    let note = |line: Value| -> anyhow::Result<()> {
        let Some(log) = &log else { return Ok(()) };
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(log)?;
        Ok(file.write_all(format!("{line}\n").as_bytes())?)
    };
    let looked = std::env::var_os(LOOK_VARIABLE).map(|path| std::fs::read(path).is_ok());
    note(json!({"started": std::process::id(), "args": std::env::args().skip(1).collect::<Vec<_>>(),
                "could_read": looked}))?;
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let Ok(request) = serde_json::from_str::<Value>(&line?) else { continue };
        if request.get("id").is_none() {
            continue;
        }
        if request["method"] == "tools/call" {
            note(json!({"called": request["params"]["name"], "arguments": request["params"]["arguments"]}))?;
        }
        let mut reply = json!({"jsonrpc": "2.0", "id": request["id"]});
        match answer(&request) {
            Some(result) => reply["result"] = result,
            None => reply["error"] = json!({"code": -32601, "message": "no such method"}),
        }
        writeln!(out, "{reply}")?;
        out.flush()?;
    }
    Ok(())
}

fn answer(request: &Value) -> Option<Value> {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    match request["method"].as_str()? {
        "initialize" => Some(json!({
            "protocolVersion": request["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "tool-server", "version": "1"},
        })),
        "tools/list" => Some(json!({"tools": [
            {"name": "note", "description": "Notes a text.", "inputSchema": schema},
            {"name": "peek", "description": "Reads.", "inputSchema": schema,
             "annotations": {"readOnlyHint": true}},
        ]})),
        "tools/call" => Some(json!({"content": [{"type": "text", "text": "THE-SERVER-ANSWERED"}]})),
        "ping" => Some(json!({})),
        _ => None,
    }
}
