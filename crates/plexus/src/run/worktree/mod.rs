//! The end of `plexus run --worktree`: shows the changes of the session. At a terminal, `offer` asks whether to commit or merge them;
//! elsewhere the commands for it are printed.

mod git_programs;
mod offer;

use std::borrow::Cow;
use std::path::Path;

use plexus_protocol::SessionId;
use plexus_protocol::claudecode::DiffResult;
use plexus_protocol::worktree::{FileDiff, WorktreeView};
use serde_json::json;

use crate::error::ExpectedError;
use crate::hub::HubClient;
use crate::output;
use crate::paint::Paint;
use crate::review::{Row, Tone, fit};
use crate::terminal::{one_line, size};
use crate::terminal_session::OutputMode;
use crate::typed::Typed;

/// How many lines of diffs are shown.
const MAX_LINES: usize = 200;

/// The session whose worktree is shown.
pub(super) struct Ended<'a> {
    pub(super) id: SessionId,
    pub(super) name: &'a str,
    /// A directory of the user's own checkout.
    pub(super) dir: &'a Path,
}

/// Shows the changes, if the session has a worktree, and offers to commit or merge them.
pub(super) async fn finish(
    hub: &HubClient,
    ended: &Ended<'_>,
    mode: OutputMode,
    typed: &mut Typed,
) -> Result<(), ExpectedError> {
    let Ended { id, name, dir } = *ended;
    let session = hub.session(&id.to_string()).await?;
    let Some(worktree) = session.worktree else { return Ok(()) };
    let DiffResult::Ok { files, truncated, .. } =
        hub.call("claudecode.diff", json!({"session_id": id})).await?;
    let mut rows = rows(&files);
    if rows.len() > MAX_LINES || truncated {
        rows.truncate(MAX_LINES);
        rows.push(Row::new(Tone::Dim, &format!("… `plexus diff {name}` shows more")));
    }
    let paint = Paint::of(&std::io::stdout());
    for row in fit(&rows, size().0) {
        output::print(&paint.row(&row));
    }
    let commits = worktree.changes.map_or(0, |changes| changes.commits);
    if files.is_empty() && commits == 0 {
        output::say(&format!(
            "plexus: the worktree has no changes; `plexus rm {name}` deletes the session and its worktree"
        ));
    } else if mode == OutputMode::Terminal {
        offer::offer(hub, ended, typed, worktree).await?;
    } else {
        output::say(&commands(&worktree, dir));
    }
    Ok(())
}

/// What is left to do with the changes of a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Remaining {
    /// Some are not committed.
    Uncommitted,
    /// All are committed, and some are not merged.
    Unmerged,
    Nothing,
}

impl Remaining {
    /// A worktree that cannot be compared counts as uncommitted.
    fn of(worktree: &WorktreeView) -> Self {
        let (Some(state), Some(changes)) = (&worktree.state, &worktree.changes) else {
            return Self::Uncommitted;
        };
        match (state.uncommitted, state.merged || changes.commits == 0) {
            (0, true) => Self::Nothing,
            (0, false) => Self::Unmerged,
            (1.., _) => Self::Uncommitted,
        }
    }
}

/// A title for each file, and its diff. Each line of a file has a prefix.
fn rows(files: &[FileDiff]) -> Vec<Row> {
    let mut rows = Vec::new();
    for file in files {
        let counts = format!("+{} -{}", file.insertions, file.deletions);
        rows.push(Row::led(Tone::Strong, "# ", &format!("{} {counts}", one_line(&file.path, 400))));
        for line in file.patch.as_deref().unwrap_or_default().lines() {
            let (tone, hidden) = match line.as_bytes().first() {
                Some(b'+') => (Tone::Added, line.starts_with("+++ ")),
                Some(b'-') => (Tone::Removed, line.starts_with("--- ")),
                Some(b' ') => (Tone::Plain, false),
                Some(b'@') => (Tone::Dim, false),
                // The header repeats the path.
                _ => (Tone::Dim, true),
            };
            if !hidden {
                rows.push(Row::led(tone, "  ", line));
            }
        }
    }
    rows
}

/// The next commands of the user.
fn commands(worktree: &WorktreeView, dir: &Path) -> String {
    let (path, branch, dir) = (quoted(&worktree.path), quoted(&worktree.branch), dir.to_string_lossy());
    let dir = quoted(&dir);
    let remaining = Remaining::of(worktree);
    let mut lines = vec![format!("plexus: the changes are in {path}, branch {branch}")];
    if remaining == Remaining::Uncommitted {
        lines.push(format!("  commit:  git -C {path} add -A && git -C {path} commit"));
    }
    if remaining != Remaining::Nothing {
        lines.push(format!("  merge:   git -C {dir} merge {branch}"));
    }
    lines.push(format!(
        "  discard: git -C {dir} worktree remove --force {path} && git -C {dir} branch -D {branch}\n\
         Git runs the hooks and filters of the repository, and an agent can change them: check .git/config and .git/hooks first."
    ));
    lines.join("\n")
}

/// A word for the shell.
fn quoted(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => Cow::Borrowed(word),
        false => Cow::Owned(format!("'{}'", one_line(word, usize::MAX).replace('\'', "'\\''"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::from_value;

    fn file(patch: &str) -> FileDiff {
        from_value(json!({"path": "a\u{1b}.rs", "status": "modified", "insertions": 1, "deletions": 1, "binary": false, "patch": patch})).unwrap()
    }

    #[test]
    fn a_diff_is_coloured_and_escaped() {
        let patch = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n x\n-old\n+new\u{1b}[2J\n";
        let shown: Vec<String> = rows(&[file(patch)])
            .iter()
            .map(|row| format!("{:?} {}{}", row.tone, row.lead, row.text))
            .collect();
        assert_eq!(
            shown,
            [
                "Strong # a\\u{1b}.rs +1 -1",
                "Dim   @@ -1,2 +1,2 @@",
                "Plain    x",
                "Removed   -old",
                "Added   +new\\u{1b}[2J"
            ]
        );
    }

    #[test]
    fn the_next_commands_can_be_pasted() {
        let worktree: WorktreeView =
            from_value(json!({"path": "/w t/it's", "branch": "plexus/a-1"})).unwrap();
        let said = commands(&worktree, Path::new("/src/my app"));
        assert!(
            said.contains("git -C '/w t/it'\\''s' commit")
                && said.contains("git -C '/src/my app' merge plexus/a-1\n"),
            "{said}"
        );
    }

    #[test]
    fn only_commands_that_are_left_to_run_are_shown() {
        let worktree = |uncommitted: u64, commits: u64, merged: bool| -> WorktreeView {
            let changes = json!({"files": 1, "insertions": 1, "deletions": 0, "commits": commits});
            let state = json!({"uncommitted": uncommitted, "merged": merged});
            from_value(json!({"path": "/w", "branch": "b", "changes": changes, "state": state})).unwrap()
        };
        let shown = |worktree: WorktreeView| {
            let said = commands(&worktree, Path::new("/src"));
            (said.contains("commit:"), said.contains("merge:"))
        };
        assert_eq!(shown(worktree(1, 1, true)), (true, true));
        assert_eq!(shown(worktree(0, 1, false)), (false, true));
        assert_eq!(shown(worktree(0, 1, true)), (false, false));
    }
}
