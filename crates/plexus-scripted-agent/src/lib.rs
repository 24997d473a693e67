//! The scripted agent stands in for `claude` in the demo and in tests that need thousands of children. It accepts Claude Code's
//! command line (unknown flags are ignored), speaks stream-json and control messages on stdin and stdout as the real CLI does,
//! and performs the script that its prompt contains. It never calls a model and needs no credential. It uses plain threads and no
//! async runtime, so it starts in milliseconds and needs little memory.
//!
//! A prompt that is a JSON object `{"steps":[…]}`, or the array alone, is a script. Each step is one of:
//!
//! | step | effect |
//! |---|---|
//! | `{"say":"text"}` | a text of the assistant |
//! | `{"tool":"Bash","input":{…}}` | a tool call; also `"id"`, and the options below |
//! | `{"tools":[{"tool":…},…]}` | several calls in one message, in sequence, or concurrently with `"parallel":true` |
//! | `{"flood":{"events":10000,"bytes":100}}` | that many texts of that many bytes |
//! | `{"clock":{"events":500,"every_ms":20}}` | that many texts, one per interval; each is the monotonic clock in nanoseconds just before it is written |
//! | `{"replay":"path"}` | the lines of a file, verbatim |
//! | `{"big_line":BYTES}` | one text whose line is at least that long |
//! | `{"raw":"line"}`, `{"raw_partial":"text" or [bytes]}` | verbatim output, with and without a newline |
//! | `{"cancel_open":true}` | a permission request that is withdrawn at once, or when the file `"wait_file"` exists |
//! | `{"unknown_request":"subtype"}` | a control request that no host supports; a text reports the reply |
//! | `{"stderr":"text"}` | output on stderr |
//! | `{"wait_file":"path"}` | a pause until the file exists |
//! | `{"result_error":"text"}` | the turn ends like an API failure |
//! | `{"exit":3}` | the process exits in mid-turn |
//!
//! Options of a tool call: `"big_input":BYTES` pads its input, `"reason":"text"` is the reason that the permission request
//! gives, `"stop_when_denied":true` ends the turn after a denial. Three options simulate an agent that bypasses the gate: `"skip_gate":true` reports success without a request,
//! `"ignore_denial":true` reports success after a denial, and `"ignore_question":true` reports success while the request is open.
//! These three only claim to have run. A caller of [`run`] can add scripts for prompts in plain text; any other text gets the
//! default script, a Bash call and a Write.
//!
//! Tools really act: Bash runs `sh -c`, Write writes, Edit replaces, Read reads, and any other tool echoes its input. If
//! `SCRIPTED_AGENT_LOG` is set, each call that runs appends `{"tool_use_id","tool","input","requested_at_ns","at_ns"}` to that file: the input it
//! ran with, and the monotonic clock at which the agent sent its last request about the call, and at which it read the answer. A replay appends `{"replay","at_ns"}` before its first line. (The name has no `PLEXUS_` prefix, because a hub does not
//! pass those variables to its children.)
//!
//! Differences from the real CLI: a gate callback that is answered with an error or an invalid decision runs the tool at once (the
//! real CLI treats the answer as "no opinion"), which is the worst case for a hub. There are no permission rules, no
//! timeouts and no sub-agents. State changes are always sent. The agent does not speak MCP: with `--permission-prompt-tool mcp__…`
//! a call that needs permission ends the turn with an error.

mod call;
mod host;
mod launch;
mod reader;
mod script;
mod tools;
mod turn;

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use host::Host;
use launch::Launch;

/// Scripts for prompts in plain text: from the prompt and the working directory to the array of steps.
pub type Scripts = fn(prompt: &str, working_dir: &Path) -> Option<Value>;

/// Runs the agent on this process's stdin and stdout until stdin ends, and returns the exit code. `args` are the arguments
/// without the program name.
#[must_use]
pub fn run(args: Vec<String>, scripts: Scripts) -> i32 {
    if args.iter().any(|arg| arg == "--version") {
        drop(writeln!(std::io::stdout(), "0.0.0 (Plexus scripted agent)"));
        return 0;
    }
    let host = Arc::new(Host::new(Launch::parse(args)));
    let turns = std::thread::spawn({
        let host = Arc::clone(&host);
        move || turn::serve(&host, scripts)
    });
    if let Err(error) = reader::read_all(&host, std::io::stdin().lock()) {
        drop(writeln!(std::io::stderr(), "Error parsing streaming input line: {error}"));
        return 1;
    }
    host.close();
    turns.join().unwrap_or(101)
}
