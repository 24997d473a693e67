//! `plexus logs`: prints the events of a session, of all turns or the last ones, and follows new events with `-f`. With
//! `--raw` or `--stderr` it prints what the session's process wrote.

mod raw;

use clap::Args;
use plexus_protocol::claudecode::OutputStream;
use serde_json::Value;

use crate::error::ExpectedError;
use crate::follow::{EventPosition, Follower, StreamItem};
use crate::hub::{HubClient, JsonArg, block_on};
use crate::output;
use crate::prompts;
use crate::settings::DataDirArg;
use crate::show::Events;
use crate::stored_events::StoredEvents;

/// Arguments of `plexus logs`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plexus logs fixer\n  plexus logs fixer -f --turns 1\n  plexus logs fixer --json | jq .event.type\n  \
    plexus logs fixer --raw | jq -c .type\n  plexus logs fixer --stderr --run 1"
)]
pub(crate) struct LogsArgs {
    /// The session, by name, path or id.
    pub(crate) name: String,
    /// Follow new events.
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only the last N turns.
    #[arg(long, value_name = "N")]
    pub(crate) turns: Option<u64>,
    /// Print the lines of Claude Code as they were written, of the latest process.
    #[arg(long, group = "output", conflicts_with_all = ["follow", "turns"])]
    pub(crate) raw: bool,
    /// Print the end of stderr of the latest process.
    #[arg(long, group = "output", conflicts_with_all = ["follow", "turns"])]
    pub(crate) stderr: bool,
    /// With --raw or --stderr: print the output of process N of the session, from 1.
    #[arg(long, requires = "output", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) run: Option<u32>,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

/// Prints the events.
pub(crate) fn run(args: &LogsArgs) -> Result<(), ExpectedError> {
    block_on(async {
        let hub = HubClient::reach(&args.data_dir).await?;
        let stream = match args {
            LogsArgs { raw: true, .. } => Some(OutputStream::Journal),
            LogsArgs { stderr: true, .. } => Some(OutputStream::Stderr),
            _ => None,
        };
        if let Some(stream) = stream {
            return raw::print(&hub, args, stream).await;
        }
        let session = hub.session(&args.name).await?;
        let latest = session.turn;
        let first = args.turns.map_or(1, |turns| (latest + 1).saturating_sub(turns).max(1));
        let mut printer = Printer { json: args.json.json, turn: 0, events: Events::default() };
        let mut next = EventPosition::START;
        for turn in first..=latest {
            let mut rest = StoredEvents::of(session.id, turn);
            while let Some(page) = rest.page(&hub).await? {
                for event in page.events {
                    printer.print(&hub, event).await;
                }
            }
            next = rest.next();
        }
        if !args.follow {
            return Ok(());
        }
        let mut follower = Follower::session(&hub.client, session.id, next);
        loop {
            match follower.next().await.map_err(|error| hub.explain(error))? {
                StreamItem::Event { kind: None, data } => printer.print(&hub, data).await,
                StreamItem::Event { .. } | StreamItem::Connected => {}
                StreamItem::Disconnected => output::say("plexus: Disconnected. Reconnecting…"),
            }
        }
    })
}

struct Printer {
    json: bool,
    /// The turn that was shown last.
    turn: u64,
    events: Events,
}

impl Printer {
    async fn print(&mut self, hub: &HubClient, mut event: Value) {
        if self.json {
            output::json_line(&event);
            return;
        }
        prompts::add_text(hub, &mut event["event"]).await;
        let turn = event["turn"].as_u64().unwrap_or(self.turn);
        if turn != self.turn {
            self.turn = turn;
            output::print(&format!("-- turn {turn}"));
        }
        if let Some(lines) = self.events.event(&event["event"]) {
            output::print(&lines);
        }
    }
}
