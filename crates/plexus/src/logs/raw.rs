//! `plexus logs --raw` and `--stderr`: the output of a session's process, unchanged in a pipe, and with escaped control
//! characters at a terminal.

use std::io::IsTerminal as _;

use plexus_protocol::claudecode::{OutputResult, OutputStream};
use serde_json::json;

use super::LogsArgs;
use crate::error::{ExpectedError, system};
use crate::escape::safe;
use crate::hub::{HubClient, named};
use crate::output;

/// The longest line that the hub returns.
const LONGEST_LINE: u64 = 8 * 1024 * 1024;

/// Prints all lines that the run has written so far.
pub(super) async fn print(
    hub: &HubClient,
    args: &LogsArgs,
    stream: OutputStream,
) -> Result<(), ExpectedError> {
    let is_terminal = std::io::stdout().is_terminal();
    let mut params = named(&args.name);
    params["stream"] = json!(stream);
    params["max_bytes"] = LONGEST_LINE.into();
    params["limit"] = 10_000.into();
    params["run"] = json!(args.run);
    loop {
        let page: OutputResult = hub.call_with_timeout("claudecode.output", params.clone()).await?;
        let OutputResult::Ok { run, lines, next, has_more, .. } = page;
        for line in &lines {
            if args.json.json {
                output::json_line(&json!({"run": run, "line": line}));
                continue;
            }
            if line.truncated {
                output::say(&format!("plexus: a line of {} bytes is too long to print", line.bytes));
                continue;
            }
            let text = if is_terminal { safe(&line.text) } else { (&line.text).into() };
            output::write(&format!("{text}\n")).map_err(system)?;
        }
        if !has_more {
            return Ok(());
        }
        // A session may start its next process meanwhile.
        params["run"] = run.into();
        params["from"] = next.into();
    }
}
