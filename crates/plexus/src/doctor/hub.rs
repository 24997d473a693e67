//! Whether a hub runs, of which version, and whether its port can be reached.

use plexus_server::{Config, DataDir};
use serde_json::Value;

use super::{Finding, note, ok, wrong};
use crate::error::ExpectedError;
use crate::hub::HubClient;

pub(super) async fn look(hub: &HubClient, config: &Config) -> Result<Vec<Finding>, ExpectedError> {
    let socket = DataDir::socket(&hub.dir);
    let Ok((_, health)) = hub.client.get("/health").await else {
        let port = match config.listen.port() {
            0 => ok("port", "a free one is taken"),
            _ => match std::net::TcpListener::bind(config.listen) {
                Ok(_) => ok("port", format!("{} is free", config.listen)),
                Err(error) => {
                    let mend = "set another with PLEXUS_LISTEN or `listen` in plexus.toml";
                    wrong("port", format!("{}: {error}", config.listen), mend)
                }
            },
        };
        let left =
            if socket.exists() { "none runs; one that ended badly left its socket" } else { "none runs" };
        return Ok(vec![
            note("hub", left, "`plexus up` starts one, and so does any verb that needs it"),
            port,
        ]);
    };
    let health: Value = serde_json::from_slice(&health).unwrap_or_default();
    let version = health["version"].as_str().unwrap_or("unknown");
    let mut findings = vec![if version == env!("CARGO_PKG_VERSION") {
        ok("hub", format!("runs, version {version}, and answers on {}", socket.display()))
    } else {
        let found = format!("runs, version {version}; this program is {}", env!("CARGO_PKG_VERSION"));
        note(
            "hub",
            found,
            "end it with Ctrl-C or `systemctl --user restart plexus`; its agents wait for the next one",
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
            let mend = "agents on the mcp channel cannot reach it: look into hub.log, and start it anew";
            wrong("port", format!("the hub does not answer on {authority}: {error}"), mend)
        }
    });
    Ok(findings)
}
