//! The model's answer on the wire, as one JSON message or as a stream of events. Usage is the same for every answer, so that tests know the
//! cost of a turn.

use serde_json::{Value, json};

use super::step::Block;

/// The input tokens of every answer.
pub const INPUT_TOKENS: u64 = 10;
/// The output tokens of every answer.
pub const OUTPUT_TOKENS: u64 = 5;

/// A complete message of the model.
pub(super) fn message(model: &Value, ids: &str, blocks: &[Block]) -> Value {
    let mut message = opening(model, ids);
    message["content"] = content(ids, blocks).into();
    message["stop_reason"] = stop_reason(blocks).into();
    message
}

/// The same message as stream events, each with its name.
pub(super) fn events(model: &Value, ids: &str, blocks: &[Block]) -> Vec<Value> {
    let mut events = vec![json!({"type":"message_start","message":opening(model, ids)})];
    for (index, block) in content(ids, blocks).into_iter().enumerate() {
        let mut start = block.clone();
        let deltas = if let Some(text) = block["text"].as_str() {
            start["text"] = json!("");
            deltas(text, "text_delta", "text")
        } else {
            start["input"] = json!({});
            deltas(&block["input"].to_string(), "input_json_delta", "partial_json")
        };
        events.push(json!({"type":"content_block_start","index":index,"content_block":start}));
        events.extend(
            deltas.into_iter().map(|d| json!({"type":"content_block_delta","index":index,"delta":d})),
        );
        events.push(json!({"type":"content_block_stop","index":index}));
    }
    events.push(json!({
        "type":"message_delta",
        "delta":{"stop_reason":stop_reason(blocks),"stop_sequence":null},
        "usage":usage()
    }));
    events.push(json!({"type":"message_stop"}));
    events
}

fn opening(model: &Value, ids: &str) -> Value {
    json!({
        "id": format!("msg_{ids}"), "type":"message", "role":"assistant", "model":model, "content":[],
        "stop_reason":null, "stop_sequence":null, "usage":usage()
    })
}

fn usage() -> Value {
    json!({
        "input_tokens":INPUT_TOKENS, "output_tokens":OUTPUT_TOKENS,
        "cache_creation_input_tokens":0, "cache_read_input_tokens":0
    })
}

fn stop_reason(blocks: &[Block]) -> &'static str {
    if blocks.iter().any(|block| matches!(block, Block::Tool(_))) { "tool_use" } else { "end_turn" }
}

fn content(ids: &str, blocks: &[Block]) -> Vec<Value> {
    let mut tools = 0;
    let to_json = |block: &Block| match block {
        Block::Text(text) => json!({"type":"text","text":text}),
        Block::Tool(tool) => {
            let id = tool.id.clone().unwrap_or_else(|| format!("{ids}_{tools}"));
            tools += 1;
            json!({"type":"tool_use","id":id,"name":tool.name,"input":tool.input})
        }
    };
    blocks.iter().map(to_json).collect()
}

/// Several deltas, as the real API sends them, so that a client that uses only the first one fails.
fn deltas(whole: &str, kind: &str, field: &str) -> Vec<Value> {
    let cut = |third: usize| whole.floor_char_boundary(whole.len() * third / 3);
    let pieces = [0, 1, 2].map(|third| &whole[cut(third)..cut(third + 1)]);
    pieces
        .into_iter()
        .filter(|piece| !piece.is_empty())
        .map(|piece| json!({"type":kind, field:piece}))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::step::Tool;
    use super::*;

    #[test]
    fn the_stream_adds_up_to_the_message() {
        let blocks = [
            Block::Text("grüße, 世界".into()),
            Block::Tool(Tool::new("Bash", json!({"command":"ls"}))),
            Block::Tool(Tool::new("Read", json!({})).id("mine")),
        ];
        let whole = message(&json!("m"), "toolu_x_0", &blocks);
        assert_eq!(whole["stop_reason"], "tool_use");
        assert_eq!(whole["content"][1]["id"], "toolu_x_0_0");
        assert_eq!(whole["content"][2]["id"], "mine");

        let mut gathered = vec![String::new(); 3];
        for event in events(&json!("m"), "toolu_x_0", &blocks) {
            let delta = &event["delta"];
            if let Some(piece) = delta["text"].as_str().or_else(|| delta["partial_json"].as_str()) {
                gathered[event["index"].as_u64().unwrap() as usize].push_str(piece);
            }
        }
        assert_eq!(gathered, ["grüße, 世界", r#"{"command":"ls"}"#, "{}"]);
    }
}
