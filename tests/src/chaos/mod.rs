//! The chaos run: agents work, clients decide and read, and the hub is killed with SIGKILL at random instants, optionally on a failing
//! disk. At the end, it compares the actions of each agent with the decisions and with the published events. A seed repeats the random
//! choices; their timing depends on the machine.

mod agents;
pub mod checker;
mod client;
mod deciders;
mod disk;
pub mod fleet;
mod forks;
mod kills;
mod observations;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use fastrand::Rng;
use plexus_testkit::executable;
use plexus_testkit::hub_process::HubProcess;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::{Channel, Setup, World};
use agents::{Agent, Place, Program};
use disk::FailingDisk;
pub use kills::{KILL_POINTS, Kills};
use observations::Observations;
pub use observations::Report;

/// The time limit for all turns to end after the last kill.
const FINISH_WITHIN: Duration = Duration::from_secs(180);
const DECIDERS: u64 = 4;
const KILL_POINT: &str = "kill-point";
const STORE_FAULT: &str = "store-fault";

/// The options of a chaos run.
#[derive(Debug, Clone)]
pub struct Options {
    /// How the hub is killed.
    pub kills: Kills,
    /// The seed of the random choices.
    pub seed: u64,
    /// The number of scripted agents.
    pub agents: usize,
    /// Pinned versions of `claude`, each with one session per channel.
    pub versions: Vec<&'static str>,
    /// Which processes are killed besides the hub.
    pub victims: Victims,
    /// The state of the disk.
    pub disk: Disk,
    /// Receives reports of progress.
    pub progress: fn(&str),
}

/// The processes that are killed besides the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victims {
    /// None: every turn completes.
    Nobody,
    /// Agents and their keepers: their turns fail with a reason.
    Children,
}

/// The disk under the hub's store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disk {
    /// It does not fail.
    Sound,
    /// For short periods it has no space, or its writes and syncs fail.
    Failing,
}

/// Where a hub listens, and the operator's token.
struct HubDoor {
    url: String,
    token: String,
}

impl HubDoor {
    fn of(hub: &HubProcess) -> anyhow::Result<Self> {
        Ok(Self { url: hub.url().to_owned(), token: hub.token()? })
    }
}

/// The shared state of a run.
struct Run {
    hubs: Vec<HubDoor>,
    victims: Victims,
    disk: Disk,
    observations: Observations,
    /// How often the disk started to fail.
    spans: AtomicUsize,
    /// The number of calls that failed because of that.
    refused_calls: AtomicUsize,
    /// The number of starts that failed because of that, with a reason.
    refused_starts: AtomicUsize,
    /// The label of the rule that is in force; 0 if there is none.
    rule: AtomicU64,
    /// Set when no new turn may start.
    over: AtomicBool,
    /// The number of agents that send no more prompts.
    idle_agents: AtomicUsize,
    /// Whether no hub has a command that it may still execute. A single hub has none.
    no_more_commands: watch::Sender<bool>,
}

impl Run {
    fn new(hubs: Vec<HubDoor>, victims: Victims, disk: Disk) -> Self {
        Self {
            no_more_commands: watch::Sender::new(hubs.len() == 1),
            idle_agents: AtomicUsize::new(0),
            hubs,
            victims,
            disk,
            observations: Observations::default(),
            spans: AtomicUsize::new(0),
            refused_calls: AtomicUsize::new(0),
            refused_starts: AtomicUsize::new(0),
            rule: AtomicU64::new(0),
            over: AtomicBool::new(false),
        }
    }

    /// Ends the run: waits for the last turn of each agent.
    async fn wait_for_agents(&self, mut agents: JoinSet<anyhow::Result<()>>) -> anyhow::Result<()> {
        self.over.store(true, Ordering::SeqCst);
        let settled = timeout(FINISH_WITHIN, async {
            while let Some(lived) = agents.join_next().await {
                lived.context("an agent's task panicked")??;
            }
            anyhow::Ok(())
        });
        match settled.await {
            Ok(lived) => lived?,
            Err(_) => self.observations.fault(format!("{} agents did not come to an end", agents.len())),
        }
        agents.abort_all();
        Ok(())
    }
}

