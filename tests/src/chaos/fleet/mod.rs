//! The chaos run with several hubs on one PostgreSQL database. Agents work on all hosts, clients decide, read and change rules on any hub, and budgets span
//! hosts, while hubs, links and the database fail. At the end, `checker` compares the agents' own logs with what the database recorded.

mod database_log;
mod faults;
mod followers;
mod link;
mod plan;
mod rules;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context as _;
use fastrand::Rng;
use plexus_testkit::postgres::Postgres;
use plexus_testkit::rpc::Rpc;
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::{Mutex, RwLock};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::agents::{Agent, Place, Program, create_once};
use super::checker::{self, Acknowledged, Audit, Ran, Records};
use super::client::Client;
use super::observations::lines;
use super::{Disk, FINISH_WITHIN, HubDoor, Kills, Options, Report, Run, Victims, deciders};
use crate::{Channel, Setup, World, text};
use faults::Machines;
pub use link::{Direction, Link, State};
pub use plan::{Fault, Faults, plan};

const DECIDERS: u64 = 4;
const FOLLOWERS: u64 = 2;
/// One agent in this many is a child of a session on the first host, with a budget.
const CHILD_ONE_IN: usize = 3;
/// The number of faults between two reports of progress.
const REPORT_EVERY: usize = 10;
/// The pause between two counts of the open commands.
const COUNT_AGAIN: Duration = Duration::from_millis(200);
/// The time limit for the clients to end after the run.
const CLIENTS_END_WITHIN: Duration = Duration::from_secs(120);

/// The options of a chaos run with several hubs.
#[derive(Debug, Clone)]
pub struct FleetOptions {
    /// The number of hubs.
    pub hubs: usize,
    /// The faults.
    pub faults: Faults,
    /// The seed of the random choices.
    pub seed: u64,
    /// The number of scripted agents over all hosts.
    pub agents: usize,
    /// Receives reports of progress.
    pub progress: fn(&str),
}

/// A run, and what has to stay until its end.
struct Fleet {
    database: String,
    worlds: Vec<WorldRest>,
    machines: Machines,
    run: Arc<Run>,
}

/// The files of a host.
struct WorldRest {
    host: String,
    work: PathBuf,
    log: PathBuf,
    dir: TempDir,
}

/// Runs the chaos run; `None` if PostgreSQL is not installed.
///
/// # Errors
/// If it cannot be set up. Violations are in the report.
pub async fn run(options: &FleetOptions) -> anyhow::Result<Option<Report>> {
    let Some(server) = tokio::task::spawn_blocking(Postgres::own).await?? else { return Ok(None) };
    let fleet = Fleet::start(Arc::new(server), options).await?;
    let run = Arc::clone(&fleet.run);
    let mut agents = JoinSet::new();
    for agent in fleet.agents(options).await? {
        let rng = Rng::with_seed(options.seed.wrapping_add(agent.number as u64));
        agents.spawn(agent.run_turns(Arc::clone(&run), rng));
    }
    let mut others = JoinSet::new();
    for number in 0..DECIDERS {
        others.spawn(deciders::decide(Arc::clone(&run), Rng::with_seed(options.seed ^ (number + 1))));
    }
    let expected = Arc::new(OnceLock::new());
    let mut followers = JoinSet::new();
    for number in 0..FOLLOWERS {
        let rng = Rng::with_seed(options.seed.rotate_left(8) ^ number);
        followers.spawn(followers::follow(Arc::clone(&run), rng, Arc::clone(&expected)));
    }
    let rules =
        tokio::spawn(rules::change_rules(Arc::clone(&run), Rng::with_seed(options.seed.rotate_left(16))));

    let done = fleet.fail(options).await?;
    let ended = tokio::join!(run.wait_for_agents(agents), fleet.wait_for_commands(options.agents));
    ended.0.and(ended.1)?;
    let revoked = timeout(CLIENTS_END_WITHIN, rules).await.context("the rules do not end")??;
    let server = Arc::clone(&*fleet.machines.server.read().await);
    let finished = database_log::finished(&server, &fleet.database)?;
    let _ = expected.set(finished.len());
    let followers =
        timeout(CLIENTS_END_WITHIN, followers.join_all()).await.context("the followers do not end")?;
    others.shutdown().await;

    let mut records = fleet.records(&server).await?;
    (records.revoked, records.finished, records.followers) = (revoked, finished, followers);
    let violations = checker::violations(&records);
    fleet.report(options, done, &records, violations).await.map(Some)
}

