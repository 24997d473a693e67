//! Determines once what a call acts on, before every rule is matched against it: a command line, a path, a host or a
//! name. A subject that cannot be determined is reported as unknown and never omitted.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use crate::bash::{self, Access, Piece, Reach, Script, Unreadable, Word};
use crate::call::Call;
use crate::input;
use crate::paths::{self, Target};
use crate::tools::{self, Family, PathField, Shows, SpecifierKind, ToolClass};

/// What a call acts on.
#[derive(Debug)]
pub(crate) enum Subject<'a> {
    Command(Command),
    Path(Family, Option<PathTarget>),
    Host(Option<String>),
    Name(Option<&'a str>),
    /// A program in a language that command rules do not cover.
    Program(Command),
    /// Another tool; its whole input is searched.
    Other(input::Contents<'a>),
    /// A call of the hub's own tools, which the hub checks.
    Hub,
}

/// A command line. It is parsed and followed only when a rule needs it.
#[derive(Debug, Default)]
pub(crate) struct Command {
    text: Option<String>,
    script: OnceCell<Result<Script, Unreadable>>,
    reach: OnceCell<Reach>,
}

/// A path in the file system.
#[derive(Debug)]
pub(crate) struct PathTarget {
    pub(crate) target: Target,
    pub(crate) extent: Extent,
}

/// How much of a path the call acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Itself,
    /// Everything below it.
    Below(Shows),
}

impl<'a> Subject<'a> {
    pub(crate) fn of(call: &Call<'a>) -> Self {
        let command = |field| Command { text: call.text(field).map(str::to_owned), ..Command::default() };
        if let Some(ToolClass::Program(field)) = tools::class_of(call.tool_name) {
            return Self::Program(command(field));
        }
        match tools::specifier_kind(call.tool_name) {
            SpecifierKind::Command => Self::Command(command("command")),
            SpecifierKind::Path(family) => Self::Path(family, path_target(call)),
            SpecifierKind::Domain => Self::Host(call.text("url").and_then(host)),
            SpecifierKind::Name => {
                Self::Name(call.text(if call.tool_name == "Skill" { "skill" } else { "subagent_type" }))
            }
            SpecifierKind::Nothing if tools::is_hub_tool(call.tool_name) => Self::Hub,
            SpecifierKind::Nothing => Self::Other(input::search(call.tool_name, call.input)),
        }
    }
}

impl Command {
    pub(crate) fn new(text: String) -> Self {
        Self { text: Some(text), ..Self::default() }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    pub(crate) fn script(&self) -> Result<&Script, Unreadable> {
        let read = || match &self.text {
            Some(text) => bash::read(text, 0),
            None => Err(Unreadable("the call has no command")),
        };
        self.script.get_or_init(read).as_ref().map_err(|unreadable| *unreadable)
    }

    pub(crate) fn reach(&self, script: &Script) -> &Reach {
        self.reach.get_or_init(|| bash::reach(script))
    }
}

fn path_target(call: &Call<'_>) -> Option<PathTarget> {
    let (path, extent) = match tools::path_field(call.tool_name)? {
        PathField::File(field) => (PathBuf::from(known_path(call.text(field)?)?), Extent::Itself),
        PathField::Search { path, pattern, shows } => {
            let folder = match call.input.get(path) {
                None | Some(serde_json::Value::Null) => "",
                Some(path) => known_path(path.as_str()?)?,
            };
            if let Some(pattern) = pattern {
                let pattern = call.text(pattern)?;
                // A pattern that leads elsewhere is not judged by the folder it starts in.
                if pattern.starts_with(['/', '~'])
                    || pattern.split(['/', '{', ',', '}']).any(|part| part == "..")
                {
                    return None;
                }
            }
            (PathBuf::from(folder), Extent::Below(shows))
        }
    };
    Some(PathTarget { target: paths::target(&path, call.cwd)?, extent })
}

/// A path that every reader resolves alike: Claude Code replaces `~` with the home directory.
fn known_path(path: &str) -> Option<&str> {
    if path.starts_with('~') || path.contains('\0') { None } else { Some(path) }
}

/// The file that a word of a command line names, if that is known before the command runs.
pub(crate) fn named_file(word: &Word, home: Option<&Path>) -> Option<PathBuf> {
    match word.pieces() {
        [Piece::Text(path)] if !path.is_empty() => Some(PathBuf::from(path)),
        [Piece::Home] => home.map(Path::to_owned),
        [Piece::Home, Piece::Text(path)] => home.map(|home| home.join(path.trim_start_matches('/'))),
        _ => None,
    }
}

/// The family of rules that a redirection is subject to.
pub(crate) fn family(access: Access) -> Family {
    match access {
        Access::Read => Family::Read,
        Access::Write => Family::Edit,
    }
}

/// The host of a URL that all parsers read alike; other URLs are not judged.
pub(crate) fn host(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    if !scheme.eq_ignore_ascii_case("https") && !scheme.eq_ignore_ascii_case("http") {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next()?;
    let (host, port) = authority.split_once(':').unwrap_or((authority, ""));
    let plain = !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.');
    if !plain || !port.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some(host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase())
}

/// Whether a rule's domain matches this host.
pub(crate) fn domain_matches(domain: &str, host: &str) -> bool {
    match domain.strip_prefix('*') {
        Some(end) => host.len() > end.len() && host.ends_with(end),
        None => domain == host,
    }
}
