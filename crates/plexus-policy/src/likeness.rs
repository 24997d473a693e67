//! Groups similar calls of one tool, to show how earlier ones were decided. It serves people who review the past: no
//! rule uses it, and it allows nothing.

use std::path::PathBuf;

use crate::bash::{self, Inner, Part, Script, Word, base_name};
use crate::call::Call;
use crate::subject::host;
use crate::tools::{self, PathField, SpecifierKind};

/// The maximum number of wrappers to remove.
const MAX_DEPTH: usize = 8;

/// What makes two calls of the same tool similar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Likeness {
    /// The first program of a command line, and its subcommand, if any.
    Command {
        /// For example `git`.
        program: String,
        /// For example `push`.
        subcommand: Option<String>,
    },
    /// The file.
    File(PathBuf),
    /// The host.
    Host(String),
    /// The tool itself.
    Tool,
}

impl Likeness {
    /// The likeness of a call; `None` if it cannot be determined, so that no other call is similar.
    pub fn of(call: &Call<'_>) -> Option<Self> {
        match tools::specifier_kind(call.tool_name) {
            SpecifierKind::Command => first(&bash::read(call.text("command")?, 0).ok()?, 0),
            SpecifierKind::Domain => host(call.text("url")?).map(Self::Host),
            SpecifierKind::Path(_) => match tools::path_field(call.tool_name) {
                Some(PathField::File(field)) => Some(Self::File(call.cwd.join(call.text(field)?))),
                Some(PathField::Search { .. }) | None => Some(Self::Tool),
            },
            SpecifierKind::Name | SpecifierKind::Nothing => Some(Self::Tool),
        }
    }
}

/// The first command that does more than change the directory.
fn first(script: &Script, depth: usize) -> Option<Likeness> {
    script.parts.iter().find_map(|part| within(part.clone(), depth))
}

fn within(mut part: Part, mut depth: usize) -> Option<Likeness> {
    while depth < MAX_DEPTH {
        depth += 1;
        match bash::unwrap(&part) {
            Some(Inner::Part(inner)) => part = inner,
            Some(Inner::Script(script)) => return first(&script, depth),
            None => break,
        }
    }
    let program = base_name(part.words.first()?.literal()?).to_owned();
    if matches!(program.as_str(), "cd" | "pushd" | "popd") {
        return None;
    }
    let subcommand = part.words.get(1).and_then(Word::literal).filter(|word| is_subcommand(word));
    Some(Likeness::Command { program, subcommand: subcommand.map(str::to_owned) })
}

/// Whether a word looks like a subcommand rather than an option or a file.
fn is_subcommand(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_lowercase())
        && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_:".contains(&b))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::*;

    fn of(tool_name: &str, input: &Value) -> Option<Likeness> {
        Likeness::of(&Call { tool_name, input, cwd: Path::new("/work"), home: None, now: 0 })
    }

    fn command(line: &str) -> Option<(String, Option<String>)> {
        match of("Bash", &json!({"command": line})) {
            Some(Likeness::Command { program, subcommand }) => Some((program, subcommand)),
            _ => None,
        }
    }

    #[test]
    fn command_lines_are_similar_by_program_and_subcommand() {
        for (line, program, subcommand) in [
            ("git push origin main", "git", Some("push")),
            ("cd /x && git push -f", "git", Some("push")),
            ("/usr/bin/git 'push'", "git", Some("push")),
            ("timeout 5 npm run test", "npm", Some("run")),
            ("bash -c 'cargo build --release'", "cargo", Some("build")),
            ("CI=1 npm run test | tail", "npm", Some("run")),
            ("rm -rf build", "rm", None),
            ("rm notes.txt", "rm", None),
            ("ls", "ls", None),
        ] {
            assert_eq!(command(line), Some((program.to_owned(), subcommand.map(str::to_owned))), "{line}");
        }
        for line in ["cd /x", "$TOOL push", "if", ""] {
            assert_eq!(command(line), None, "{line}");
        }
    }

    #[test]
    fn other_tools_are_alike_by_file_host_or_name() {
        let file = of("Edit", &json!({"file_path": "/work/src/a.rs"}));
        assert_eq!(of("Edit", &json!({"file_path": "src/./a.rs"})), file);
        assert_ne!(of("Edit", &json!({"file_path": "src/b.rs"})), file);
        let host = of("WebFetch", &json!({"url": "https://Example.com/a"}));
        assert_eq!(host, Some(Likeness::Host("example.com".to_owned())));
        assert_eq!(of("WebFetch", &json!({"url": "file:///etc"})), None);
        assert_eq!(of("mcp__github__create_issue", &json!({})), Some(Likeness::Tool));
        assert_eq!(of("Grep", &json!({"pattern": "x"})), Some(Likeness::Tool));
    }
}
