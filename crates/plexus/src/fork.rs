//! `plexus fork`: creates a session that shares the history of another one up to a turn and continues from there.

use clap::Args;
use plexus_protocol::claudecode::ForkResult;

use crate::error::ExpectedError;
use crate::hub::{HubClient, JsonArg, block_on, named};
use crate::output;
use crate::settings::DataDirArg;

/// Arguments of `plexus fork`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  plexus fork fixer other-way --at 1\n  plexus attach other-way")]
pub(crate) struct ForkArgs {
    /// The session, by name, path or id.
    pub(crate) name: String,
    /// The name of the new session.
    pub(crate) new_name: String,
    /// The last turn that both share [default: the last complete one].
    #[arg(long, value_name = "TURN")]
    pub(crate) at: Option<u64>,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

/// Forks the session.
pub(crate) fn run(args: &ForkArgs) -> Result<(), ExpectedError> {
    block_on(async {
        let hub = HubClient::reach(&args.data_dir).await?;
        let mut params = named(&args.name);
        params["new_name"] = args.new_name.as_str().into();
        if let Some(turn) = args.at {
            params["at"] = turn.into();
        }
        let forked: ForkResult = hub.call("claudecode.fork", params).await?;
        if args.json.json {
            output::json_line(&forked);
        } else {
            output::print(&format!(
                "forked {}; `plexus attach {}` continues it",
                args.new_name, args.new_name
            ));
        }
        Ok(())
    })
}
