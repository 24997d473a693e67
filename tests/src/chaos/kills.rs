//! The kills of a chaos run: the hub at random instants or between two steps, and agents and their keepers. A killed hub is started
//! again, as often as necessary while the disk fails.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fastrand::Rng;
use plexus_testkit::hub_process::HubProcess;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::time::{Instant, sleep};

use super::{Disk, Options, Run, Victims};

/// How long a failing disk may prevent a start, and the pause between two attempts.
const READY_WITHIN: Duration = Duration::from_secs(30);
const START_AGAIN: Duration = Duration::from_millis(50);
/// The number of kills between two reports of progress.
const REPORT_EVERY: u32 = 10;

/// The kill points of the hub between two steps, see `kill_point` in `plexus-core`.
pub const KILL_POINTS: [&str; 36] = [
    "start: begun",
    "start: keeper started",
    "start: keeper known",
    "start: released",
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

/// How the hub is killed.
#[derive(Debug, Clone)]
pub enum Kills {
    /// This often, at random instants.
    Random(u32),
    /// At each of these points, once.
    At(Vec<&'static str>),
}

/// Kills the hub repeatedly. Returns the time of each restart.
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
        // A regular stop must work on a failing disk, too.
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
        if kill.is_multiple_of(REPORT_EVERY) {
            let spans = run.spans.load(Ordering::SeqCst);
            let turns = run.observations.turns();
            (options.progress)(&format!("{kill} kills, {spans} spans of a failing disk, {turns} turns"));
        }
    }
    Ok(back)
}

/// Kills the hub at each of these points, once.
pub(super) async fn at_points(
    hub: &mut HubProcess,
    points: &[&str],
    file: &Path,
    run: &Run,
) -> anyhow::Result<Vec<Duration>> {
    let mut back = Vec::new();
    for point in points {
        // Writes the file atomically, because half a name is not a kill point.
        let staged = file.with_extension("staged");
        std::fs::write(&staged, point)?;
        std::fs::rename(&staged, file)?;
        if hub.wait().await.is_ok() {
            back.push(restart(hub, run).await?);
        } else {
            let _ = std::fs::remove_file(file);
            run.observations.fault(format!("the hub never came to `{point}`"));
        }
    }
    Ok(back)
}

/// Kills one process of one session with SIGKILL: a keeper, an agent, or a command.
fn kill_one(run: &Run, rng: &mut Rng) -> anyhow::Result<()> {
    let sessions = run.observations.sessions();
    let Some(session) = rng.choice(&sessions) else { return Ok(()) };
    let processes = crate::processes_of(session);
    let Some(pid) = rng.choice(&processes).and_then(|pid| Pid::from_raw(pid.cast_signed())) else {
        return Ok(());
    };
    // Opens the pid first and then checks it, because the pid may have been reused.
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { return Ok(()) };
    if crate::processes_of(session).contains(&pid.as_raw_pid().cast_unsigned()) {
        let _ = pidfd_send_signal(&pidfd, Signal::KILL);
    }
    Ok(())
}

/// Starts the hub again. Returns the time until it is ready. On a failing disk the start may fail with a reason.
async fn restart(hub: &mut HubProcess, run: &Run) -> anyhow::Result<Duration> {
    let started = Instant::now();
    loop {
        let Err(error) = hub.restart().await else { return Ok(started.elapsed()) };
        let why = error.to_string();
        let says_why = why.contains("ended before it was ready") && why.contains("plexus.db: ");
        if run.disk == Disk::Sound || !says_why || started.elapsed() > READY_WITHIN {
            return Err(error.context("a killed hub does not start again"));
        }
        run.refused_starts.fetch_add(1, Ordering::SeqCst);
        sleep(START_AGAIN).await;
    }
}
