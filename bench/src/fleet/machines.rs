//! Machines of a fleet: hubs with data directories of their own, on one PostgreSQL server.

use anyhow::Context as _;
use plexus_testkit::hub_process::HubProcess;
use plexus_testkit::postgres::Postgres;
use tempfile::TempDir;

use crate::bench_dir;

/// A machine with its hub. The hub ends first.
pub(super) struct Machine {
    pub(super) name: String,
    pub(super) hub: HubProcess,
    pub(super) dir: TempDir,
}

impl Machine {
    /// Starts a machine whose hub stores its state in SQLite.
    pub(super) async fn with_sqlite() -> anyhow::Result<Self> {
        Self::start("alone".to_owned(), "").await
    }

    async fn start(name: String, config: &str) -> anyhow::Result<Self> {
        let dir = bench_dir::on_a_disk()?;
        let hub = bench_dir::start_hub(dir.path(), config).await?;
        Ok(Self { name, hub, dir })
    }
}

/// Machines that share a server. They end before it.
pub(super) struct Machines {
    pub(super) all: Vec<Machine>,
    _server: Postgres,
}

impl Machines {
    /// Starts a server and this many hubs.
    pub(super) async fn start(hubs: usize) -> anyhow::Result<Self> {
        let server = Postgres::durable()?.context("PostgreSQL is not installed (Debian: postgresql)")?;
        let url = server.url(&server.database()?);
        let mut all = Vec::new();
        for number in 0..hubs {
            let name = format!("host-{number}");
            let config = format!("[store]\nurl = \"{url}\"\nhost = \"{name}\"\n");
            all.push(Machine::start(name, &config).await?);
        }
        Ok(Self { all, _server: server })
    }
}
