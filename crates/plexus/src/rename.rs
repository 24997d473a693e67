//! `plexus rename`: gives a session another name.

use clap::Args;
use plexus_protocol::claudecode::DoneResult;

use crate::error::ExpectedError;
use crate::hub::{HubClient, JsonArg, block_on, named};
use crate::output;
use crate::settings::DataDirArg;

/// Arguments of `plexus rename`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  plexus rename run-1a2b3c fixer")]
pub(crate) struct RenameArgs {
    /// The session, by name, path or id.
    pub(crate) session: String,
    /// The new name.
    pub(crate) new_name: String,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

/// Renames the session.
pub(crate) fn run(args: &RenameArgs) -> Result<(), ExpectedError> {
    block_on(async {
        let hub = HubClient::reach(&args.data_dir).await?;
        let mut params = named(&args.session);
        params["new_name"] = args.new_name.as_str().into();
        let done: DoneResult = hub.call_with_timeout("claudecode.rename", params).await?;
        if args.json.json {
            output::json(&done);
        } else {
            output::print(&format!("renamed {} to {}", args.session, args.new_name));
        }
        Ok(())
    })
}
