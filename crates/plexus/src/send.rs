//! `plexus send`: sends a message to an agent, into its running turn or as the next prompt. It does not wait for the answer.

use std::path::PathBuf;

use clap::Args;
use plexus_protocol::claudecode::{ChatAsyncResult, SendResult, Status};
use serde_json::{Value, json};

use crate::client::CallError;
use crate::error::{ExpectedError, system};
use crate::hub::{HubClient, JsonArg, block_on};
use crate::run::given;
use crate::settings::DataDirArg;
use crate::{attachments, output};

/// Arguments of `plexus send`.
#[derive(Debug, Args)]
#[command(
    after_help = "If a turn is running, the message is added to it. Otherwise it starts the next turn.\n\n\
    Examples:\n  plexus send fixer \"Also run the linter\"\n  plexus send fixer --attach shot.png \"It looks like this now\"\n  plexus attach fixer   follows the session"
)]
pub(crate) struct SendArgs {
    /// The session, by name, path or id.
    pub(crate) session: String,
    /// The message; several words are joined by spaces. `-` reads it from stdin, and `@FILE` reads it from a file.
    #[arg(required = true, value_name = "TEXT")]
    pub(crate) text: Vec<String>,
    /// Attach this image, PDF document or text file; may be repeated. A PDF document cannot be added to a running turn.
    #[arg(long, value_name = "FILE", visible_alias = "image")]
    pub(crate) attach: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

/// How a message reaches the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Into the running turn.
    RunningTurn,
    /// As the prompt of the next turn.
    NextTurn,
}

/// Sends the message.
pub(crate) fn run(args: &SendArgs) -> Result<(), ExpectedError> {
    block_on(async {
        let text = match &args.text[..] {
            [one] => given::prompt(one)?,
            several => several.join(" "),
        };
        let attachments = attachments::read(&args.attach)?;
        let hub = HubClient::reach(&args.data_dir).await?;
        let session = hub.session(&args.session).await?;
        let mut message = json!({"session_id": session.id, "prompt": text});
        if !attachments.is_empty() {
            message["attachments"] = Value::Array(attachments);
        }
        let [first, other] = match session.status {
            Status::Running | Status::AwaitingPermission => [Way::RunningTurn, Way::NextTurn],
            Status::Idle | Status::Complete | Status::Failed | Status::Interrupted => {
                [Way::NextTurn, Way::RunningTurn]
            }
        };
        let (way, sent) = match call(&hub, first, &message).await {
            // The turn ended or started meanwhile.
            Err(CallError::Refused { kind, .. }) if kind == "no_turn" || kind == "turn_in_progress" => {
                (other, call(&hub, other, &message).await)
            }
            sent => (first, sent),
        };
        let sent = sent.map_err(|error| hub.explain(error))?;
        if args.json.json {
            output::json(&sent);
            return Ok(());
        }
        output::print(&match way {
            Way::RunningTurn => {
                let SendResult::Sent { turn, .. } = serde_json::from_value(sent).map_err(system)?;
                format!("added to turn {turn} of {}", session.path)
            }
            Way::NextTurn => {
                let ChatAsyncResult::Started { turn, .. } = serde_json::from_value(sent).map_err(system)?;
                format!("started turn {turn} of {}", session.path)
            }
        });
        Ok(())
    })
}

async fn call(hub: &HubClient, way: Way, message: &Value) -> Result<Value, CallError> {
    let method = match way {
        Way::RunningTurn => "claudecode.send",
        Way::NextTurn => "claudecode.chat_async",
    };
    hub.client.call(method, message.clone()).await
}
