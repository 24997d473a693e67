//! Checks whether a hub is running, its version, and whether its port is reachable.

use plexus_core::Launcher;
use plexus_server::{Config, DataDir};
use serde_json::Value;

use super::{Finding, note, ok, problem};
use crate::hub::HubClient;
use crate::port_user::PortUser;
use crate::terminal::one_line;
use crate::up;

/// A hub that responds, with its `hub.json`.
pub(super) struct RunningHub {
    version: String,
    announced: Value,
}

impl RunningHub {
    /// The hub of this data directory; `None` if it is not running.
    pub(super) async fn of(hub: &HubClient) -> Option<Self> {
        let (_, health) = hub.client.get("/health").await.ok()?;
        let health: Value = serde_json::from_slice(&health).unwrap_or_default();
        let version = one_line(health["version"].as_str().unwrap_or("unknown"), 40);
        Some(Self { version, announced: up::announced(&hub.dir) })
    }

    /// The command with which it starts Claude Code; `None` if an earlier version does not say.
    pub(super) fn claude(&self) -> Option<Launcher> {
        serde_json::from_value(self.announced["claude"].clone()).ok()
    }
}

pub(super) async fn check(hub: &HubClient, running: Option<&RunningHub>, config: &Config) -> Vec<Finding> {
    match running {
        Some(running) => vec![version(hub, running), own_port(running).await],
        None => vec![not_running(hub), free_port(config).await],
    }
}

fn not_running(hub: &HubClient) -> Finding {
    let left = if DataDir::socket(&hub.dir).exists() {
        "not running; a crashed hub left its socket behind"
    } else {
        "not running"
    };
    note("hub", left, "`plexus up` starts it, and so does any command that needs it")
}

async fn free_port(config: &Config) -> Finding {
    let address = config.listen;
    match std::net::TcpListener::bind(address) {
        Ok(_) if address.port() == 0 => ok("port", "the hub chooses a free port"),
        Ok(_) => ok("port", format!("{address} is free")),
        Err(error) => {
            let user = match error.kind() {
                std::io::ErrorKind::AddrInUse => format!(" by {}", PortUser::of(address).await),
                _ => String::new(),
            };
            let fix = "choose another with --listen, PLEXUS_LISTEN or `listen` in plexus.toml (port 0 chooses a free one)";
            problem("port", format!("{address}: {error}{user}"), fix)
        }
    }
}

fn version(hub: &HubClient, running: &RunningHub) -> Finding {
    const OWN: &str = env!("CARGO_PKG_VERSION");
    let version = &running.version;
    if version == OWN {
        return ok("hub", format!("version {version}, responds on {}", DataDir::socket(&hub.dir).display()));
    }
    let restart = match running.announced["pid"].as_u64() {
        Some(pid) => format!("`kill {pid}`, then `plexus up`, or `systemctl --user restart plexus`"),
        None => "Ctrl-C, or `systemctl --user restart plexus`".to_owned(),
    };
    note(
        "hub",
        format!("version {version} is running; this program is version {OWN}"),
        format!("restart the hub ({restart}); its agents wait for the new hub"),
    )
}

async fn own_port(running: &RunningHub) -> Finding {
    let url = running.announced["url"].as_str().unwrap_or_default();
    let authority = url.strip_prefix("http://").unwrap_or_default();
    match tokio::net::TcpStream::connect(authority).await {
        Ok(_) => ok("port", format!("the hub listens on {authority}")),
        Err(error) => {
            let fix = "agents on the mcp channel cannot reach the hub: read hub.log, and restart it";
            problem("port", format!("the hub does not respond on {authority}: {error}"), fix)
        }
    }
}
