//! The chaos run: agents at work, clients that decide and read all the while, and a hub that is killed with -9 at
//! random instants, perhaps on a disk that fails. In the end what each agent did is compared with what was decided and
//! with what was told. A seed gives the same choices again; what they meet depends on the machine.

mod agents;
mod book;
mod client;
mod deciders;
mod disk;
mod forks;
mod kills;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use fastrand::Rng;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::{Channel, Setup, World};
use agents::{Agent, Program};
use book::Book;
pub use book::Report;
use disk::FailingDisk;
pub use kills::{KILL_POINTS, Kills};

/// How long everything may take to come to its end once nothing is killed any more.
const SETTLE_WITHIN: Duration = Duration::from_secs(180);
const DECIDERS: u64 = 4;
const KILL_POINT: &str = "kill-point";
const STORE_FAULT: &str = "store-fault";

/// What a chaos run does.
#[derive(Debug, Clone)]
pub struct Options {
    /// How the hub is killed.
    pub kills: Kills,
    /// What all choices follow from.
    pub seed: u64,
    /// How many scripted agents there are.
    pub agents: usize,
    /// Pinned versions of `claude`, each with a session on either channel.
    pub versions: Vec<&'static str>,
    /// Who else is killed.
    pub victims: Victims,
    /// What the hub writes to.
    pub disk: Disk,
    /// Is told how far it has come.
    pub progress: fn(&str),
}

/// Who is killed beside the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victims {
    /// Nobody: every turn comes to a good end.
    Nobody,
    /// Agents and their keepers, too: their turns fail and say so.
    Children,
}

/// The disk under the hub's store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disk {
    /// Nothing is wrong with it.
    Sound,
    /// For short spans it has no room, or its writes and syncs go wrong.
    Failing,
}

/// What everyone in a run shares.
struct Run {
    url: String,
    token: String,
    victims: Victims,
    disk: Disk,
    book: Book,
    /// How often the disk began to fail.
    spans: AtomicUsize,
    /// How often a call was refused because of that.
    refused_calls: AtomicUsize,
    /// How often a hub did not come up because of that, and said so.
    refused_starts: AtomicUsize,
    /// Nothing new is begun from here on.
    over: AtomicBool,
}

/// Runs it.
///
/// # Errors
/// When it cannot be set up; what goes wrong in it is in the report.
pub async fn run(options: &Options) -> anyhow::Result<Report> {
    let tools = TempDir::new()?;
    let world = world(tools.path()).await?;
    let run = Arc::new(Run {
        url: world.hub.url().to_owned(),
        token: world.hub.token()?,
        victims: options.victims,
        disk: options.disk,
        book: Book::default(),
        spans: AtomicUsize::new(0),
        refused_calls: AtomicUsize::new(0),
        refused_starts: AtomicUsize::new(0),
        over: AtomicBool::new(false),
    });
    let mut agents = JoinSet::new();
    for agent in cast(&world, options)? {
        let rng = Rng::with_seed(options.seed.wrapping_add(agent.number as u64));
        agents.spawn(agent.live(Arc::clone(&run), rng));
    }
    let mut deciders = JoinSet::new();
    for number in 0..DECIDERS {
        deciders.spawn(deciders::decide(Arc::clone(&run), Rng::with_seed(options.seed ^ (number + 1))));
    }

    let mut disk = JoinSet::new();
    if options.disk == Disk::Failing {
        let failing = FailingDisk::new(tools.path().join(STORE_FAULT));
        let rng = Rng::with_seed(options.seed.rotate_left(32));
        disk.spawn(failing.fail_now_and_then(Arc::clone(&run), rng));
    }

    let World { mut hub, model, work, log, dir, .. } = world;
    let absences = match &options.kills {
        Kills::Random(kills) => kills::at_random(&mut hub, *kills, options, &run).await?,
        Kills::At(points) => kills::at_points(&mut hub, points, &tools.path().join(KILL_POINT), &run).await?,
    };
    anyhow::ensure!(disk.try_join_next().is_none(), "the disk could not be made to fail");
    disk.shutdown().await;
    run.over.store(true, Ordering::SeqCst);
    let settled = timeout(SETTLE_WITHIN, async {
        while let Some(lived) = agents.join_next().await {
            lived.context("an agent's task panicked")??;
        }
        anyhow::Ok(())
    });
    match settled.await {
        Ok(lived) => lived?,
        Err(_) => run.book.fault(format!("{} agents did not come to an end", agents.len())),
    }
    agents.abort_all();
    deciders.abort_all();
    let report = run.book.close(&run, options, &log, &work).await?;
    drop((hub, model));
    // What went wrong has to be looked into.
    let kept = (!report.faults.is_empty()).then(|| dir.keep());
    Ok(report.with_the_rest(absences, kept))
}

/// A hub whose agents are what their environment says.
async fn world(tools: &Path) -> anyhow::Result<World> {
    let dispatcher = tools.join("claude");
    std::fs::write(&dispatcher, "#!/bin/sh\nexec \"$CHAOS_CLAUDE\" \"$@\"\n")?;
    std::fs::set_permissions(&dispatcher, Permissions::from_mode(0o755))?;
    // Processes come and go all the while: the ends of idle ones are part of it.
    let mut setup = Setup::scripted().with_config("idle_secs = 0.2\ninitialize_secs = 20");
    for (name, file) in [("PLEXUS_KILL_POINT_FILE", KILL_POINT), ("PLEXUS_STORE_FAULT_FILE", STORE_FAULT)] {
        setup.env.push((name.to_owned(), tools.join(file).display().to_string()));
    }
    setup.start(dispatcher).await
}

/// Who takes part.
fn cast(world: &World, options: &Options) -> anyhow::Result<Vec<Agent>> {
    let scripted = plexus_testkit::binaries::scripted_agent()?;
    let work = world.work.clone();
    let mut cast: Vec<Agent> = (0..options.agents)
        .map(|number| Agent {
            number,
            program: Program::Scripted(scripted.clone()),
            channel: Channel::Control,
            work: work.clone(),
        })
        .collect();
    for version in &options.versions {
        let claude = plexus_testkit::claude(version)
            .with_context(|| format!("claude {version} is not here; `cargo xtask test` fetches it"))?;
        for channel in [Channel::Control, Channel::Relay] {
            let program = Program::Real { claude: claude.clone(), model: world.model.scripts() };
            cast.push(Agent { number: cast.len(), program, channel, work: work.clone() });
        }
    }
    Ok(cast)
}
