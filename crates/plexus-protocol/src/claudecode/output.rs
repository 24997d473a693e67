//! `claudecode.output`: the output of a session's process as the process wrote it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::SessionId;

/// An output stream of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputStream {
    /// The lines of Claude Code on stdout, one JSON message each.
    #[default]
    Journal,
    /// The end of stderr. The hub keeps at least the last 512 KiB; positions change when it drops older lines.
    Stderr,
}

/// Parameters of `claudecode.output`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputParams {
    /// Session id.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// Session name instead of the id.
    #[serde(default)]
    pub name: Option<String>,
    /// The number of the run (process), starting with 1; default the latest.
    #[serde(default)]
    pub run: Option<u32>,
    /// The stream; default `journal`.
    #[serde(default)]
    pub stream: Option<OutputStream>,
    /// The position of the first line: the `next` of the previous page. Default 0.
    #[serde(default)]
    pub from: Option<u64>,
    /// Maximum number of lines, up to 10,000; default 100. A page of long lines is shorter.
    #[serde(default)]
    pub limit: Option<u64>,
    /// The maximum length of a line in bytes, default 8192. Longer lines are truncated.
    #[serde(default)]
    pub max_bytes: Option<u64>,
}

/// One line of output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutputLine {
    /// Its position in bytes.
    pub from: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// The line as it was written, except for the configurations of MCP servers and invalid UTF-8, which are replaced.
    /// Written by the child: do not trust it.
    pub text: String,
    /// Whether the text is truncated. A line of more than 8 MiB has no text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// Result of `claudecode.output`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum OutputResult {
    /// A page of the output.
    Ok {
        /// The run.
        run: u32,
        /// The latest run of the session.
        latest_run: u32,
        /// Whether the process is still running.
        running: bool,
        /// The lines.
        lines: Vec<OutputLine>,
        /// Pass this as `from` for the next page.
        next: u64,
        /// Whether the next page has lines now.
        has_more: bool,
    },
}
