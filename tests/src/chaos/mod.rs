//! The chaos run: agents at work, clients that decide and read all the while, and a hub that is killed with -9 at
//! random instants. In the end what each agent did is compared with what was decided and with what was told. A seed
//! gives the same choices again; what they meet depends on the machine.

mod agents;
mod book;
mod deciders;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use fastrand::Rng;
use plexus_testkit::hubproc::HubProcess;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
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
const KILL_POINT: &str = "kill-point";

/// Where the hub comes by between two steps, see `kill_point` in `plexus-core`.
pub const KILL_POINTS: [&str; 34] = [
    "start: begun",
    "start: keeper started",
    "start: keeper known",
    "start: told to go",
    "start: initialize sent",
    "ready: read",
    "ready: stored",
    "ready: answered",
    "prompt: turn begun",
    "prompt: bound",
    "prompt: sent",
    "lines: read",
    "lines: stored",
    "gate: read",
    "gate: stored",
    "gate: answered",
    "ask: read",
    "ask: stored",
    "ask: answered",
    "permit: asked",
    "permit: stored",
    "permit: decided",
    "permit: noted",
    "respond: read",
    "respond: stored",
    "answer: noted",
    "answer: sent",
    "answer: delivered",
    "end of turn: read",
    "end of turn: stored",
    "idle end: committed",
    "idle end: stdin closed",
    "end: process gone",
    "end: settled",
];

/// How a hub is killed.
#[derive(Debug, Clone)]
pub enum Kills {
    /// So often, at random instants.
    Random(u32),
    /// Between two steps, each once.
    At(Vec<&'static str>),
}

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
}

/// Who is killed beside the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victims {
    /// Nobody: every turn comes to a good end.
    Nobody,
    /// Agents and their keepers, too: their turns fail and say so.
    Children,
}

/// What everyone in a run shares.
struct Run {
    url: String,
    token: String,
    victims: Victims,
    book: Book,
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
        book: Book::default(),
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

    let World { mut hub, model, work, log, dir, .. } = world;
    let absences = match &options.kills {
        Kills::Random(kills) => kill_at_random(&mut hub, *kills, options, &run).await?,
        Kills::At(points) => kill_at(&mut hub, points, &tools.path().join(KILL_POINT), &run.book).await?,
    };
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
    setup.env.push(("PLEXUS_KILL_POINT_FILE".to_owned(), tools.join(KILL_POINT).display().to_string()));
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

/// Kills the hub again and again; how long it took to be back each time.
async fn kill_at_random(
    hub: &mut HubProcess,
    kills: u32,
    options: &Options,
    run: &Run,
) -> anyhow::Result<Vec<Duration>> {
    let mut rng = Rng::with_seed(options.seed);
    let mut back = Vec::new();
    for _ in 0..kills {
        if options.victims == Victims::Children {
            for _ in 0..rng.u8(0..4) {
                kill_one(run, &mut rng)?;
                sleep(Duration::from_millis(rng.u64(0..200))).await;
            }
        }
        sleep(Duration::from_millis(rng.u64(5..900))).await;
        hub.kill9().await?;
        let away = match rng.u8(0..10) {
            0..5 => 0,
            5..9 => rng.u64(0..1000),
            _ => rng.u64(1000..4000),
        };
        sleep(Duration::from_millis(away)).await;
        back.push(restart(hub).await?);
    }
    Ok(back)
}

/// Has the hub end at each of these points, once.
async fn kill_at(
    hub: &mut HubProcess,
    points: &[&str],
    file: &Path,
    book: &Book,
) -> anyhow::Result<Vec<Duration>> {
    let mut back = Vec::new();
    for point in points {
        // In place at once or not at all: half a name would be no point.
        let staged = file.with_extension("staged");
        std::fs::write(&staged, point)?;
        std::fs::rename(&staged, file)?;
        if hub.wait().await.is_ok() {
            back.push(restart(hub).await?);
        } else {
            let _ = std::fs::remove_file(file);
            book.fault(format!("the hub never came to `{point}`"));
        }
    }
    Ok(back)
}

/// Kills one process of one session with -9: a keeper, an agent, or what it runs.
fn kill_one(run: &Run, rng: &mut Rng) -> anyhow::Result<()> {
    let sessions = run.book.sessions();
    let Some(session) = rng.choice(&sessions) else { return Ok(()) };
    let processes = crate::processes_of(session);
    let Some(pid) = rng.choice(&processes).and_then(|pid| Pid::from_raw(pid.cast_signed())) else {
        return Ok(());
    };
    // Opened first and looked at again: the pid may have become another process.
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { return Ok(()) };
    if crate::processes_of(session).contains(&pid.as_raw_pid().cast_unsigned()) {
        let _ = pidfd_send_signal(&pidfd, Signal::KILL);
    }
    Ok(())
}

async fn restart(hub: &mut HubProcess) -> anyhow::Result<Duration> {
    let started = Instant::now();
    hub.restart().await?;
    Ok(started.elapsed())
}
