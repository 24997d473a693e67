//! `plexus ls`: prints the tree of sessions with their status, and with `-w` again after each change. The hub notifies it of changes;
//! it does not poll.

use std::io::IsTerminal as _;

use clap::Args;
use plexus_protocol::Attention;
use plexus_protocol::claudecode::{SessionView, Status};
use rustix::termios::tcgetwinsize;

use crate::error::ExpectedError;
use crate::follow::{Follower, StreamItem};
use crate::hub::{HubClient, JsonArg, block_on};
use crate::output;
use crate::settings::DataDirArg;
use crate::table::{Align, Table};
use crate::terminal::one_line;

/// Arguments of `plexus ls`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plexus ls\n  plexus ls -w                          live, until Ctrl-C\n  plexus ls --json | jq -r '.[].name'"
)]
pub(crate) struct LsArgs {
    /// Update the list whenever something changes.
    #[arg(short, long)]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

/// Prints the tree.
pub(crate) fn run(args: &LsArgs) -> Result<(), ExpectedError> {
    block_on(async {
        let hub = HubClient::reach(&args.data_dir).await?;
        if args.watch {
            return watch(&hub, args.json).await;
        }
        let sessions = hub.sessions().await?;
        if args.json.json {
            output::json(&sessions);
        } else if sessions.is_empty() {
            output::say("plexus: no sessions; `plexus run \"…\"` creates one");
        } else {
            output::print(&tree(&sessions));
        }
        Ok(())
    })
}

async fn watch(hub: &HubClient, json: JsonArg) -> Result<(), ExpectedError> {
    let mut changes = Follower::changes(&hub.client);
    let mut shown = None;
    loop {
        match changes.next().await.map_err(|error| hub.explain(error))? {
            StreamItem::Disconnected => output::say("plexus: Disconnected. Reconnecting…"),
            StreamItem::Connected | StreamItem::Event { .. } => {
                let sessions = match hub.sessions().await {
                    // The hub is stopping; the stream will report it.
                    Err(ExpectedError::NoHub(_) | ExpectedError::Lost(_)) => continue,
                    sessions => sessions?,
                };
                let now = tree(&sessions);
                if shown.as_ref() == Some(&now) {
                    continue;
                }
                if json.json {
                    output::json_line(&sessions);
                } else {
                    draw(&now);
                }
                shown = Some(now);
            }
        }
    }
}

/// Clears a terminal and prints as much as fits; elsewhere prints each state below the previous one.
fn draw(table: &str) {
    let stdout = std::io::stdout();
    if !stdout.is_terminal() {
        output::print(&format!("{table}\n"));
        return;
    }
    let (rows, columns) = match tcgetwinsize(&stdout) {
        Ok(size) if size.ws_row > 1 && size.ws_col > 0 => {
            (usize::from(size.ws_row), usize::from(size.ws_col))
        }
        _ => (24, 80),
    };
    let lines: Vec<String> =
        table.lines().take(rows - 1).map(|line| line.chars().take(columns).collect()).collect();
    output::print(&format!("\x1b[H\x1b[2J{}", lines.join("\n")));
}

/// The sessions as a table, children indented below their parents.
pub(crate) fn tree(sessions: &[SessionView]) -> String {
    let mut table = Table::new(&[
        ("NAME", Align::Left),
        ("STATE", Align::Left),
        ("TURN", Align::Right),
        ("OPEN", Align::Right),
        ("COST", Align::Right),
        ("DIRECTORY", Align::Left),
    ]);
    for session in sessions {
        let indent = "  ".repeat(session.depth as usize);
        table.row([
            format!("{indent}{}", session.name),
            state(session),
            session.turn.to_string(),
            session.pending_approvals.to_string(),
            format!("${:.4}", session.cost_usd),
            one_line(&session.working_dir, 200),
        ]);
    }
    table.to_string()
}

/// The status of a session, followed by what blocks it.
pub(crate) fn state(session: &SessionView) -> String {
    let mut words = vec![status(session.status).to_owned()];
    let beyond = session.attention.iter().filter_map(|attention| match attention {
        // The status says this already.
        Attention::Permission => None,
        Attention::Question => Some("question"),
        Attention::Plan => Some("plan"),
        Attention::Budget => Some("budget"),
        Attention::RateLimited => Some("rate limited"),
        Attention::ApiRetry => Some("api retry"),
        Attention::Stalled => Some("stalled"),
    });
    words.extend(beyond.map(str::to_owned));
    if !session.loopback_enabled {
        words.push("no gate".to_owned());
    }
    words.join(", ")
}

/// The name of a status.
pub(crate) fn status(status: Status) -> &'static str {
    match status {
        Status::Idle => "idle",
        Status::Running => "running",
        Status::AwaitingPermission => "awaiting approval",
        Status::Complete => "complete",
        Status::Failed => "failed",
        Status::Interrupted => "interrupted",
    }
}