impl Fleet {
    async fn start(server: Arc<Postgres>, options: &FleetOptions) -> anyhow::Result<Self> {
        let database = server.database()?;
        let (mut hubs, mut links, mut worlds, mut doors) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for number in 0..options.hubs {
            let link = Link::start(server.socket())?;
            let host = format!("host-{number}");
            let world = start_hub(&host, &link.url(&database)).await?;
            if number == 0 {
                database_log::install(&server, &database)?;
            }
            doors.push(HubDoor::of(&world.hub)?);
            let World { hub, work, log, dir, .. } = world;
            hubs.push(Mutex::new(hub));
            links.push(link);
            worlds.push(WorldRest { host, work, log, dir });
        }
        let run = Arc::new(Run::new(doors, Victims::Nobody, Disk::Sound));
        let machines = Machines { hubs, links, server: RwLock::new(server) };
        Ok(Self { database, worlds, machines, run })
    }

    /// The agents: one after the other on each host. Some are children of a session on the first host.
    async fn agents(&self, options: &FleetOptions) -> anyhow::Result<Vec<Agent>> {
        let scripted = plexus_testkit::binaries::scripted_agent()?;
        let token = self.parent(options).await?;
        let agent = |number: usize| {
            let WorldRest { host, work, .. } = &self.worlds[number % self.worlds.len()];
            let is_child = (number / self.worlds.len()).is_multiple_of(CHILD_ONE_IN);
            let (place, work) = match is_child {
                // A child works in the directory of its parent.
                true => (Place::Below(host.clone(), token.clone()), self.worlds[0].work.clone()),
                false => (Place::Host(host.clone()), work.clone()),
            };
            let program = Program::Scripted(scripted.clone());
            Agent { number, program, channel: Channel::Control, work, place }
        };
        Ok((0..options.agents).map(agent).collect())
    }

    /// Creates a session with a budget that is soon used up. Returns its token.
    async fn parent(&self, options: &FleetOptions) -> anyhow::Result<String> {
        let client = Client::new(&self.run, Rng::with_seed(!options.seed));
        let params = json!({
            "name": "lead", "working_dir": self.worlds[0].work, "host": self.worlds[0].host, "hub_tools": true,
            "budget": {"tool_calls": 6},
        });
        let id = create_once(&client, "claudecode.create", params, "lead").await;
        self.run.observations.joined(&id);
        let door = &self.run.hubs[0];
        let given =
            Rpc::new(&door.url, &door.token).call("loopback.configure", json!({"session_id": id})).await?;
        let header = text(&given["mcp_config"]["mcpServers"]["plexus"]["headers"]["Authorization"]);
        Ok(header.trim_start_matches("Bearer ").to_owned())
    }

