//! `plexus stop`: stops the processes of a session and of all sessions below it. The next prompt resumes the session.

use clap::Args;
use plexus_protocol::claudecode::DoneResult;

use crate::error::ExpectedError;
use crate::hub::{HubClient, JsonArg, block_on, named};
use crate::output;
use crate::settings::DataDirArg;

/// Arguments of `plexus stop`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  plexus stop fixer\n\n`plexus interrupt` interrupts only the turn, `plexus rm` deletes the session."
)]
pub(crate) struct StopArgs {
    /// The sessions, by name or id.
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

/// Stops the sessions in sequence.
pub(crate) fn run(args: &StopArgs) -> Result<(), ExpectedError> {
    block_on(async {
        let hub = HubClient::reach(&args.data_dir).await?;
        for name in &args.names {
            let done: DoneResult = hub.call("claudecode.stop", named(name)).await?;
            if args.json.json {
                output::json_line(&done);
            } else {
                output::print(&format!("stopped {name}"));
            }
        }
        Ok(())
    })
}
