//! Claude Code's tools, as far as rules tell them apart: which belong together, what their specifier means, and which
//! field of the input it is about.

use crate::wildcard::name_matches;

/// Tools that one kind of path rule is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Family {
    Read,
    Edit,
}

/// What stands in the parentheses behind a tool's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    Command,
    Path(Family),
    Domain,
    Name,
    Nothing,
}

/// What the specifier of this tool means.
pub(crate) fn takes(tool: &str) -> Takes {
    match tool {
        "Bash" => Takes::Command,
        "Read" | "Glob" | "Grep" | "LS" | "NotebookRead" => Takes::Path(Family::Read),
        "Edit" | "Write" | "MultiEdit" | "NotebookEdit" => Takes::Path(Family::Edit),
        "WebFetch" => Takes::Domain,
        "Agent" | "Task" | "Skill" => Takes::Name,
        _ => Takes::Nothing,
    }
}

/// Whether a rule that names a tool and nothing else means this tool.
pub(crate) fn covers(rule: &str, tool: &str) -> bool {
    if rule.contains('*') {
        return name_matches(rule, tool);
    }
    same(rule, tool)
        || matches!(
            (rule, takes(tool)),
            ("Edit", Takes::Path(Family::Edit)) | ("Read", Takes::Path(Family::Read))
        )
        || rule.starts_with("mcp__") && tool.strip_prefix(rule).is_some_and(|rest| rest.starts_with("__"))
}

/// Whether two names are one tool's.
pub(crate) fn same(a: &str, b: &str) -> bool {
    a == b || matches!((a, b), ("Agent", "Task") | ("Task", "Agent"))
}

/// The field of the input that a path rule is about; a tool without one is not about files.
pub(crate) fn path_field(tool: &str) -> Option<PathField> {
    match tool {
        "Read" | "Edit" | "Write" | "MultiEdit" => Some(PathField::File("file_path")),
        "NotebookEdit" | "NotebookRead" => Some(PathField::File("notebook_path")),
        "Glob" => Some(PathField::Search { path: "path", pattern: Some("pattern"), shows: Shows::Names }),
        "Grep" => Some(PathField::Search { path: "path", pattern: None, shows: Shows::Contents }),
        "LS" => Some(PathField::Search { path: "path", pattern: None, shows: Shows::Names }),
        _ => None,
    }
}

/// What a tool's path names.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PathField {
    /// One file.
    File(&'static str),
    /// A folder, by default the working directory, all of which is searched.
    Search { path: &'static str, pattern: Option<&'static str>, shows: Shows },
}

/// What a search tells of the files it finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shows {
    Names,
    Contents,
}
