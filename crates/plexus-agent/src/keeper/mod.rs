//! The keeper: the small process between the hub and one child, `plexus keep DIR`. It is the child's parent. It copies
//! complete lines from the outbox to the child's stdin and the child's stdout to the journal, adopts the child's
//! descendants, and reports how the child ended. It outlives the hub and does not handle approvals or databases. It has
//! one thread and one `poll`, and its only state is an offset.

mod bounded_journal;
mod child;
mod feeder;
mod mover;
mod signals;
mod turn;
mod wake;

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpid, set_child_subreaper, setsid};

use self::bounded_journal::Bounded;
use self::child::{Child, Descendants, Started};
use self::feeder::{Feed, Feeder};
use self::mover::{Mover, StderrLog};
use self::signals::Signals;
use self::turn::{Turn, Turns};
use self::wake::{Hub, Wake};
use crate::command_line::{JournalLimits, Launch};
use crate::dir_watch::{DirState, DirWatch};
use crate::exit::Exit;
use crate::process_tree::signal_below;
use crate::run_dir::{RunDir, append_to};
use crate::sandbox::forbid_tracing;

/// The interval at which remaining processes are killed again.
const KILL_AGAIN_AFTER: Duration = Duration::from_millis(10);

/// Why a keeper failed. `exit.json` and the keeper's stderr carry the same message.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// `launch.json` cannot be read.
    #[error("cannot read launch.json: {0}")]
    Launch(#[source] io::Error),
    /// A required file or system call failed.
    #[error("cannot set up the keeper: {0}")]
    Setup(#[source] io::Error),
    /// The hub that started the keeper has ended, or abandoned this run.
    #[error("the hub did not send the go line within {0:?}; nothing was started")]
    NoGoLine(Duration),
    /// The outbox belongs to another run.
    #[error("the first line of the outbox is not the go line of this run; nothing was started")]
    WrongGoLine,
    /// SIGTERM arrived before the go line.
    #[error("stopped before the go line arrived; nothing was started")]
    Ended,
    /// The outbox can no longer be read, so the keeper stopped the child.
    #[error("cannot read the outbox: {0}")]
    Outbox(#[source] io::Error),
    /// The run directory was deleted, renamed or replaced. The hub can no longer reach the child, so the keeper stopped
    /// it.
    #[error("the run directory was deleted or replaced")]
    Gone,
    /// `exit.json` could not be written.
    #[error("cannot write exit.json: {0}")]
    Exit(#[source] io::Error),
}

/// The keeper's timeouts.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// For the go line.
    pub go: Duration,
    /// For the process tree after SIGINT, again after SIGTERM, and once more for a full disk.
    pub grace: Duration,
    /// For killed processes to disappear. A process that hangs in the kernel must not block the keeper forever.
    pub tree: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { go: Duration::from_secs(30), grace: Duration::from_secs(1), tree: Duration::from_secs(5) }
    }
}

/// Supervises the run in `dir` from the go line until the child has ended. This is all that `plexus keep DIR` does.
///
/// Call it on the main thread of a dedicated process: the child dies with the thread that started it, and all
/// descendants of this process are killed at the end.
pub fn keep(dir: &Path) -> Result<(), KeepError> {
    keep_within(dir, Limits::default())
}

/// [`keep`] with other limits.
pub fn keep_within(dir: &Path, limits: Limits) -> Result<(), KeepError> {
    // A child must not reach the keeper's open descriptors.
    forbid_tracing().map_err(KeepError::Setup)?;
    let dir = RunDir::new(std::path::absolute(dir).map_err(KeepError::Setup)?);
    let signals = Signals::catch().map_err(KeepError::Setup)?;
    let run_dir = DirWatch::new(dir.path()).map_err(KeepError::Setup)?;
    let outcome = run(&dir, &run_dir, &limits, &signals);
    if run_dir.state() == DirState::Gone {
        // A directory that replaced it does not belong to this run, so nothing is written there.
        return Err(KeepError::Gone);
    }
    let exit = match &outcome {
        Ok(exit) => exit.clone(),
        Err(error) => Exit::now(None, None, Some(error.to_string())),
    };
    let written = write_exit(&exit, &dir, &limits, &signals).map_err(KeepError::Exit);
    outcome.and(written)
}

fn run(dir: &RunDir, run_dir: &DirWatch, limits: &Limits, signals: &Signals) -> Result<Exit, KeepError> {
    let launch = Launch::read(dir).map_err(KeepError::Launch)?;
    // A terminal's Ctrl-C is meant for the hub. `setsid` fails only if this process already leads a session.
    let _ = setsid();
    set_child_subreaper(Some(getpid())).map_err(|error| KeepError::Setup(error.into()))?;
    let wake = Wake::open(dir).map_err(KeepError::Setup)?;
    let mut feeder = Feeder::open(&dir.outbox()).map_err(KeepError::Setup)?;
    let JournalLimits { most_bytes, reserve_bytes } = launch.journal;
    let journal = append_to(&dir.journal())
        .and_then(|file| Bounded::new(file, most_bytes, reserve_bytes))
        .map_err(KeepError::Setup)?;
    let log = append_to(&dir.stderr()).map_err(KeepError::Setup)?;

    wait_for_go(&mut feeder, &launch.nonce, &wake, run_dir, signals, limits.go)?;

    let Started { child, ends, sandbox } = match Child::start(&launch) {
        Ok(started) => started,
        Err(reason) => return Ok(Exit::now(None, None, Some(reason))),
    };
    if let Some(sandbox) = sandbox {
        // Written before the child's first line. If it cannot be written, the run counts as not sandboxed.
        let _ = sandbox.write(dir);
    }
    if let Some(stdin) = ends.stdin {
        feeder.connect(stdin);
    }
    let mut keeper = Keeper {
        child,
        feeder,
        stdout: Mover::new(ends.stdout, Turns::new(journal)),
        stderr: StderrLog::new(ends.stderr, log),
        wake,
        run_dir,
        disconnected_at: None,
        idle_without_hub: launch.idle_without_hub,
        signals,
        limits,
    };
    let outcome = keeper.copy_until_end();
    keeper.end_tree();
    keeper.drain();
    outcome?;
    Ok(keeper.child.exit())
}

/// Waits for the go line. Until it arrives, the hub may not know of this keeper and must be free to start another one
/// for the same session.
fn wait_for_go(
    feeder: &mut Feeder,
    nonce: &str,
    wake: &Wake,
    run_dir: &DirWatch,
    signals: &Signals,
    limit: Duration,
) -> Result<(), KeepError> {
    let until = Instant::now() + limit;
    loop {
        signals.drain();
        wake.drain();
        if signals.terminate() {
            return Err(KeepError::Ended);
        }
        if signals.take_directory_changed() && run_dir.state() == DirState::Gone {
            return Err(KeepError::Gone);
        }
        match feeder.read_go().map_err(KeepError::Outbox)? {
            Some(found) if found == nonce => return Ok(()),
            Some(_) => return Err(KeepError::WrongGoLine),
            None if Instant::now() >= until => return Err(KeepError::NoGoLine(limit)),
            None => {}
        }
        let mut fds = [PollFd::new(signals, PollFlags::IN), PollFd::new(wake, PollFlags::IN)];
        wait(&mut fds, Some(until));
    }
}

struct Keeper<'a> {
    child: Child,
    feeder: Feeder,
    stdout: Mover<Turns<Bounded>>,
    stderr: StderrLog,
    wake: Wake,
    run_dir: &'a DirWatch,
    /// When the hub disconnected.
    disconnected_at: Option<Instant>,
    idle_without_hub: Option<Duration>,
    signals: &'a Signals,
    limits: &'a Limits,
}

