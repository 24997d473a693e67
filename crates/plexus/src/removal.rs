//! The common part of the verbs that remove things: their flags, the question before anything is removed, and the calls in
//! sequence. Each verb names the things and reports what was removed.

use clap::Args;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::confirm_loss::YesArg;
use crate::error::ExpectedError;
use crate::hub::{HubClient, JsonArg};
use crate::output;
use crate::settings::DataDirArg;

/// The flags of a verb that removes things.
#[derive(Debug, Args)]
pub(crate) struct RemovalArgs {
    #[command(flatten)]
    pub(crate) yes: YesArg,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

/// What a verb removes.
pub(crate) struct Removal<'a> {
    /// The question before it.
    pub(crate) question: String,
    /// The method that removes one thing.
    pub(crate) method: &'a str,
    /// The things.
    pub(crate) targets: Vec<Target>,
}

/// One thing to remove.
pub(crate) struct Target {
    /// Its name for the user.
    pub(crate) name: String,
    /// The parameters of the method.
    pub(crate) params: Value,
}

impl RemovalArgs {
    /// Asks, then removes the things in sequence. `report` describes the result for one of them.
    pub(crate) async fn remove<T: DeserializeOwned + Serialize>(
        &self,
        hub: &HubClient,
        removal: Removal<'_>,
        report: impl Fn(&str, &T) -> String,
    ) -> Result<(), ExpectedError> {
        self.yes.confirm(&removal.question).await?;
        for Target { name, params } in removal.targets {
            // Without a time limit: a session ends its processes first.
            let removed: T = hub.call(removal.method, params).await?;
            if self.json.json {
                output::json_line(&removed);
            } else {
                output::print(&report(&name, &removed));
            }
        }
        Ok(())
    }
}
