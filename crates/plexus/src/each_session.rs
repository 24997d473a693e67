//! The common part of the verbs that call one method for each of several sessions.

use clap::Args;
use plexus_protocol::claudecode::DoneResult;

use crate::error::ExpectedError;
use crate::hub::{HubClient, JsonArg, block_on, named};
use crate::output;
use crate::settings::DataDirArg;

/// The sessions of a verb, and its flags.
#[derive(Debug, Args)]
pub(crate) struct SessionsArgs {
    /// The sessions, by name, path or id.
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

impl SessionsArgs {
    /// Calls a method for each session in sequence, and prints `done` with its name.
    pub(crate) fn call_each(&self, method: &str, done: &str) -> Result<(), ExpectedError> {
        block_on(async {
            let hub = HubClient::reach(&self.data_dir).await?;
            for name in &self.names {
                let result: DoneResult = hub.call(method, named(name)).await?;
                if self.json.json {
                    output::json_line(&result);
                } else {
                    output::print(&format!("{done} {name}"));
                }
            }
            Ok(())
        })
    }
}
