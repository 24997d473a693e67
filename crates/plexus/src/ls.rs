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
    let mut shown: Option<Listing> = None;
    loop {
        let change = tokio::select! {
            change = changes.next() => change.map_err(|error| hub.explain(error))?,
            _ = resized.recv() => {
                if let Some(listing) = shown.as_ref().filter(|_| !json.json && std::io::stdout().is_terminal()) {
                    draw(listing);
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
                let now = Listing::of(&sessions);
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

/// Clears a terminal and prints as much as fits, and how many rows do not; elsewhere prints each state below the previous one.
fn draw(listing: &Listing) {
    let stdout = std::io::stdout();
    if !stdout.is_terminal() {
        output::print(&format!("{}\n", listing.fitted(usize::MAX, usize::MAX)));
        return;
    }
    let (rows, columns) = match tcgetwinsize(&stdout) {
        Ok(size) if size.ws_row > 1 && size.ws_col > 0 => {
            (usize::from(size.ws_row), usize::from(size.ws_col))
        }
        _ => (24, 80),
    };
    output::print(&format!("\x1b[H\x1b[2J{}", listing.fitted(rows - 1, columns)));
}

/// The lines of the list.
#[derive(Debug, PartialEq, Eq)]
struct Listing {
    heading: String,
    rows: Vec<ListedRow>,
}

/// The line of a session.
#[derive(Debug, PartialEq, Eq)]
struct ListedRow {
    text: String,
    /// Whether the session waits for an answer of a person.
    waits: bool,
}

impl Listing {
    fn of(sessions: &[SessionView]) -> Self {
        let table = tree(sessions);
        let mut lines = table.lines().map(str::to_owned);
        let heading = lines.next().unwrap_or_default();
        let rows = lines.zip(sessions).map(|(text, session)| ListedRow { text, waits: waits(session) });
        Self { heading, rows: rows.collect() }
    }

    /// The part that fits in this many rows and columns. If rows are left out, sessions that wait come first, and the number of
    /// missing rows is shown.
    fn fitted(&self, rows: usize, columns: usize) -> String {
        let mut lines = vec![cut(&self.heading, columns)];
        if self.rows.len() < rows {
            lines.extend(self.rows.iter().map(|row| cut(&row.text, columns)));
            return lines.join("\n");
        }
        let (waiting, others): (Vec<_>, Vec<_>) = self.rows.iter().partition(|row| row.waits);
        let room = rows.saturating_sub(2);
        let ordered = waiting.iter().chain(&others);
        lines.extend(ordered.take(room).map(|row| cut(&row.text, columns)));
        let hidden = match waiting.len().saturating_sub(room) {
            0 => String::new(),
            hidden => format!(", {hidden} of them waiting for you"),
        };
        lines.push(cut(&format!("… and {} more{hidden}", self.rows.len().saturating_sub(room)), columns));
        // The smallest terminal shows the number alone.
        lines.split_off(lines.len().saturating_sub(rows.max(1))).join("\n")
    }
}

/// Whether a session waits for an answer of a person.
fn waits(session: &SessionView) -> bool {
    use Attention::{Budget, Permission, Plan, Question};
    let asks = |attention: &Attention| matches!(attention, Permission | Question | Plan | Budget);
    session.status == Status::AwaitingPermission
        || session.pending_approvals > 0
        || session.attention.iter().any(asks)
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
            one_line(&directory(session), 200),
        ]);
    }
    table.to_string()
}

/// The working directory, after the host that has it if there are several.
fn directory(session: &SessionView) -> String {
    match &session.host {
        Some(host) => format!("{host}:{}", session.working_dir),
        None => session.working_dir.clone(),
    }
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

    fn listing(rows: &[(&str, bool)]) -> Listing {
        let rows = rows.iter().map(|(text, waits)| ListedRow { text: (*text).to_owned(), waits: *waits });
        Listing { heading: "NAME  STATE".to_owned(), rows: rows.collect() }
    }

    #[test]
    fn rows_and_columns_that_do_not_fit_are_marked() {
        let idle = listing(&[("a     idle", false), ("b     running", false), ("c     idle", false)]);
        assert_eq!(idle.fitted(4, 80), "NAME  STATE\na     idle\nb     running\nc     idle");
        assert_eq!(idle.fitted(3, 80), "NAME  STATE\na     idle\n… and 2 more");
        assert_eq!(idle.fitted(1, 80), "… and 3 more");
        assert_eq!(idle.fitted(4, 8), "NAME  S…\na     i…\nb     r…\nc     i…");
        assert_eq!(cut("漢字漢字", 6), "漢字…");
    }

    #[test]
    fn sessions_that_wait_come_first_if_rows_are_left_out() {
        let some = listing(&[("a", false), ("b", true), ("c", false), ("d", true)]);
        assert_eq!(some.fitted(5, 80), "NAME  STATE\na\nb\nc\nd");
        assert_eq!(some.fitted(4, 80), "NAME  STATE\nb\nd\n… and 2 more");
        assert_eq!(some.fitted(3, 80), "NAME  STATE\nb\n… and 3 more, 1 of them waiting for you");
        assert_eq!(some.fitted(1, 80), "… and 4 more, 2 of them waiting for you");
    }
}
