//! The chaos run: agents at work, clients that decide and read all the while, and a hub that is killed with -9 at
//! random instants. In the end what each agent did is compared with what was decided and with what was told. A seed
//! gives the same choices again; what they meet depends on the machine.

mod agents;
mod book;
mod deciders;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use fastrand::Rng;
use plexus_testkit::hubproc::HubProcess;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::{Channel, Setup, World};
use agents::{Agent, Program};
use book::Book;
pub use book::Report;

/// How long everything may take to come to its end once nothing is killed any more.
const SETTLE_WITHIN: Duration = Duration::from_secs(180);
const DECIDERS: u64 = 4;

/// What a chaos run does.
#[derive(Debug, Clone)]
pub struct Options {
    /// How often the hub is killed.
    pub kills: u32,
    /// What all choices follow from.
    pub seed: u64,
    /// How many scripted agents there are.
    pub agents: usize,
    /// Pinned versions of `claude`, each with a session on either channel.
    pub versions: Vec<&'static str>,
}

/// What everyone in a run shares.
struct Run {
    url: String,
    token: String,
    book: Book,
    /// Nothing new is begun from here on.
    over: AtomicBool,
}

/// Runs it.
///
/// # Errors
/// When it cannot be set up; what goes wrong in it is in the report.
pub async fn run(options: &Options) -> anyhow::Result<Report> {
    let (world, _dispatcher) = world().await?;
    let run = Arc::new(Run {
        url: world.hub.url().to_owned(),
        token: world.hub.token()?,
        book: Book::default(),
        over: AtomicBool::new(false),
    });
    let mut agents = JoinSet::new();
    for agent in cast(&world, options)? {
        agents.spawn(agent.live(Arc::clone(&run)));
    }
    let mut deciders = JoinSet::new();
    for number in 0..DECIDERS {
        deciders.spawn(deciders::decide(Arc::clone(&run), Rng::with_seed(options.seed ^ (number + 1))));
    }

    let World { mut hub, model, work, log, dir, .. } = world;
    let absences = kill(&mut hub, options).await?;
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
async fn world() -> anyhow::Result<(World, TempDir)> {
    let dir = TempDir::new()?;
    let dispatcher = dir.path().join("claude");
    std::fs::write(&dispatcher, "#!/bin/sh\nexec \"$CHAOS_CLAUDE\" \"$@\"\n")?;
    std::fs::set_permissions(&dispatcher, Permissions::from_mode(0o755))?;
    // Processes come and go all the while: the ends of idle ones are part of it.
    let world = Setup::scripted().with_config("idle_secs = 0.3").start(dispatcher).await?;
    Ok((world, dir))
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

/// Kills the hub again and again; how long it took to be back each time.
async fn kill(hub: &mut HubProcess, options: &Options) -> anyhow::Result<Vec<Duration>> {
    let mut rng = Rng::with_seed(options.seed);
    let mut back = Vec::new();
    for _ in 0..options.kills {
        sleep(Duration::from_millis(rng.u64(5..900))).await;
        hub.kill9().await?;
        let away = match rng.u8(0..10) {
            0..5 => 0,
            5..9 => rng.u64(0..1000),
            _ => rng.u64(1000..4000),
        };
        sleep(Duration::from_millis(away)).await;
        let started = Instant::now();
        hub.restart().await?;
        back.push(started.elapsed());
    }
    Ok(back)
}
