//! `plexus rm`: deletes sessions and all sessions below them. It shows what is lost and asks first. Worktrees with changes stay.

use clap::Args;
use plexus_protocol::claudecode::{DeleteResult, SessionView};
use plexus_protocol::worktree::LeftWorktree;

use crate::confirm_loss::YesArg;
use crate::error::ExpectedError;
use crate::hub::{HubClient, JsonArg, block_on, named};
use crate::output;
use crate::settings::DataDirArg;
use crate::terminal::one_line;

/// Arguments of `plexus rm`.
#[derive(Debug, Args)]
#[command(
    after_help = "The processes are stopped and the names become free. The audit log stays, and so do worktrees with changes.\n\n\
    Example:\n  plexus rm fixer reviewer"
)]
pub(crate) struct RmArgs {
    /// The sessions, by name or id.
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) yes: YesArg,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

/// Deletes the sessions in sequence.
pub(crate) fn run(args: &RmArgs) -> Result<(), ExpectedError> {
    block_on(async {
        let hub = HubClient::reach(&args.data_dir).await?;
        let mut sessions = Vec::new();
        for name in &args.names {
            sessions.push(hub.session(name).await?);
        }
        let named_sessions: Vec<String> = sessions.iter().map(described).collect();
        args.yes.confirm(&format!("Delete {}?", named_sessions.join(", "))).await?;
        for session in sessions {
            let deleted: DeleteResult = hub.call("claudecode.delete", named(&session.id.to_string())).await?;
            if args.json.json {
                output::json_line(&deleted);
                continue;
            }
            output::print(&format!("deleted {}", session.name));
            let DeleteResult::Ok { worktree, below, .. } = deleted;
            for left in worktree.into_iter().chain(below.into_iter().map(|below| below.worktree)) {
                output::print(&format!("  {}", outcome(&left)));
            }
        }
        Ok(())
    })
}

/// A session and what is lost with it.
fn described(session: &SessionView) -> String {
    let mut facts = Vec::new();
    match session.tree.sessions.saturating_sub(1) {
        0 => {}
        1 => facts.push("1 session below it".to_owned()),
        several => facts.push(format!("{several} sessions below it")),
    }
    match session.tree.running {
        0 => {}
        1 => facts.push("1 running turn".to_owned()),
        several => facts.push(format!("{several} running turns")),
    }
    match session.tree.pending_approvals {
        0 => {}
        1 => facts.push("1 open approval".to_owned()),
        several => facts.push(format!("{several} open approvals")),
    }
    if facts.is_empty() {
        session.name.to_string()
    } else {
        format!("{} with {}", session.name, facts.join(", "))
    }
}

fn outcome(worktree: &LeftWorktree) -> String {
    let path = one_line(&worktree.path, 200);
    let branch = one_line(&worktree.branch, 100);
    match (worktree.kept, &worktree.error) {
        (false, _) => format!("deleted its unchanged worktree {path}"),
        (true, None) => format!("kept its worktree {path} (branch {branch}), because it has changes"),
        (true, Some(why)) => format!("kept its worktree {path} (branch {branch}): {}", one_line(why, 200)),
    }
}
