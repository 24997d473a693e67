//! `plexus deny`: denies a call with a reason that the agent reads.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::json;

use crate::approvals::find;
use crate::approve::{report, still_open};
use crate::error::ExpectedError;
use crate::hub::{HubClient, JsonArg, block_on};
use crate::settings::DataDirArg;
use crate::{answer_confirmation, output};

/// Arguments of `plexus deny`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plexus deny 3f0c -m \"use the copy in /tmp\"\n  plexus deny 3f0c --interrupt   and interrupt the turn"
)]
pub(crate) struct DenyArgs {
    /// The approval, by any unambiguous prefix of its id.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) id: String,
    /// The reason; the agent reads it.
    #[arg(short, long)]
    pub(crate) message: Option<String>,
    /// Interrupt the turn as well.
    #[arg(long)]
    pub(crate) interrupt: bool,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

/// Denies a call.
pub(crate) fn run(args: &DenyArgs) -> Result<(), ExpectedError> {
    block_on(async {
        let hub = HubClient::reach(&args.data_dir).await?;
        let approval = find(&hub, &args.id).await?.approval;
        still_open(&approval)?;
        let mut answer = json!({"approval_id": approval.id, "approve": false, "interrupt": args.interrupt});
        if let Some(message) = &args.message {
            answer["message"] = json!(message);
        }
        let answered = hub.respond(answer.clone()).await?;
        if args.json.json {
            output::json(&answered);
        }
        report(answer_confirmation::of(&approval, &answer, &answered), args.json)
    })
}
