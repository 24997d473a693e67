//! The recording: lines in the format of Claude Code's stream-json output. The lines repeat a cycle of an assistant's text, a tool call and
//! the result of the call. The results are errors, because no gate has allowed these calls and Plexus stops a session whose ungated call
//! succeeds. The fake CLI writes the `result` line itself.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use serde_json::{Value, json};

const SESSION: &str = "8a3f0f3e-5c52-4e0e-9f43-2f6d5c1b7a90";
/// The length of the texts that brings the average line to about 600 bytes.
const TEXT_BYTES: usize = 145;
const WORDS: &str =
    "The parser reads the header first, then each record. A record without a length is skipped. ";

/// Writes a recording with this many lines. Returns its size in bytes.
pub(super) fn write(path: &Path, lines: usize) -> anyhow::Result<u64> {
    let mut file = BufWriter::new(File::create(path)?);
    for number in 0..lines {
        writeln!(file, "{}", line(number))?;
    }
    file.flush()?;
    Ok(std::fs::metadata(path)?.len())
}

fn line(number: usize) -> Value {
    let cycle = number / 3;
    let text: String = WORDS.chars().cycle().skip(number % WORDS.len()).take(TEXT_BYTES).collect();
    let call = format!("toolu_01{cycle:022}");
    let mut line = match number % 3 {
        0 => assistant(cycle, json!({"type": "text", "text": text})),
        1 => {
            let input = json!({"command": format!("grep -n record-{cycle} src/parser.rs"), "description": "Search the parser"});
            assistant(cycle, json!({"type": "tool_use", "id": call, "name": "Bash", "input": input}))
        }
        _ => {
            let error = format!("Exit code 1\n{text}");
            let block =
                json!({"type": "tool_result", "tool_use_id": call, "content": error, "is_error": true});
            let message = json!({"role": "user", "content": [block]});
            json!({"type": "user", "message": message, "tool_use_result": format!("Error: {error}")})
        }
    };
    line["parent_tool_use_id"] = Value::Null;
    line["session_id"] = json!(SESSION);
    line["uuid"] = json!(format!("00000000-0000-4000-8000-{number:012}"));
    line
}

/// As in Claude Code's output, each line has one block, and the blocks of one message share its id.
fn assistant(message: usize, block: Value) -> Value {
    let usage = json!({
        "input_tokens": 6, "cache_creation_input_tokens": 412, "cache_read_input_tokens": 18_204, "output_tokens": 96,
        "service_tier": "standard",
    });
    let message = json!({
        "id": format!("msg_01{message:022}"), "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": [block], "stop_reason": null, "stop_sequence": null, "usage": usage,
    });
    json!({"type": "assistant", "message": message})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_about_600_bytes() {
        let bytes: usize = (0..300).map(|number| line(number).to_string().len() + 1).sum();
        assert!((550..650).contains(&(bytes / 300)), "{}", bytes / 300);
    }
}
