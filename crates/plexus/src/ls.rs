//! `plexus ls`: prints the tree of sessions with their status, and with `-w` again after each change. The hub notifies it of changes;
//! it does not poll.

use std::io::IsTerminal as _;

use clap::Args;
use plexus_protocol::Attention;
use plexus_protocol::claudecode::{SessionView, Status};
use rustix::termios::tcgetwinsize;
use tokio::signal::unix::{SignalKind, signal};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::error::{ExpectedError, system};
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
    /// Also list the archived sessions.
    #[arg(short, long)]
    pub(crate) archived: bool,
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
            return watch(&hub, args).await;
        }
        let sessions = listed(&hub, args).await?;
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

/// The sessions that the arguments select.
async fn listed(hub: &HubClient, args: &LsArgs) -> Result<Vec<SessionView>, ExpectedError> {
    if args.archived { hub.all_sessions().await } else { hub.sessions().await }
}

async fn watch(hub: &HubClient, args: &LsArgs) -> Result<(), ExpectedError> {
    let json = &args.json;
    let mut changes = Follower::changes(&hub.client);
    let mut resized = signal(SignalKind::window_change()).map_err(system)?;
    let mut shown: Option<String> = None;
    loop {
        let change = tokio::select! {
            change = changes.next() => change.map_err(|error| hub.explain(error))?,
            _ = resized.recv() => {
                if let Some(table) = shown.as_deref().filter(|_| !json.json && std::io::stdout().is_terminal()) {
                    draw(table);
                }
                continue;
            }
        };
        match change {
            StreamItem::Disconnected => output::say("plexus: Disconnected. Reconnecting…"),
            StreamItem::Connected | StreamItem::Event { .. } => {
                let sessions = match listed(hub, args).await {
                    // The hub is stopping; the stream will report it.
                    Err(ExpectedError::NoHub(_) | ExpectedError::Lost(_)) => continue,
                    sessions => sessions?,
                };
                let now = tree(&sessions);
                if shown.as_deref() == Some(&now) {
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

/// Clears a terminal and prints as much as fits, and how many rows do not; elsewhere prints each state below the previous one.
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
    output::print(&format!("\x1b[H\x1b[2J{}", fitted(table, rows - 1, columns)));
}

/// The part of a table that fits in this many rows and columns. A missing part is marked.
fn fitted(table: &str, rows: usize, columns: usize) -> String {
    let count = table.lines().count();
    let room = if count > rows { rows.saturating_sub(1) } else { rows };
    let mut lines: Vec<String> = table.lines().take(room).map(|line| cut(line, columns)).collect();
    if count > room {
        lines.push(cut(&format!("… and {} more", count - room), columns));
    }
    lines.join("\n")
}

/// The start of a line that fits in this many columns.
fn cut(line: &str, columns: usize) -> String {
    if line.width() <= columns {
        return line.to_owned();
    }
    let mut start = String::new();
    let mut width = 1;
    for c in line.chars() {
        width += c.width().unwrap_or(0);
        if width > columns {
            break;
        }
        start.push(c);
    }
    start + "…"
}

/// The sessions as a table, children below their parents. Each has its path, which every verb accepts.
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
        table.row([
            one_line(&session.path, 200),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_columns_that_do_not_fit_are_marked() {
        let table = "NAME  STATE\na     idle\nb     running\nc     idle";
        assert_eq!(fitted(table, 4, 80), table);
        assert_eq!(fitted(table, 3, 80), "NAME  STATE\na     idle\n… and 2 more");
        assert_eq!(fitted(table, 1, 80), "… and 4 more");
        assert_eq!(fitted(table, 4, 8), "NAME  S…\na     i…\nb     r…\nc     i…");
        assert_eq!(cut("漢字漢字", 6), "漢字…");
    }
}
