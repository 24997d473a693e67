//! Asks whether to commit or merge the changes of a worktree, and runs the user's own git at the user's terminal. The hub never runs
//! git (docs/design/8-worktrees.md). Programs that git could run for the repository are shown first.

use std::collections::BTreeSet;
use std::path::Path;

use plexus_protocol::worktree::WorktreeView;
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

use super::{Ended, Remaining, commands, git_programs};
use crate::error::ExpectedError;
use crate::escape::one_line;
use crate::hub::HubClient;
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

/// Asks until the changes are merged or left. Each prompt offers what is possible at that time.
pub(super) async fn offer(
    hub: &HubClient,
    ended: &Ended<'_>,
    typed: &mut Typed,
    mut worktree: WorktreeView,
) -> Result<(), ExpectedError> {
    let Ended { id, name, dir } = *ended;
    let path = worktree.path.clone();
    output::say(&format!(
        "plexus: the changes are in {}, branch {}",
        one_line(&worktree.path),
        one_line(&worktree.branch)
    ));
    loop {
        let remaining = Remaining::of(&worktree);
        if remaining == Remaining::Nothing {
            output::say(&merged(name));
            return Ok(());
        }
        let checkout = Checkout::of(dir).await;
        let result = match choose(typed, dir, remaining, checkout).await {
            Choice::Leave => {
                output::say(&commands(&worktree, dir));
                return Ok(());
            }
            Choice::Commit => commit(typed, Path::new(&path)).await,
            Choice::Merge => merge(typed, &worktree, dir).await,
        };
        match result {
            Ok(Choice::Merge) => {
                output::say(&merged(name));
                return Ok(());
            }
            Ok(_) => {}
            Err(why) => output::say(&format!("plexus: {why}")),
        }
        match hub.session(&id.to_string()).await?.worktree {
            Some(now) => worktree = now,
            None => return Ok(()),
        }
    }
}

fn merged(name: &str) -> String {
    format!("plexus: merged; `plexus rm {name}` deletes the session and its worktree")
}

/// Whether the user's checkout can take a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Checkout {
    Ready,
    /// An earlier merge there has not ended.
    Merging,
}

impl Checkout {
    async fn of(dir: &Path) -> Self {
        let merging =
            git_programs::git_output(dir, &["rev-parse", "--quiet", "--verify", "MERGE_HEAD"]).await;
        if merging.is_ok() { Self::Merging } else { Self::Ready }
    }
}

/// The prompt for what is possible, and its choices.
fn question(dir: &str, remaining: Remaining, checkout: Checkout) -> (String, &'static [Choice]) {
    match (remaining, checkout) {
        (Remaining::Uncommitted, Checkout::Ready) => (
            format!("Commit (c), commit and merge into {dir} (m), or leave the changes there (Enter)? "),
            &[Choice::Commit, Choice::Merge, Choice::Leave],
        ),
        (Remaining::Uncommitted, Checkout::Merging) => {
            ("Commit (c), or leave the changes there (Enter)? ".to_owned(), &[Choice::Commit, Choice::Leave])
        }
        (Remaining::Unmerged | Remaining::Nothing, Checkout::Ready) => (
            format!("Everything is committed. Merge into {dir} (m), or leave the commits there (Enter)? "),
            &[Choice::Merge, Choice::Leave],
        ),
        (Remaining::Unmerged | Remaining::Nothing, Checkout::Merging) => {
            ("Everything is committed. Enter leaves the commits there: ".to_owned(), &[Choice::Leave])
        }
    }
}

async fn choose(typed: &mut Typed, dir: &Path, remaining: Remaining, checkout: Checkout) -> Choice {
    typed.discard();
    let dir = one_line(&dir.to_string_lossy());
    if checkout == Checkout::Merging {
        output::say(&format!(
            "plexus: a merge is in progress in {dir}; resolve its conflicts and commit, or run `git merge --abort` there"
        ));
    }
    let (question, possible) = question(&dir, remaining, checkout);
    loop {
        prompt(&question);
        let choice = match line(typed).await.map(|line| line.to_ascii_lowercase()).as_deref() {
            Some("c" | "commit") => Choice::Commit,
            Some("m" | "merge") => Choice::Merge,
            Some("" | "l" | "leave" | "n" | "no" | "q") | None => Choice::Leave,
            Some(_) => continue,
        };
        if possible.contains(&choice) {
            return choice;
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
