//! Risk marks of a call: reasons for a person to look twice. The rules are data (`command_table`, `file_table`, `hosts`); this module
//! applies them to a call. A mark decides nothing: no rule of the policy uses one, and a call without marks is not necessarily
//! safe. The module does no I/O, so it does not notice a symbolic link that leaves the project.

mod awk;
mod command_line;
mod command_paths;
mod command_rules;
mod command_table;
mod file_modes;
mod file_table;
mod git_config;
mod hosts;
mod path;
mod pattern;
mod sed;
mod unreadable;
mod variables;

use std::path::Path;

use plexus_protocol::{RiskKind, RiskMark};

use crate::call::Call;
use crate::input;
use crate::tools::{self, Family, PathField, SpecifierKind, ToolClass};
use path::{Access, Directories};

/// The maximum number of marks of a call.
const MAX_MARKS: usize = 12;
/// The maximum number of marks of one kind.
const MAX_OF_KIND: usize = 3;
/// The longest quotation of a call in a reason, in characters.
const MAX_QUOTED: usize = 80;
/// The maximum number of command lines in the input of one call that are analysed.
const MAX_LINES: usize = 20;

/// The marks of a call, most alarming first. The project is the directories in `roots` and everything below them.
pub fn risks(call: &Call<'_>, roots: &[&Path]) -> Vec<RiskMark> {
    let mut marks = Marks::default();
    let dirs = Directories { cwd: call.cwd, home: call.home, roots };
    match tools::class_of(call.tool_name) {
        Some(ToolClass::Shell) => command(call, "command", &dirs, &mut marks),
        Some(ToolClass::Program(field)) => {
            let reason = format!("{} runs code that is not analysed", quoted(call.tool_name));
            marks.add(RiskKind::Unclear, reason);
            if let Some(text) = call.text(field) {
                unreadable::scan(text, &dirs, &mut marks);
            }
        }
        Some(ToolClass::Reads | ToolClass::Edits) => file(call, &dirs, &mut marks),
        Some(ToolClass::Fetches) => match call.text("url") {
            Some(url) => hosts::url("WebFetch", url, &mut marks),
            None => marks.add(RiskKind::Unclear, "the call has no URL".to_owned()),
        },
        Some(ToolClass::Other) if call.tool_name == "WebSearch" => {
            marks.add(RiskKind::Network, "WebSearch sends the query to a search engine".to_owned());
        }
        Some(ToolClass::Starts | ToolClass::Other) => {}
        None if tools::is_hub_tool(call.tool_name) => {}
        None => other_tool(call, &dirs, &mut marks),
    }
    marks.sorted()
}

fn command(call: &Call<'_>, field: &str, dirs: &Directories<'_>, marks: &mut Marks) {
    match call.text(field) {
        Some(text) => command_line::scan(text, dirs, marks),
        None => marks.add(RiskKind::Unclear, "the call has no command".to_owned()),
    }
}

fn file(call: &Call<'_>, dirs: &Directories<'_>, marks: &mut Marks) {
    let access = match tools::specifier_kind(call.tool_name) {
        SpecifierKind::Path(Family::Edit) => Access::Write,
        _ => Access::Read,
    };
    let (path, pattern) = match tools::path_field(call.tool_name) {
        Some(PathField::File(field)) => (call.text(field), None),
        Some(PathField::Search { path, pattern, .. }) => {
            (Some(call.text(path).unwrap_or(".")), pattern.and_then(|pattern| call.text(pattern)))
        }
        None => (None, None),
    };
    match path {
        Some(path) => dirs.mark(path, access, marks),
        None => marks.add(RiskKind::Unclear, "the call names no file".to_owned()),
    }
    if let Some(pattern) = pattern {
        dirs.mark(pattern, access, marks);
    }
    if let Some(glob) = call.text("glob") {
        dirs.mark(glob, access, marks);
    }
}

/// A tool of an MCP server, or an unknown tool. Its effect is unknown, so every text in its input that looks like a command line, a
/// URL or a path is analysed.
fn other_tool(call: &Call<'_>, dirs: &Directories<'_>, marks: &mut Marks) {
    let contents = input::search(call.tool_name, call.input);
    if contents.cut || contents.lines.len() > MAX_LINES {
        marks.add(RiskKind::Unclear, "the input is too large to analyse".to_owned());
    }
    for line in contents.lines.iter().filter_map(|line| line.text()).take(MAX_LINES) {
        command_line::scan(line, dirs, marks);
    }
    for text in contents.texts {
        if text.contains("://") && !text.contains(char::is_whitespace) {
            hosts::url(call.tool_name, text, marks);
        } else if text.len() <= path::MAX_BYTES && !text.contains(char::is_whitespace) {
            dirs.mark(text, Access::Unknown, marks);
        }
    }
}

/// The marks found so far.
#[derive(Debug, Default)]
struct Marks(Vec<RiskMark>);

impl Marks {
    fn add(&mut self, kind: RiskKind, reason: String) {
        let of_kind = self.0.iter().filter(|mark| mark.kind == kind);
        if of_kind.clone().count() < MAX_OF_KIND && !of_kind.clone().any(|mark| mark.reason == reason) {
            self.0.push(RiskMark::new(kind, reason));
        }
    }

    fn sorted(mut self) -> Vec<RiskMark> {
        self.0.sort_by_key(|mark| mark.kind);
        self.0.truncate(MAX_MARKS);
        self.0
    }
}

/// A part of the call in backticks, truncated and on one line.
fn quoted(text: &str) -> String {
    let mut shown: String =
        text.chars().take(MAX_QUOTED).map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
    if text.chars().nth(MAX_QUOTED).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}