impl Keeper<'_> {
    /// Copies lines in both directions until the child has ended or must be stopped: after SIGTERM, when the run
    /// directory is gone, or when the child has no turn and the hub has been disconnected for too long.
    fn copy_until_end(&mut self) -> Result<(), KeepError> {
        loop {
            // Wake sources are drained before the state they announce is checked, so that no wake is lost.
            self.signals.drain();
            self.wake.drain();

            self.child.reap();
            let feed = self.feeder.feed().map_err(KeepError::Outbox)?;
            if self.child.has_ended() || self.signals.terminate() {
                return Ok(());
            }
            if self.signals.take_directory_changed() && self.run_dir.state() == DirState::Gone {
                return Err(KeepError::Gone);
            }
            if self.feeder.take_prompt_sent() {
                self.stdout.file_mut().prompt_sent();
            }
            self.stdout.copy_available();
            self.stderr.copy_available();
            let orphaned_at = self.orphaned_at();
            if orphaned_at.is_some_and(|at| Instant::now() >= at) {
                return Ok(());
            }
            self.wait(feed, orphaned_at);
        }
    }

    /// When to stop the child unless a hub connects; `None` while a hub is connected or a turn is open.
    fn orphaned_at(&mut self) -> Option<Instant> {
        match self.wake.hub() {
            Hub::Present => self.disconnected_at = None,
            Hub::Absent => _ = self.disconnected_at.get_or_insert_with(Instant::now),
        }
        match self.stdout.file_mut().turn() {
            Turn::Open => None,
            Turn::None => self.disconnected_at?.checked_add(self.idle_without_hub?),
        }
    }

    /// Stops all remaining descendants of this process: first SIGINT, then SIGTERM, then SIGKILL. Lines are still
    /// copied meanwhile, so that no process blocks while writing its last output.
    fn end_tree(&mut self) {
        let (interrupt, terminate) = ((Signal::INT, self.limits.grace), (Signal::TERM, self.limits.grace));
        // A child that exited by itself leaves only stray descendants, and many of those ignore SIGINT.
        let interrupt = (!self.child.has_ended()).then_some(interrupt);
        for (signal, patience) in interrupt.into_iter().chain([terminate, (Signal::KILL, self.limits.tree)]) {
            let until = Instant::now() + patience;
            let mut signal_at = Instant::now();
            while Instant::now() < until {
                self.signals.drain();
                self.wake.drain();
                if let Descendants::None = self.child.reap() {
                    return;
                }
                if Instant::now() >= signal_at {
                    signal_below(signal);
                    // A terminated process gets time to exit. A killed process may have forked just before, so SIGKILL
                    // is repeated.
                    signal_at =
                        if signal == Signal::KILL { Instant::now() + KILL_AGAIN_AFTER } else { until };
                }
                // An unreadable outbox was already reported. Here only the end of the tree matters.
                let feed = self.feeder.feed().unwrap_or(Feed::WaitsForLines);
                self.stdout.copy_available();
                self.stderr.copy_available();
                self.wait(feed, Some(signal_at));
            }
        }
    }

    /// Copies the data that remains in the sockets. No process is left to write, so an empty socket is complete.
    fn drain(&mut self) {
        self.stdout.file_mut().file_mut().use_reserve();
        let mut give_up_at = None;
        while self.stdout.copy_available().is_unfinished() {
            self.signals.drain();
            if self.run_dir.state() == DirState::Gone {
                // Nothing will read the output.
                break;
            }
            let now = Instant::now();
            if self.signals.terminate() && now >= *give_up_at.get_or_insert(now + self.limits.grace) {
                break;
            }
            if let Some(retry_at) = self.stdout.retry_at() {
                wait(&mut [PollFd::new(self.signals, PollFlags::IN)], earliest(Some(retry_at), give_up_at));
            }
        }
        while self.stderr.copy_available().is_unfinished() {}
    }

    fn wait(&self, feed: Feed, deadline: Option<Instant>) {
        let mut fds = Vec::with_capacity(5);
        fds.push(PollFd::new(self.signals, PollFlags::IN));
        fds.push(PollFd::new(&self.wake, PollFlags::IN));
        fds.extend(self.stdout.source_fd().map(|end| PollFd::from_borrowed_fd(end, PollFlags::IN)));
        fds.extend(self.stderr.source_fd().map(|end| PollFd::from_borrowed_fd(end, PollFlags::IN)));
        if let Feed::WaitsForSpace = feed {
            fds.extend(self.feeder.stdin_fd().map(|end| PollFd::from_borrowed_fd(end, PollFlags::OUT)));
        }
        wait(&mut fds, earliest(deadline, self.stdout.retry_at()));
    }
}

/// Waits for one of `fds` or for a deadline. May return early, because every caller checks again.
fn wait(fds: &mut [PollFd<'_>], until: Option<Instant>) {
    let timeout = until.map(|until| until.saturating_duration_since(Instant::now()));
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    let _ = poll(fds, timeout.as_ref());
}

fn earliest(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
}

/// Writes `exit.json`, as the keeper's last action. Waits while the disk is full, unless SIGTERM arrives.
fn write_exit(exit: &Exit, dir: &RunDir, limits: &Limits, signals: &Signals) -> io::Result<()> {
    let mut give_up_at = None;
    let mut pause = mover::FIRST_PAUSE;
    loop {
        let error = match exit.write(dir) {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        let now = Instant::now();
        let full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        let given_up = signals.terminate() && now >= *give_up_at.get_or_insert(now + limits.grace);
        if !full || given_up {
            return Err(error);
        }
        signals.drain();
        wait(&mut [PollFd::new(signals, PollFlags::IN)], earliest(Some(now + pause), give_up_at));
        pause = mover::longer(pause);
    }
}
