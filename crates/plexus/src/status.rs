//! `plexus status`: shows whether a hub is running, and counts its sessions and open approvals. It does not start a hub.

use clap::Args;
use serde_json::{Value, json};

use crate::error::ExpectedError;
use crate::hub::{HubClient, JsonArg, block_on};
use crate::settings::DataDirArg;
use crate::{output, up};

/// Arguments of `plexus status`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exits with 0 if a hub is running, with 8 if not.\n\nExample:\n  plexus status || plexus up"
)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

/// Prints the status of the hub.
pub(crate) fn run(args: &StatusArgs) -> Result<(), ExpectedError> {
    let hub = HubClient::of(&args.data_dir)?;
    block_on(async {
        let Ok((_, health)) = hub.client.get("/health").await else {
            if args.json.json {
                output::json(&json!({"running": false, "data_dir": hub.dir}));
            }
            return Err(ExpectedError::NoHub(hub.dir.clone()));
        };
        let health: Value = serde_json::from_slice(&health).unwrap_or_default();
        let note = up::announced(&hub.dir);
        let sessions = hub.sessions().await?;
        let running = sessions.iter().filter(|session| session.pid.is_some()).count();
        let open = hub.pending().await?.len();
        if args.json.json {
            output::json(&json!({
                "running": true, "url": note["url"], "pid": up::pid(&hub.dir), "version": health["version"],
                "data_dir": hub.dir, "sessions": sessions.len(), "agents_running": running, "open_approvals": open,
            }));
            return Ok(());
        }
        let text = |value: &Value| value.as_str().unwrap_or("unknown").to_owned();
        let pid = up::pid(&hub.dir).map_or_else(String::new, |pid| format!(", process {pid}"));
        output::print(&format!(
            "hub        {} (version {}{pid})",
            text(&note["url"]),
            text(&health["version"])
        ));
        output::print(&format!("data       {}", hub.dir.display()));
        output::print(&format!("sessions   {}, {running} with a process", sessions.len()));
        output::print(&format!("approvals  {open} open"));
        Ok(())
    })
}
