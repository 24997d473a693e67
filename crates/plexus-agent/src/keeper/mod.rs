//! The keeper: the small process between the hub and one child, `plexus keep DIR`. It is the child's parent,
//! moves whole lines from the outbox to the child's stdin and the child's stdout to the journal, adopts all
//! that stems from the child, and says at the end how it ended. It outlives the hub and knows nothing of
//! approvals or databases; one thread, one `poll`, and no memory of its own but an offset.

mod bounded;
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

use self::bounded::Bounded;
use self::child::{Child, Left, Started};
use self::feeder::{Feed, Feeder};
use self::mover::{Mover, StderrLog};
use self::signals::Signals;
use self::turn::{Turn, Turns};
use self::wake::{Hub, Wake};
use crate::dir_watch::{DirState, DirWatch};
use crate::exit::Exit;
use crate::launch::{JournalLimits, Launch};
use crate::run_dir::{RunDir, append_to};
use crate::tree::signal_below;
use crate::sandbox::forbid_tracing;

/// How often what is left is killed again.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Why a keeper gave up. The same words stand in `exit.json` and on its stderr.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// There is nothing to start.
    #[error("launch.json cannot be read: {0}")]
    Launch(#[source] io::Error),
    /// A file or a system call that the keeper cannot do without.
    #[error("the keeper could not be set up: {0}")]
    Setup(#[source] io::Error),
    /// The hub that started it is gone, or gave this run up.
    #[error("no word to start came within {0:?}; nothing was started")]
    NeverTold(Duration),
    /// The outbox belongs to another run.
    #[error("the first line of the outbox is not this run's word to start; nothing was started")]
    WrongWord,
    /// A SIGTERM came before the word to start.
    #[error("ended before the word to start; nothing was started")]
    Ended,
    /// What the child is to read cannot be read any more, so the child was ended.
    #[error("the outbox cannot be read: {0}")]
    Outbox(#[source] io::Error),
    /// The run directory was deleted, renamed or replaced, so nobody can talk to the child any more, and it was ended.
    #[error("the run directory is gone")]
    Gone,
    /// How the child ended could not be written down.
    #[error("exit.json cannot be written: {0}")]
    Exit(#[source] io::Error),
}

/// How long the keeper waits for what may never come.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// For the word to start.
    pub go: Duration,
    /// For the tree after SIGINT, again after SIGTERM, and then once more for a full disk.
    pub grace: Duration,
    /// For killed processes to be gone: one that hangs in the kernel must not hold the keeper for good.
    pub tree: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { go: Duration::from_secs(30), grace: Duration::from_secs(1), tree: Duration::from_secs(5) }
    }
}

/// Keeps the run in `dir` from the word to start to the child's end: all that `plexus keep DIR` does.
///
/// It belongs on the main thread of a process of its own: the child dies with the thread that started it,
/// and everything below this process is killed at the end.
pub fn keep(dir: &Path) -> Result<(), KeepError> {
    keep_within(dir, Limits::default())
}

/// [`keep`] with other limits.
pub fn keep_within(dir: &Path, limits: Limits) -> Result<(), KeepError> {
    // What it holds open is what a child must not reach.
    forbid_tracing().map_err(KeepError::Setup)?;
    let dir = RunDir::new(std::path::absolute(dir).map_err(KeepError::Setup)?);
    let signals = Signals::catch().map_err(KeepError::Setup)?;
    let home = DirWatch::new(dir.path()).map_err(KeepError::Setup)?;
    let outcome = run(&dir, &home, &limits, &signals);
    if home.state() == DirState::Gone {
        // Another one in its place is not this run's to write to.
        return Err(KeepError::Gone);
    }
    let exit = match &outcome {
        Ok(exit) => exit.clone(),
        Err(error) => Exit::now(None, None, Some(error.to_string())),
    };
    let written = write_exit(&exit, &dir, &limits, &signals).map_err(KeepError::Exit);
    outcome.and(written)
}

fn run(dir: &RunDir, home: &DirWatch, limits: &Limits, signals: &Signals) -> Result<Exit, KeepError> {
    let launch = Launch::read(dir).map_err(KeepError::Launch)?;
    // A terminal's Ctrl-C is meant for the hub. It fails only where we lead a session already.
    let _ = setsid();
    set_child_subreaper(Some(getpid())).map_err(|error| KeepError::Setup(error.into()))?;
    let wake = Wake::open(dir).map_err(KeepError::Setup)?;
    let mut feeder = Feeder::open(&dir.outbox()).map_err(KeepError::Setup)?;
    let JournalLimits { most_bytes, reserve_bytes } = launch.journal;
    let journal = append_to(&dir.journal())
        .and_then(|file| Bounded::new(file, most_bytes, reserve_bytes))
        .map_err(KeepError::Setup)?;
    let log = append_to(&dir.stderr()).map_err(KeepError::Setup)?;

    held_start(&mut feeder, &launch.nonce, &wake, home, signals, limits.go)?;

    let Started { child, ends, walled } = match Child::start(&launch) {
        Ok(started) => started,
        Err(reason) => return Ok(Exit::now(None, None, Some(reason))),
    };
    if let Some(walled) = walled {
        // Before the first line of the child. Where it cannot be written, there counts as being none.
        let _ = walled.write(dir);
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
        home,
        hub_left: None,
        idle_without_hub: launch.idle_without_hub,
        signals,
        limits,
    };
    let outcome = keeper.until_the_end();
    keeper.end_tree();
    keeper.drain();
    outcome?;
    Ok(keeper.child.exit())
}

/// Waits for the word to start. Until it came, the hub may not know of this keeper, and must be free to
/// start another one for the same session.
fn held_start(
    feeder: &mut Feeder,
    nonce: &str,
    wake: &Wake,
    home: &DirWatch,
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
        if signals.take_directory_changed() && home.state() == DirState::Gone {
            return Err(KeepError::Gone);
        }
        match feeder.first_word().map_err(KeepError::Outbox)? {
            Some(word) if word == nonce => return Ok(()),
            Some(_) => return Err(KeepError::WrongWord),
            None if Instant::now() >= until => return Err(KeepError::NeverTold(limit)),
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
    home: &'a DirWatch,
    /// Since when there is no hub.
    hub_left: Option<Instant>,
    idle_without_hub: Option<Duration>,
    signals: &'a Signals,
    limits: &'a Limits,
}

impl Keeper<'_> {
    /// Moves lines both ways until the child has ended, or is to: for a SIGTERM, without its run directory, or because it
    /// has no turn and there has been no hub for too long.
    fn until_the_end(&mut self) -> Result<(), KeepError> {
        loop {
            // What wakes us is emptied before what it speaks of is looked at, so that nothing is slept over.
            self.signals.drain();
            self.wake.drain();

            self.child.reap();
            let feed = self.feeder.feed().map_err(KeepError::Outbox)?;
            if self.child.has_ended() || self.signals.terminate() {
                return Ok(());
            }
            if self.signals.take_directory_changed() && self.home.state() == DirState::Gone {
                return Err(KeepError::Gone);
            }
            if self.feeder.take_prompted() {
                self.stdout.file_mut().prompted();
            }
            self.stdout.move_on();
            self.stderr.move_on();
            let orphaned_at = self.orphaned_at();
            if orphaned_at.is_some_and(|at| Instant::now() >= at) {
                return Ok(());
            }
            self.wait(feed, orphaned_at);
        }
    }

    /// When the child is to be ended if no hub comes; `None` while there is one, or a turn.
    fn orphaned_at(&mut self) -> Option<Instant> {
        match self.wake.hub() {
            Hub::Present => self.hub_left = None,
            Hub::Absent => _ = self.hub_left.get_or_insert_with(Instant::now),
        }
        match self.stdout.file_mut().turn() {
            Turn::Open => None,
            Turn::None => self.hub_left?.checked_add(self.idle_without_hub?),
        }
    }

    /// Ends all that is left below this process: asked first, then told, then killed. Lines are moved meanwhile, so
    /// that nobody is stuck in the middle of a last word.
    fn end_tree(&mut self) {
        let (ask, tell) = ((Signal::INT, self.limits.grace), (Signal::TERM, self.limits.grace));
        // A child that has ended of itself leaves only what it forgot, and much of that never hears a SIGINT.
        let ask = (!self.child.has_ended()).then_some(ask);
        for (signal, patience) in ask.into_iter().chain([tell, (Signal::KILL, self.limits.tree)]) {
            let until = Instant::now() + patience;
            let mut tell_at = Instant::now();
            while Instant::now() < until {
                self.signals.drain();
                self.wake.drain();
                if let Left::None = self.child.reap() {
                    return;
                }
                if Instant::now() >= tell_at {
                    signal_below(signal);
                    // What is told to end may take its time; what is killed may have had a child a moment before.
                    tell_at = if signal == Signal::KILL { Instant::now() + LOOK_AGAIN } else { until };
                }
                // An outbox that cannot be read was reported; here only the end counts.
                let feed = self.feeder.feed().unwrap_or(Feed::WaitsForLines);
                self.stdout.move_on();
                self.stderr.move_on();
                self.wait(feed, Some(tell_at));
            }
        }
    }

    /// What is still in the sockets. Nobody is left to write into them, so empty means done.
    fn drain(&mut self) {
        self.stdout.file_mut().file_mut().use_reserve();
        let mut give_up_at = None;
        while self.stdout.move_on().more_to_come() {
            self.signals.drain();
            if self.home.state() == DirState::Gone {
                // Nobody will read them.
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
        while self.stderr.move_on().more_to_come() {}
    }

    fn wait(&self, feed: Feed, deadline: Option<Instant>) {
        let mut fds = Vec::with_capacity(5);
        fds.push(PollFd::new(self.signals, PollFlags::IN));
        fds.push(PollFd::new(&self.wake, PollFlags::IN));
        fds.extend(self.stdout.readable_end().map(|end| PollFd::from_borrowed_fd(end, PollFlags::IN)));
        fds.extend(self.stderr.readable_end().map(|end| PollFd::from_borrowed_fd(end, PollFlags::IN)));
        if let Feed::WaitsForRoom = feed {
            fds.extend(self.feeder.writable_end().map(|end| PollFd::from_borrowed_fd(end, PollFlags::OUT)));
        }
        wait(&mut fds, earliest(deadline, self.stdout.retry_at()));
    }
}

/// Waits for one of `fds`, or until a moment. It may return early: whoever waits looks again anyway.
fn wait(fds: &mut [PollFd<'_>], until: Option<Instant>) {
    let timeout = until.map(|until| until.saturating_duration_since(Instant::now()));
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    let _ = poll(fds, timeout.as_ref());
}

fn earliest(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
}

/// The keeper's last act. A full disk is waited for, though not against a SIGTERM.
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
        let told = signals.terminate() && now >= *give_up_at.get_or_insert(now + limits.grace);
        if !full || told {
            return Err(error);
        }
        signals.drain();
        wait(&mut [PollFd::new(signals, PollFlags::IN)], earliest(Some(now + pause), give_up_at));
        pause = mover::longer(pause);
    }
}
