//! `plexus attach`: follows an existing session, answers its approvals and sends it prompts. Leaving does not change the session.

use clap::Args;
use plexus_protocol::claudecode::Status;
use plexus_protocol::worktree::WorktreeChanges;
use serde_json::{Value, json};

use crate::error::ExpectedError;
use crate::hub::{HubClient, JsonArg, block_on};
use crate::output;
use crate::run::outcome;
use crate::settings::DataDirArg;
use crate::terminal_session::{OutputMode, Purpose, Start, TerminalSession, output_mode};

/// Arguments of `plexus attach`.
#[derive(Debug, Args)]
#[command(
    after_help = "At a terminal, a line you type goes to the agent: into its turn while it works, as its next prompt otherwise. \
    It is sent literally. Two commands are for Plexus: /compact [INSTRUCTIONS] replaces the conversation with a summary, and /attach FILE adds an image, a PDF document or a \
    text file to your next line. \
    Approval requests are answered as with `plexus run`. Ctrl-C interrupts a running turn, a second one leaves; so does Ctrl-D.\n\n\
    Without a terminal, it follows the current turn to its end and exits like `plexus run`.\n\nExample:\n  plexus attach fixer"
)]
pub(crate) struct AttachArgs {
    /// The session, by name, path or id.
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

/// Follows a session.
pub(crate) fn run(args: &AttachArgs) -> Result<(), ExpectedError> {
    block_on(async {
        let hub = HubClient::reach(&args.data_dir).await?;
        let session = hub.session(&args.name).await?;
        let seen: Value = hub.call("loopback.wait", json!({"timeout_ms": 0})).await?;
        let output_mode = output_mode(args.json);
        let start = Start {
            id: session.id,
            name: session.path.clone(),
            purpose: if output_mode == OutputMode::Terminal {
                Purpose::Stay
            } else {
                Purpose::Turn(session.turn)
            },
            turn: session.turn,
            status: session.status,
            cost_usd: session.cost_usd,
            own_turn: None,
            cursor: seen["cursor"].as_u64().unwrap_or_default(),
        };
        if output_mode != OutputMode::Terminal && session.status == Status::Idle {
            output::say(&format!("plexus: {} has had no turn yet", session.path));
            return Ok(());
        }
        let mut terminal = TerminalSession::new(&hub, &start, output_mode);
        terminal.catch_up().await?;
        terminal.add_pending(hub.pending().await?).await?;
        let status = terminal.run(&start).await?;
        if output_mode != OutputMode::Terminal {
            return outcome(status);
        }
        if !matches!(status, Status::Running | Status::AwaitingPermission) {
            report_changes(&hub, &args.name).await?;
        }
        Ok(())
    })
}

/// Reports changes in the worktree of a session that has ended its turn.
async fn report_changes(hub: &HubClient, name: &str) -> Result<(), ExpectedError> {
    let session = hub.session(name).await?;
    let Some(changes) = session.worktree.and_then(|worktree| worktree.changes) else { return Ok(()) };
    if changes != WorktreeChanges::default() {
        let WorktreeChanges { files, insertions, deletions, commits, .. } = changes;
        output::say(&format!(
            "plexus: changes in the worktree of {name}: files {files}, lines +{insertions} -{deletions}, commits {commits}; \
             `plexus diff {name}` shows them"
        ));
    }
    Ok(())
}
