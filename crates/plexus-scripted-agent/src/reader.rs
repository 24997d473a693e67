//! Reads the agent's stdin: every line is passed on at once, whatever the turn does. Control requests of the host are answered here.

use std::io::BufRead;

use serde_json::{Value, json};

use crate::host::{Host, Prompt};

/// Reads to the end of input. A line that is not JSON is an error, as for the real CLI. A blank line is not.
pub(crate) fn read_all(host: &Host, input: impl BufRead) -> std::io::Result<()> {
    for line in input.lines() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let message: Value = serde_json::from_str(&line)?;
        match message["type"].as_str() {
            Some("user") => host.prompted(Prompt {
                uuid: message["uuid"].as_str().map(str::to_owned),
                message: message["message"].clone(),
            }),
            Some("control_request") => answer(host, &message["request_id"], &message["request"]),
            Some("control_response") => {
                let response = &message["response"];
                let answer = match response["subtype"].as_str() {
                    Some("success") => Ok(response["response"].clone()),
                    _ => Err(response["error"].as_str().unwrap_or("unknown error").to_owned()),
                };
                host.answered(response["request_id"].as_str().unwrap_or_default(), answer);
            }
            _ => {}
        }
    }
    Ok(())
}

fn answer(host: &Host, id: &Value, request: &Value) {
    let subtype = request["subtype"].as_str().unwrap_or_default();
    let response = match subtype {
        "initialize" => {
            host.set_callbacks(pre_tool_use_callbacks(request));
            json!({"commands":[], "agents":[], "output_style":"default", "available_output_styles":["default"],
                   "models":[], "account":{}, "pid":std::process::id()})
        }
        "mcp_status" => json!({"mcpServers":[]}),
        "interrupt" => {
            host.interrupt();
            json!({"still_queued":[]})
        }
        "cancel_async_message" => {
            json!({"cancelled":host.forget(request["message_uuid"].as_str().unwrap_or_default())})
        }
        "set_permission_mode" => {
            let mode = request["mode"].as_str().unwrap_or("default");
            host.set_permission_mode(mode);
            json!({"mode":mode})
        }
        _ => {
            let error = format!("Unsupported control request subtype: {subtype}");
            let response = json!({"subtype":"error","request_id":id,"error":error});
            return host.send(&json!({"type":"control_response","response":response}));
        }
    };
    let response = json!({"subtype":"success","request_id":id,"response":response});
    host.send(&json!({"type":"control_response","response":response}));
    if subtype == "set_permission_mode" {
        host.send_permission_mode();
    }
}

fn pre_tool_use_callbacks(initialize: &Value) -> Vec<String> {
    let matchers = initialize["hooks"]["PreToolUse"].as_array().map(Vec::as_slice).unwrap_or_default();
    let ids = matchers.iter().filter_map(|matcher| matcher["hookCallbackIds"].as_array()).flatten();
    ids.filter_map(|id| id.as_str().map(str::to_owned)).collect()
}
