//! Asks whether to commit or merge the changes of a worktree, and runs the user's own git at the user's terminal. The hub never runs
//! git (docs/design/8-worktrees.md). Programs that git could run for the repository are shown first.

use std::collections::BTreeSet;
use std::path::Path;

use plexus_protocol::worktree::WorktreeView;
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

use super::{commands, git_programs};
use crate::escape::one_line;
use crate::output;
use crate::review::confirm::{line, prompt};
use crate::typed::Typed;

/// The user's choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    Commit,
    Merge,
    Leave,
}

/// Asks until the changes are merged or left.
pub(super) async fn offer(typed: &mut Typed, worktree: &WorktreeView, dir: &Path, name: &str) {
    let path = Path::new(&worktree.path);
    output::say(&format!(
        "plexus: the changes are in {}, branch {}",
        one_line(&worktree.path),
        one_line(&worktree.branch)
    ));
    loop {
        let result = match choose(typed, dir).await {
            Choice::Leave => return output::say(&commands(worktree, dir)),
            Choice::Commit => commit(typed, path).await,
            Choice::Merge => merge(typed, worktree, dir).await,
        };
        match result {
            Ok(Choice::Merge) => {
                return output::say(&format!(
                    "plexus: merged; `plexus rm {name}` deletes the session and its worktree"
                ));
            }
            Ok(_) => {}
            Err(why) => output::say(&format!("plexus: {why}")),
        }
    }
}

async fn choose(typed: &mut Typed, dir: &Path) -> Choice {
    typed.discard();
    loop {
        let dir = one_line(&dir.to_string_lossy());
        prompt(&format!("Commit (c), commit and merge into {dir} (m), or leave the changes there (Enter)? "));
        match line(typed).await.map(|line| line.to_ascii_lowercase()).as_deref() {
            Some("c" | "commit") => return Choice::Commit,
            Some("m" | "merge") => return Choice::Merge,
            Some("" | "l" | "leave" | "n" | "no" | "q") | None => return Choice::Leave,
            Some(_) => {}
        }
    }
}

async fn commit(typed: &mut Typed, path: &Path) -> Result<Choice, String> {
    let programs = accept_programs(typed, &[path]).await?;
    programs.git(path, &["add", "-A"]).await?;
    programs.git(path, &["commit"]).await?;
    Ok(Choice::Commit)
}

async fn merge(typed: &mut Typed, worktree: &WorktreeView, dir: &Path) -> Result<Choice, String> {
    let path = Path::new(&worktree.path);
    // The worktree's link to its repository can lead elsewhere, so both are searched.
    let programs = accept_programs(typed, &[path, dir]).await?;
    programs.git(path, &["add", "-A"]).await?;
    // Fails if something is staged.
    if programs.git(path, &["diff", "--cached", "--quiet"]).await.is_err() {
        programs.git(path, &["commit"]).await?;
    }
    let branch = format!("refs/heads/{}", worktree.branch);
    programs.git(dir, &["merge", &branch]).await?;
    Ok(Choice::Merge)
}

/// The programs that the user accepted. The agent may still run and add others, so they are compared before each git command.
struct AcceptedPrograms<'a> {
    dirs: Vec<&'a Path>,
    accepted: BTreeSet<String>,
}

impl AcceptedPrograms<'_> {
    /// Runs git at the user's terminal, unless it could run a program that the user has not seen.
    async fn git(&self, dir: &Path, args: &[&str]) -> Result<(), String> {
        let now = find_programs(&self.dirs).await?;
        match now.difference(&self.accepted).next() {
            Some(added) => {
                Err(format!("git was not run, because this was added meanwhile: {}", one_line(added)))
            }
            None => git(dir, args).await,
        }
    }
}

async fn find_programs(dirs: &[&Path]) -> Result<BTreeSet<String>, String> {
    let mut found = BTreeSet::new();
    for dir in dirs {
        found.extend(git_programs::find(dir).await?);
    }
    Ok(found)
}

/// Shows the programs that git could run, and asks.
async fn accept_programs<'a>(typed: &mut Typed, dirs: &[&'a Path]) -> Result<AcceptedPrograms<'a>, String> {
    let found = find_programs(dirs).await?;
    let programs = AcceptedPrograms { dirs: dirs.to_vec(), accepted: found.clone() };
    if found.is_empty() {
        return Ok(programs);
    }
    output::say("plexus: git may run programs of this repository, and an agent can have changed them:");
    for program in &found {
        output::say(&format!("  {}", one_line(program)));
    }
    typed.discard();
    loop {
        prompt("Run git with them? y or n: ");
        match line(typed).await.map(|line| line.to_ascii_lowercase()).as_deref() {
            Some("y" | "yes") => return Ok(programs),
            Some("" | "n" | "no" | "q") | None => return Err("git was not run".to_owned()),
            Some(_) => {}
        }
    }
}

/// Runs git at the user's terminal.
async fn git(dir: &Path, args: &[&str]) -> Result<(), String> {
    let failed = |why: String| format!("git {} {why}", args.join(" "));
    // Git and its editor handle Ctrl-C.
    let _interrupts = signal(SignalKind::interrupt()).map_err(|error| failed(error.to_string()))?;
    let status = Command::new("git").arg("-C").arg(dir).args(args).status().await;
    let status = status.map_err(|error| failed(format!("could not be run: {error}")))?;
    if status.success() { Ok(()) } else { Err(failed(format!("failed ({status})"))) }
}
