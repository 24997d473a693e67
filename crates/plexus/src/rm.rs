//! `plexus rm`: deletes sessions and all sessions below them. It shows what is lost and asks first. Worktrees with work that
//! is not committed and merged stay.

use clap::Args;
use plexus_protocol::claudecode::{DeleteResult, SessionView};
use plexus_protocol::worktree::LeftWorktree;

use crate::error::ExpectedError;
use crate::hub::{HubClient, block_on, named};
use crate::plural::counted;
use crate::removal::{Removal, RemovalArgs, Target};
use crate::terminal::one_line;

/// Arguments of `plexus rm`.
#[derive(Debug, Args)]
#[command(
    after_help = "The processes are stopped and the names become free. The audit log stays, and so do worktrees with work that is not committed and merged.\n\n\
    Example:\n  plexus rm fixer reviewer"
)]
pub(crate) struct RmArgs {
    /// The sessions, by name, path or id.
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) flags: RemovalArgs,
}

/// Deletes the sessions in sequence.
pub(crate) fn run(args: &RmArgs) -> Result<(), ExpectedError> {
    block_on(async {
        let hub = HubClient::reach(&args.flags.data_dir).await?;
        let mut sessions = Vec::new();
        for name in &args.names {
            sessions.push(hub.session(name).await?);
        }
        let named_sessions: Vec<String> = sessions.iter().map(described).collect();
        let target =
            |session: SessionView| Target { params: named(&session.id.to_string()), name: session.path };
        let removal = Removal {
            question: format!("Delete {}?", named_sessions.join(", ")),
            method: "claudecode.delete",
            targets: sessions.into_iter().map(target).collect(),
        };
        args.flags.remove(&hub, removal, report).await
    })
}

/// What was deleted, and what happened to its worktrees.
fn report(name: &str, deleted: &DeleteResult) -> String {
    let DeleteResult::Ok { worktree, below, .. } = deleted;
    let left = worktree.iter().chain(below.iter().map(|below| &below.worktree));
    left.fold(format!("deleted {name}"), |text, left| format!("{text}\n  {}", outcome(left)))
}

/// A session and what is lost with it.
fn described(session: &SessionView) -> String {
    let tree = &session.tree;
    let facts = [
        (tree.sessions.saturating_sub(1), "session below it", "sessions below it"),
        (tree.running, "running turn", "running turns"),
        (tree.pending_approvals, "open approval", "open approvals"),
    ];
    let facts = facts.into_iter().filter(|(count, ..)| *count > 0);
    let facts: Vec<String> = facts.map(|(count, one, several)| counted(count, one, several)).collect();
    if facts.is_empty() {
        session.path.clone()
    } else {
        format!("{} with {}", session.path, facts.join(", "))
    }
}

fn outcome(worktree: &LeftWorktree) -> String {
    let path = one_line(&worktree.path, 200);
    let branch = one_line(&worktree.branch, 100);
    let why = match &worktree.error {
        Some(why) => one_line(why, 200),
        None => worktree.would_lose.iter().map(|loss| one_line(loss, 800)).collect::<Vec<_>>().join("; "),
    };
    match (worktree.kept, &worktree.error) {
        (false, None) => format!("deleted its worktree {path} and branch {branch}"),
        (false, Some(_)) => format!("cannot delete its worktree {path} (branch {branch}): {why}"),
        (true, _) => format!("kept its worktree {path} (branch {branch}): {why}"),
    }
}
