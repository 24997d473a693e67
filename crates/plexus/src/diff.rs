//! `plexus diff`: prints the changes of a session in its worktree as unified diffs, in colour at a terminal.

use std::io::IsTerminal as _;

use clap::Args;
use plexus_protocol::claudecode::DiffResult;
use plexus_protocol::worktree::{FileDiff, FileStatus};
use serde_json::json;

use crate::error::ExpectedError;
use crate::escape::safe;
use crate::hub::{HubClient, JsonArg, block_on, named};
use crate::output;
use crate::plural::counted;
use crate::settings::DataDirArg;
use crate::terminal::one_line;

/// Arguments of `plexus diff`.
#[derive(Debug, Args)]
#[command(
    after_help = "The session needs a worktree of its own. The diff compares the worktree with its initial state: the base commit, the copied files and the files that setup created.\n\n\
    Examples:\n  plexus diff fixer\n  plexus diff fixer src/main.rs\n  plexus diff fixer --stat"
)]
pub(crate) struct DiffArgs {
    /// The session, by name, path or id.
    pub(crate) session: String,
    /// Show only this file, with a longer diff.
    #[arg(value_name = "FILE")]
    pub(crate) path: Option<String>,
    /// List the files only.
    #[arg(long)]
    pub(crate) stat: bool,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

/// Prints the changes.
pub(crate) fn run(args: &DiffArgs) -> Result<(), ExpectedError> {
    block_on(async {
        let hub = HubClient::reach(&args.data_dir).await?;
        let mut params = named(&args.session);
        if let Some(path) = &args.path {
            params["path"] = json!(path);
        }
        let found: DiffResult = hub.call("claudecode.diff", params).await?;
        if args.json.json {
            output::json(&found);
            return Ok(());
        }
        let DiffResult::Ok { base, branch, files, truncated, .. } = found;
        let style = Style::of_stdout();
        for file in &files {
            output::print(&style.heading(file));
            if !args.stat {
                print_patch(file, style);
            }
        }
        let more =
            if truncated { " There are more files; `plexus diff SESSION FILE` shows one." } else { "" };
        let base = one_line(base.get(..12).unwrap_or(&base), 40);
        let count = match files.len() {
            0 => "no changes".to_owned(),
            some => format!("{} changed", counted(some, "file", "files")),
        };
        output::say(&format!("plexus: {count} since {base} on {}.{more}", one_line(&branch, 100)));
        Ok(())
    })
}

fn print_patch(file: &FileDiff, style: Style) {
    match &file.patch {
        Some(patch) => patch.lines().for_each(|line| output::print(&style.line(line))),
        None if file.binary => output::print("(a binary file)"),
        None => {}
    }
    if file.truncated {
        output::print("(the rest of this file is not shown)");
    }
}

/// Whether lines are coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    Coloured,
}

impl Style {
    fn of_stdout() -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        if std::io::stdout().is_terminal() && !unwanted { Self::Coloured } else { Self::Plain }
    }

    fn heading(self, file: &FileDiff) -> String {
        let mark = match file.status {
            FileStatus::Added => 'A',
            FileStatus::Modified => 'M',
            FileStatus::Deleted => 'D',
            FileStatus::Renamed => 'R',
            FileStatus::Untracked => '?',
        };
        let from =
            file.old_path.as_ref().map(|old| format!("{} -> ", one_line(old, 200))).unwrap_or_default();
        let path = one_line(&file.path, 200);
        self.paint("1", &format!("{mark} {from}{path} (+{} -{})", file.insertions, file.deletions))
    }

    /// A line of a patch. The agent wrote it, so it is escaped.
    fn line(self, line: &str) -> String {
        let safe = safe(line);
        match line.as_bytes().first() {
            Some(b'+') => self.paint("32", &safe),
            Some(b'-') => self.paint("31", &safe),
            Some(b'@') => self.paint("36", &safe),
            _ => safe.into_owned(),
        }
    }

    fn paint(self, colour: &str, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Coloured => format!("\x1b[{colour}m{text}\x1b[0m"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_coloured_by_their_sign_and_escaped() {
        assert_eq!(Style::Coloured.line("+a"), "\x1b[32m+a\x1b[0m");
        assert_eq!(Style::Coloured.line("-a"), "\x1b[31m-a\x1b[0m");
        assert_eq!(Style::Plain.line("+a\x1b[2J"), "+a\\u{1b}[2J");
        assert_eq!(Style::Coloured.line(" a"), " a");
    }
}
