//! `plexus compact`: has Claude Code replace the conversation of a session with a summary, and follows that turn to its end.

use clap::Args;
use plexus_protocol::claudecode::{ChatAsyncResult, Status};
use serde_json::json;

use crate::error::ExpectedError;
use crate::hub::{HubClient, JsonArg, block_on};
use crate::output;
use crate::run::outcome;
use crate::settings::DataDirArg;
use crate::terminal_session::{OutputMode, Purpose, Start, TerminalSession, output_mode};

/// Arguments of `plexus compact`.
#[derive(Debug, Args)]
#[command(
    after_help = "This is Claude Code's own command /compact. It makes one model call, whose cost counts. The session must be idle; its process is \
    restarted, which ends commands that the agent left running in the background. A fork can no longer start before the summary.\n\n\
    In `plexus attach`, type /compact.\n\n\
    Examples:\n  plexus compact fixer\n  plexus compact fixer \"Keep the list of failing tests\""
)]
pub(crate) struct CompactArgs {
    /// The session, by name, path or id.
    pub(crate) name: String,
    /// What the summary has to keep; several words are joined by spaces.
    #[arg(value_name = "INSTRUCTIONS")]
    pub(crate) instructions: Vec<String>,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

/// Compacts the conversation.
pub(crate) fn run(args: &CompactArgs) -> Result<(), ExpectedError> {
    block_on(async {
        let hub = HubClient::reach(&args.data_dir).await?;
        let session = hub.session(&args.name).await?;
        let params = json!({"session_id": session.id, "instructions": args.instructions.join(" ")});
        let ChatAsyncResult::Started { turn, cursor, .. } = hub.call("claudecode.compact", params).await?;
        let output_mode = output_mode(args.json);
        if output_mode != OutputMode::Json {
            output::say(&format!("plexus: compacting the conversation of {}", session.name));
        }
        let start = Start {
            id: session.id,
            name: session.name.to_string(),
            purpose: Purpose::Turn(turn),
            turn,
            status: Status::Running,
            cost_usd: 0.0,
            own_turn: Some(turn),
            cursor,
        };
        let mut terminal = TerminalSession::new(&hub, &start, output_mode);
        terminal.catch_up().await?;
        outcome(terminal.run(&start).await?)
    })
}