    /// Carries out the faults. Returns how many there were of each kind.
    async fn fail(&self, options: &FleetOptions) -> anyhow::Result<BTreeMap<&'static str, usize>> {
        let mut rng = Rng::with_seed(options.seed.rotate_left(24));
        let mut done = BTreeMap::new();
        for (number, group) in plan(options.seed, options.faults, options.hubs).iter().enumerate() {
            // Agents work between two faults.
            sleep(Duration::from_millis(rng.u64(100..900))).await;
            let names: Vec<String> = group.iter().map(ToString::to_string).collect();
            (options.progress)(&names.join(" and "));
            self.machines.fail(group).await.with_context(|| names.join(" and "))?;
            group.iter().for_each(|fault| *done.entry(fault.kind()).or_default() += 1);
            if (number + 1).is_multiple_of(REPORT_EVERY) {
                let turns = self.run.observations.turns();
                (options.progress)(&format!("{} faults, {turns} turns", done.values().sum::<usize>()));
            }
        }
        Ok(done)
    }

    /// Waits until all agents send no more prompts, and no hub has a command that it may still execute.
    async fn wait_for_commands(&self, agents: usize) -> anyhow::Result<()> {
        let server = Arc::clone(&*self.machines.server.read().await);
        let ended = async {
            while self.run.idle_agents.load(Ordering::SeqCst) < agents
                || database_log::open_commands(&server, &self.database)? > 0
            {
                sleep(COUNT_AGAIN).await;
            }
            anyhow::Ok(())
        };
        // If agents do not come to an end, `wait_for_agents` reports those; the others must end.
        let ended = timeout(FINISH_WITHIN / 2, ended).await;
        self.run.no_more_commands.send_replace(true);
        ended.unwrap_or(Ok(()))
    }

    /// What the agents, the database and the hubs have recorded.
    async fn records(&self, server: &Postgres) -> anyhow::Result<Records> {
        let mut records = Records {
            log: database_log::read(server, &self.database)?,
            feed: database_log::feed(server, &self.database)?,
            audit: Audit { numbers: database_log::audit(server, &self.database)?, broken: Vec::new() },
            ..Records::default()
        };
        for WorldRest { host, log, .. } in &self.worlds {
            records.ran.extend(lines(log)?.iter().map(|line| Ran {
                call: text(&line["tool_use_id"]),
                host: host.clone(),
                requested_at_ns: line["requested_at_ns"].as_u64().unwrap_or_default(),
            }));
        }
        let told = self.run.observations.acknowledged().into_iter();
        records.acknowledged =
            told.map(|(approval, status)| Acknowledged { approval, status: status.to_owned() }).collect();
        for door in &self.run.hubs {
            let verified = Rpc::new(&door.url, &door.token).call("audit.verify", json!({})).await?;
            records.audit.broken.push((verified["type"] != "ok").then(|| verified.to_string()));
        }
        Ok(records)
    }

    async fn report(
        self,
        options: &FleetOptions,
        done: BTreeMap<&'static str, usize>,
        records: &Records,
        violations: Vec<String>,
    ) -> anyhow::Result<Report> {
        let logs: Vec<PathBuf> = self.worlds.iter().map(|world| world.log.clone()).collect();
        let (kills, agents, progress) = (Kills::Random(0), options.agents, options.progress);
        let (victims, disk) = (Victims::Nobody, Disk::Sound);
        let base =
            Options { kills, seed: options.seed, agents, versions: Vec::new(), victims, disk, progress };
        let work = &self.worlds[0].work;
        let mut report = self.run.observations.close(&self.run, &base, &logs, work).await?;
        report.faults.extend(violations);
        let kinds: Vec<String> = done.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        let Self { worlds, machines, database, .. } = self;
        let mut kept = Vec::new();
        if !report.faults.is_empty() {
            for (world, hub) in worlds.iter().zip(&machines.hubs) {
                std::fs::write(world.dir.path().join("hub.log"), hub.lock().await.stderr())?;
            }
            machines.server.read().await.dump(&database, &worlds[0].dir.path().join("database.dump"))?;
            kept.extend(worlds.into_iter().map(|world| world.dir.keep()));
        }
        drop(machines);
        Ok(report.of_fleet(
            done.values().sum(),
            vec![
                kinds.join(", "),
                format!(
                    "{} hubs, {} revocations, {} transactions of decisions, rules and budgets",
                    options.hubs,
                    records.revoked.len(),
                    records.log.len()
                ),
            ],
            kept,
        ))
    }
}

async fn start_hub(host: &str, url: &str) -> anyhow::Result<World> {
    let config = format!(
        "idle_secs = 0.2\ninitialize_secs = 60\nescalate_after_secs = 2\n[store]\nurl = \"{url}\"\nhost = \"{host}\""
    );
    Setup::scripted().with_config(&config).start(plexus_testkit::binaries::scripted_agent()?).await
}
