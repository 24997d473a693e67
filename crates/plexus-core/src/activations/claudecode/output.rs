//! `claudecode.output`: returns the raw lines and the stderr of a run, in pages. Only the operator may read them: unlike
//! the events of a session, they contain the name of the user's account and everything that programs of the session wrote
//! to stderr. `raw_line` hides the configurations of MCP servers.

use std::io;
use std::sync::Arc;

use plexus_agent::{Growth, MAX_LINE, OutputFile, OutputPage, OutputRange, RawLine, RunDir, read_output};
use plexus_protocol::claudecode::{OutputLine, OutputParams, OutputResult, OutputStream};
use plexus_protocol::{Error, ErrorKind, MAX_TEXT_BYTES};
use plexus_store::{RunKey, RunState, SessionRow};

use crate::Hub;
use crate::callers::access::{self, Admitted, Needs};
use crate::errors::store_error;
use crate::hub::Method;
use crate::method::{Audience, IfUnreachable, Subject};
use crate::raw_line;

const DEFAULT_LIMIT: u64 = 100;
const MAX_LIMIT: u64 = 10_000;
/// The size of a page in bytes, after which no further line is added.
const PAGE_BYTES: usize = 1024 * 1024;

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.output",
        "Returns the output of a session's process as it was written: the lines of Claude Code, or stderr.",
        Audience::Programs,
        Needs::Rule,
        output,
    )
    .repeatable()
    .on_host_of(Subject::Session, IfUnreachable::Fail)
}

async fn output(hub: Arc<Hub>, caller: Admitted, params: OutputParams) -> Result<OutputResult, Error> {
    let session =
        access::find_session(hub.store(), &caller, params.session_id, params.name.as_deref()).await?;
    let range = OutputRange {
        from: params.from.unwrap_or(0),
        lines: up_to("limit", params.limit.unwrap_or(DEFAULT_LIMIT), MAX_LIMIT)?,
        bytes: PAGE_BYTES,
    };
    let max_bytes = match params.max_bytes {
        Some(given) => up_to("max_bytes", given, MAX_LINE as u64)?,
        None => MAX_TEXT_BYTES,
    };
    let file = match params.stream.unwrap_or_default() {
        OutputStream::Journal => OutputFile::Journal,
        OutputStream::Stderr => OutputFile::Stderr,
    };
    let (key, latest_run) = wanted_run(&session, params.run)?;
    let state = hub.store().run(key).await.map_err(store_error)?.map(|run| run.state);
    let running = match state {
        Some(RunState::External) => return Err(not_ours(&session, key.run)),
        Some(RunState::Starting | RunState::Running | RunState::Ending) => true,
        Some(RunState::Ended) | None => false,
    };
    let growth = if running { Growth::Expected } else { Growth::Over };
    let dir = RunDir::new(hub.settings().run_dir(key));
    let read = tokio::task::spawn_blocking(move || {
        match read_output(&dir, file, range, growth) {
            // A process that has not written to stderr yet may have no file for it.
            Err(error) if error.kind() == io::ErrorKind::NotFound && dir.journal().exists() => {
                Ok(OutputPage { lines: Vec::new(), next: range.from, size: 0 })
            }
            read => read,
        }
    });
    let page = read.await.map_err(io::Error::other).and_then(|read| read);
    let page = page.map_err(|error| unreadable(key.run, growth, &error))?;
    let OutputPage { lines, next, size } = page;
    let has_more = !lines.is_empty() && next < size;
    let lines = lines.into_iter().map(|line| shown(line, max_bytes)).collect();
    Ok(OutputResult::Ok { run: key.run, latest_run, running, lines, next, has_more })
}

fn shown(line: RawLine, max_bytes: usize) -> OutputLine {
    let RawLine { from, length, bytes } = line;
    let mut text = bytes.as_deref().map_or_else(String::new, |bytes| raw_line::shown(bytes).into_owned());
    let truncated = bytes.is_none() || text.len() > max_bytes;
    text.truncate(text.floor_char_boundary(max_bytes));
    OutputLine { from, bytes: length, text, truncated }
}

fn up_to(field: &'static str, given: u64, most: u64) -> Result<usize, Error> {
    match usize::try_from(given.min(most)) {
        Ok(given @ 1..) => Ok(given),
        _ => Err(Error::invalid(field, "must be at least 1")),
    }
}

/// The run that the caller wants, and the latest run.
fn wanted_run(session: &SessionRow, wanted: Option<u32>) -> Result<(RunKey, u32), Error> {
    let latest = session.latest_run;
    let run = wanted.unwrap_or(latest);
    let message = match (latest, run) {
        (0, _) => format!("session `{}` has had no process yet", session.name),
        (_, run) if run == 0 || run > latest => format!("run {run} does not exist; the latest is {latest}"),
        _ => return Ok((RunKey { session: session.id, run }, latest)),
    };
    Err(Error::new(ErrorKind::RunNotFound, message))
}

fn not_ours(session: &SessionRow, run: u32) -> Error {
    let message = format!(
        "run {run} of session `{}` was not started by the hub, so the hub has no output of it",
        session.name
    );
    Error::new(ErrorKind::RunNotFound, message)
}

fn unreadable(run: u32, growth: Growth, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound if growth == Growth::Expected => {
            Error::new(ErrorKind::RunNotFound, format!("run {run} is starting and has no output yet"))
        }
        io::ErrorKind::NotFound => Error::new(
            ErrorKind::Gone,
            format!(
                "the files of run {run} were deleted; `run_files_days` and `run_files_mb` under [retention] in \
                 plexus.toml decide how long they are kept"
            ),
        )
        .with("run", run),
        _ => Error::new(ErrorKind::Internal, format!("cannot read the output of run {run}: {error}")),
    }
}
