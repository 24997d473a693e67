//! A tool call as the gate receives it.

use std::path::Path;

use serde_json::Value;

/// The call that rules are matched against.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The tool's name, e.g. `Bash` or `mcp__github__create_issue`.
    pub tool_name: &'a str,
    /// Its input, an object.
    pub input: &'a Value,
    /// Its working directory.
    pub cwd: &'a Path,
    /// The home directory that `~` stands for, if known.
    pub home: Option<&'a Path>,
    /// The current time, in seconds since 1970.
    pub now: u64,
}

impl<'a> Call<'a> {
    /// A field of the input, if it is a string.
    pub(crate) fn text(&self, field: &str) -> Option<&'a str> {
        self.input.get(field)?.as_str()
    }
}
