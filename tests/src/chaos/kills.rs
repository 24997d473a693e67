//! Who is killed in a chaos run, and when: the hub at random instants or between two steps, agents and their keepers.
//! A hub that was killed is started again, as often as it takes while the disk fails.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fastrand::Rng;
use plexus_testkit::hubproc::HubProcess;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::time::{Instant, sleep};

use super::{Disk, Options, Run, Victims};

/// How long a failing disk may keep a hub from coming up, and how soon it is tried again.
const READY_WITHIN: Duration = Duration::from_secs(30);
const START_AGAIN: Duration = Duration::from_millis(50);
/// After how many kills it is said how far a run has come.
const TELL_EVERY: u32 = 10;

/// Where the hub comes by between two steps, see `kill_point` in `plexus-core`.
pub const KILL_POINTS: [&str; 36] = [
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
    "fork: read",
    "fork: stored",
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

/// Kills the hub again and again; how long it took to be back each time.
pub(super) async fn at_random(
    hub: &mut HubProcess,
    kills: u32,
    options: &Options,
    run: &Run,
) -> anyhow::Result<Vec<Duration>> {
    let mut rng = Rng::with_seed(options.seed);
    let mut back = Vec::new();
    for kill in 1..=kills {
        if options.victims == Victims::Children {
            for _ in 0..rng.u8(0..4) {
                kill_one(run, &mut rng)?;
                sleep(Duration::from_millis(rng.u64(0..200))).await;
            }
        }
        sleep(Duration::from_millis(rng.u64(5..900))).await;
        // Going away in order has to work on a failing disk, too.
        if options.disk == Disk::Failing && rng.u8(0..4) == 0 {
            hub.terminate().await?;
        } else {
            hub.kill9().await?;
        }
        let away = match rng.u8(0..10) {
            0..5 => 0,
            5..9 => rng.u64(0..1000),
            _ => rng.u64(1000..4000),
        };
        sleep(Duration::from_millis(away)).await;
        back.push(restart(hub, run).await?);
        if kill.is_multiple_of(TELL_EVERY) {
            let spans = run.spans.load(Ordering::SeqCst);
            let turns = run.book.turns();
            (options.progress)(&format!("{kill} kills, {spans} spans of a failing disk, {turns} turns"));
        }
    }
    Ok(back)
}

/// Has the hub end at each of these points, once.
pub(super) async fn at_points(
    hub: &mut HubProcess,
    points: &[&str],
    file: &Path,
    run: &Run,
) -> anyhow::Result<Vec<Duration>> {
    let mut back = Vec::new();
    for point in points {
        // In place at once or not at all: half a name would be no point.
        let staged = file.with_extension("staged");
        std::fs::write(&staged, point)?;
        std::fs::rename(&staged, file)?;
        if hub.wait().await.is_ok() {
            back.push(restart(hub, run).await?);
        } else {
            let _ = std::fs::remove_file(file);
            run.book.fault(format!("the hub never came to `{point}`"));
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

/// Starts it again; how long it took to be ready. While the disk fails it may come up or say why it does not.
async fn restart(hub: &mut HubProcess, run: &Run) -> anyhow::Result<Duration> {
    let started = Instant::now();
    loop {
        let Err(error) = hub.restart().await else { return Ok(started.elapsed()) };
        let why = error.to_string();
        let says_why = why.contains("ended before it was ready") && why.contains("plexus.db: ");
        if run.disk == Disk::Sound || !says_why || started.elapsed() > READY_WITHIN {
            return Err(error.context("a hub that was killed does not come up again"));
        }
        run.refused_starts.fetch_add(1, Ordering::SeqCst);
        sleep(START_AGAIN).await;
    }
}
