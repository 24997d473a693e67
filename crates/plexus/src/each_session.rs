//! The common part of the verbs that call one method for each of several sessions. If nothing was running, they say so and succeed, as
//! `plexus down` does.

use std::time::Duration;

use clap::Args;
use plexus_protocol::claudecode::{DoneResult, SessionView};
use tokio::time::timeout;

use crate::allow::below;
use crate::error::ExpectedError;
use crate::hub::{HubClient, JsonArg, block_on, named};
use crate::output;
use crate::settings::DataDirArg;
use crate::terminal::one_line;

/// How long finding a session may take before the verb is tried without it.
const FOUND_WITHIN: Duration = Duration::from_secs(5);

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

/// What a verb does to a session and all below it.
pub(crate) struct Act<'a> {
    /// The method.
    pub(crate) method: &'a str,
    /// In the past tense, before the name of the session.
    pub(crate) done: &'a str,
    /// Whether there is something to do in one session.
    pub(crate) applies: fn(&SessionView) -> bool,
    /// What is said if there was nothing to do, after the name of the session.
    pub(crate) nothing: &'a str,
}

/// A session, and whether there is something to do in it or below.
struct Found {
    id: String,
    applies: bool,
}

async fn find(hub: &HubClient, name: &str, act: &Act<'_>) -> Result<Found, ExpectedError> {
    let top = hub.session(name).await?;
    let sessions = hub.all_sessions().await?;
    let tree = below(&sessions, &top);
    let applies = sessions.iter().any(|session| tree.contains(&session.id) && (act.applies)(session));
    Ok(Found { id: top.id.to_string(), applies })
}

impl SessionsArgs {
    /// Calls the method for each session in sequence, and reports the result.
    pub(crate) fn call_each(&self, act: &Act<'_>) -> Result<(), ExpectedError> {
        block_on(async {
            let hub = HubClient::reach(&self.data_dir).await?;
            for name in &self.names {
                // Without a store the hub lists no sessions, but stops them. It reports other errors again.
                let found = timeout(FOUND_WITHIN, find(&hub, name, act)).await.ok().and_then(Result::ok);
                let params = found.as_ref().map_or_else(|| named(name), |found| named(&found.id));
                // Called in any case, because something may have started meanwhile.
                let result: DoneResult = hub.call(act.method, params).await?;
                if self.json.json {
                    output::json_line(&result);
                } else if found.is_none_or(|found| found.applies) {
                    output::print(&format!("{} {name}", act.done));
                } else {
                    output::say(&format!("plexus: {} {}", one_line(name, 200), act.nothing));
                }
            }
            Ok(())
        })
    }
}