/// Runs the chaos run.
///
/// # Errors
/// If it cannot be set up. Violations are in the report.
pub async fn run(options: &Options) -> anyhow::Result<Report> {
    let tools = TempDir::new()?;
    let world = world(tools.path()).await?;
    let run = Arc::new(Run::new(vec![HubDoor::of(&world.hub)?], options.victims, options.disk));
    let mut agents = JoinSet::new();
    for agent in agents_of_run(&world, options)? {
        let rng = Rng::with_seed(options.seed.wrapping_add(agent.number as u64));
        agents.spawn(agent.run_turns(Arc::clone(&run), rng));
    }
    let mut deciders = JoinSet::new();
    for number in 0..DECIDERS {
        deciders.spawn(deciders::decide(Arc::clone(&run), Rng::with_seed(options.seed ^ (number + 1))));
    }

    let mut disk = JoinSet::new();
    if options.disk == Disk::Failing {
        let failing = FailingDisk::new(tools.path().join(STORE_FAULT));
        let rng = Rng::with_seed(options.seed.rotate_left(32));
        disk.spawn(failing.fail_sometimes(Arc::clone(&run), rng));
    }

    let World { mut hub, model, work, log, dir, .. } = world;
    let absences = match &options.kills {
        Kills::Random(kills) => kills::at_random(&mut hub, *kills, options, &run).await?,
        Kills::At(points) => kills::at_points(&mut hub, points, &tools.path().join(KILL_POINT), &run).await?,
    };
    anyhow::ensure!(disk.try_join_next().is_none(), "the faults of the disk could not be started");
    disk.shutdown().await;
    run.wait_for_agents(agents).await?;
    deciders.abort_all();
    let report = run.observations.close(&run, options, &[log], &work).await?;
    drop((hub, model));
    // The files are kept if there are violations.
    let kept = (!report.faults.is_empty()).then(|| dir.keep());
    Ok(report.with_the_rest(absences, kept))
}

/// A hub whose agents are chosen by their environment.
async fn world(tools: &Path) -> anyhow::Result<World> {
    let dispatcher = tools.join("claude");
    executable::write(&dispatcher, "#!/bin/sh\nexec \"$CHAOS_CLAUDE\" \"$@\"\n")?;
    // A short idle time, so that idle processes end during the run.
    let mut setup = Setup::scripted().with_config("idle_secs = 0.2\ninitialize_secs = 20");
    for (name, file) in [("PLEXUS_KILL_POINT_FILE", KILL_POINT), ("PLEXUS_STORE_FAULT_FILE", STORE_FAULT)] {
        setup.env.push((name.to_owned(), tools.join(file).display().to_string()));
    }
    setup.start(dispatcher).await
}

/// The agents of the run.
fn agents_of_run(world: &World, options: &Options) -> anyhow::Result<Vec<Agent>> {
    let scripted = plexus_testkit::binaries::scripted_agent()?;
    let work = world.work.clone();
    let mut agents_of_run: Vec<Agent> = (0..options.agents)
        .map(|number| Agent {
            number,
            program: Program::Scripted(scripted.clone()),
            channel: Channel::Control,
            work: work.clone(),
            place: Place::Here,
        })
        .collect();
    for version in &options.versions {
        let claude = plexus_testkit::claude(version)
            .with_context(|| format!("claude {version} is not here; `cargo xtask test` fetches it"))?;
        for channel in [Channel::Control, Channel::Relay] {
            let program = Program::Real { claude: claude.clone(), model: world.model.scripts() };
            let (number, work, place) = (agents_of_run.len(), work.clone(), Place::Here);
            agents_of_run.push(Agent { number, program, channel, work, place });
        }
    }
    Ok(agents_of_run)
}
