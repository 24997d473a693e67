//! `plexus interrupt`: interrupts the running turn of a session and of all sessions below it. Their processes continue.

use clap::Args;
use plexus_protocol::claudecode::DoneResult;

use crate::error::ExpectedError;
use crate::hub::{HubClient, JsonArg, block_on, named};
use crate::output;
use crate::settings::DataDirArg;

/// Arguments of `plexus interrupt`.
#[derive(Debug, Args)]
#[command(
    after_help = "The processes stay for the next prompt; `plexus stop` ends them as well.\n\nExamples:\n  plexus interrupt fixer\n  \
    plexus send fixer \"Use the other library\""
)]
pub(crate) struct InterruptArgs {
    /// The sessions, by name or id.
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

/// Interrupts the sessions in sequence.
pub(crate) fn run(args: &InterruptArgs) -> Result<(), ExpectedError> {
    block_on(async {
        let hub = HubClient::reach(&args.data_dir).await?;
        for name in &args.names {
            let done: DoneResult = hub.call("claudecode.interrupt", named(name)).await?;
            if args.json.json {
                output::json_line(&done);
            } else {
                output::print(&format!("interrupted {name}"));
            }
        }
        Ok(())
    })
}
