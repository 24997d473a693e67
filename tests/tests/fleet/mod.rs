//! Several hubs on one PostgreSQL database, each with a data directory and agents of its own, as on several machines.

mod backup;
mod clocks;
mod commands;
mod database_away;
mod examples;
mod failover;
mod hub_killed;
mod long_outage;
mod lost_host;
mod metrics;
mod migrate;
mod namespaces;
mod one_inbox;
mod placement;
mod runner;
mod trees;

use anyhow::Context as _;
use plexus_e2e::{Setup, World};
use plexus_testkit::postgres::Postgres;
use plexus_testkit::skip;

/// Hubs that share a database.
struct Fleet {
    hosts: Vec<World>,
    url: String,
}

impl Fleet {
    /// Starts a hub for each of these hosts, with scripted agents. If PostgreSQL is missing, reports the test as skipped and returns `None`.
    async fn start(test: &str, hosts: &[&str]) -> anyhow::Result<Option<Self>> {
        let hosts: Vec<_> = hosts.iter().map(|host| (*host, "")).collect();
        Self::start_with(test, &hosts).await
    }

    /// The same, with these lines in `[store]` of each host.
    async fn start_with(test: &str, hosts: &[(&str, &str)]) -> anyhow::Result<Option<Self>> {
        let Some(server) = Postgres::shared() else {
            skip(test, "PostgreSQL");
            return Ok(None);
        };
        let url = server.url(&server.database()?);
        let mut fleet = Self { hosts: Vec::new(), url };
        for (host, lines) in hosts {
            fleet
                .hosts
                .push(fleet.setup(host).with_config(lines).world(test).await?.context("the scripted agent")?);
        }
        Ok(Some(fleet))
    }

    /// A hub of this host.
    fn setup(&self, host: &str) -> Setup {
        Setup::scripted().with_config(&format!("[store]\nurl = \"{}\"\nhost = \"{host}\"", self.url))
    }
}
