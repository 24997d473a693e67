//! The scripted agent: it stands in for `claude` where thousands of children are needed, and in the demo. It takes
//! Claude Code's launch line (flags it does not know are ignored), speaks stream-json and control messages on its
//! stdin and stdout as the real CLI was seen to do, and does what the prompt says. Plain threads, no async runtime:
//! it starts in milliseconds and needs little memory.
//!
//! A prompt that is a JSON object `{"steps":[…]}`, or the array alone, is the script. Each step is one of:
//!
//! | step | what happens |
//! |---|---|
//! | `{"say":"text"}` | a text of the assistant |
//! | `{"tool":"Bash","input":{…}}` | a tool call; also `"id"`, and the options below |
//! | `{"tools":[{"tool":…},…]}` | several calls in one message, one after the other, or at once with `"parallel":true` |
//! | `{"flood":{"events":10000,"bytes":100}}` | that many texts of that many bytes |
//! | `{"big_line":BYTES}` | one text whose line is at least that long |
//! | `{"raw":"line"}`, `{"raw_partial":"text" or [bytes]}` | written as it is, with and without a newline |
//! | `{"cancel_open":true}` | a question that is withdrawn at once, or once the file `"wait_file"` is there |
//! | `{"unknown_request":"subtype"}` | a control request nobody knows; what came back is said as a text |
//! | `{"stderr":"text"}` | written to stderr |
//! | `{"wait_file":"path"}` | waits until the file is there |
//! | `{"result_error":"text"}` | ends the turn as an API failure does |
//! | `{"exit":3}` | the process ends in mid-turn |
//!
//! Options of a tool call: `"big_input":BYTES` adds that much padding to its input, `"reason":"text"` says why it asks; `"skip_gate":true` reports a
//! success without having asked, `"ignore_denial":true` one although the call was denied, and
//! `"ignore_question":true` one while its question is open. These three only claim to have run.
//! Any other text gets the friendly script of the demo.
//!
//! Tools really act: Bash runs `sh -c`, Write writes, Read reads, any other echoes its input. With
//! `SCRIPTED_AGENT_LOG` in the environment each call that runs appends `{"tool_use_id","tool","input","at_ns"}` to
//! that file: the input it ran with, and the monotonic clock when the answer that let it run was read. (No name that
//! begins with `PLEXUS_`: a hub does not pass those on to its children.)
//!
//! Where it differs from the real CLI: a gate callback that is answered with an error or an invalid decision runs the
//! tool at once (the real one takes the answer for "no opinion"), which is the worst a hub may meet; there are no
//! permission rules, no timeouts and no sub-agents; state changes are always sent; and it does not speak MCP: with
//! `--permission-prompt-tool mcp__…` a call that has to be asked about ends the turn with an error.

mod call;
mod host;
mod launch;
mod reader;
mod script;
mod tools;
mod turn;

use std::io::Write as _;
use std::sync::Arc;

use host::Host;
use launch::Launch;

/// Runs the agent on this process's stdin and stdout until stdin ends, and returns the exit code. `args` are those
/// after the program's name.
#[must_use]
pub fn run(args: Vec<String>) -> i32 {
    if args.iter().any(|arg| arg == "--version") {
        drop(writeln!(std::io::stdout(), "0.0.0 (Plexus scripted agent)"));
        return 0;
    }
    let host = Arc::new(Host::new(Launch::parse(args)));
    let turns = std::thread::spawn({
        let host = Arc::clone(&host);
        move || turn::serve(&host)
    });
    if let Err(error) = reader::read_all(&host, std::io::stdin().lock()) {
        drop(writeln!(std::io::stderr(), "Error parsing streaming input line: {error}"));
        return 1;
    }
    host.close();
    turns.join().unwrap_or(101)
}
