//! Checks whether a hub is running, its version, and whether its port is reachable.

use plexus_server::{Config, DataDir};
use serde_json::Value;

use super::{Finding, note, ok, problem};
use crate::error::ExpectedError;
use crate::hub::HubClient;

pub(super) async fn check(hub: &HubClient, config: &Config) -> Result<Vec<Finding>, ExpectedError> {
    let socket = DataDir::socket(&hub.dir);
    let Ok((_, health)) = hub.client.get("/health").await else {
        let port = match config.listen.port() {
            0 => ok("port", "the hub chooses a free port"),
            _ => match std::net::TcpListener::bind(config.listen) {
                Ok(_) => ok("port", format!("{} is free", config.listen)),
                Err(error) => {
                    let fix = "choose another with PLEXUS_LISTEN or `listen` in plexus.toml";
                    problem("port", format!("{}: {error}", config.listen), fix)
                }
            },
        };
        let left =
            if socket.exists() { "not running; a hub that crashed left its socket" } else { "not running" };
        return Ok(vec![
            note("hub", left, "`plexus up` starts it, and so does any command that needs it"),
            port,
        ]);
    };
    let health: Value = serde_json::from_slice(&health).unwrap_or_default();
    let version = health["version"].as_str().unwrap_or("unknown");
    let mut findings = vec![if version == env!("CARGO_PKG_VERSION") {
        ok("hub", format!("version {version}, responds on {}", socket.display()))
    } else {
        let found = format!("version {version}; this program is version {}", env!("CARGO_PKG_VERSION"));
        note(
            "hub",
            found,
            "restart it (Ctrl-C, or `systemctl --user restart plexus`); its agents wait for the new hub",
        )
    }];
    let note: Value = std::fs::read(hub.dir.join("hub.json"))
        .ok()
        .and_then(|note| serde_json::from_slice(&note).ok())
        .unwrap_or_default();
    let authority =
        note["url"].as_str().and_then(|url| url.strip_prefix("http://")).unwrap_or_default().to_owned();
    findings.push(match tokio::net::TcpStream::connect(&authority).await {
        Ok(_) => ok("port", format!("the hub listens on {authority}")),
        Err(error) => {
            let fix = "agents on the mcp channel cannot reach the hub: read hub.log, and restart it";
            problem("port", format!("the hub does not respond on {authority}: {error}"), fix)
        }
    });
    Ok(findings)
}
