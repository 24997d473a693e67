//! `plexus serve`: runs the hub in the foreground until a signal or `plexus down` stops it. After a signal the children stay paused at
//! the gate for the next hub.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use plexus_agent::TIMING;
use plexus_core::ShutDown;
use plexus_server::{Config, ListenError, ServeError, Serving, end_children};
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt};

use crate::cli::ServeArgs;
use crate::error::{ExpectedError, system};
use crate::plural::counted;
use crate::port_user::PortUser;
use crate::{editor, output, settings, timing_marks};

/// How long the hub waits for a second Ctrl-C.
const SECOND_CTRL_C: Duration = Duration::from_secs(2);

/// Runs the hub.
pub(crate) fn run(args: ServeArgs) -> Result<(), ExpectedError> {
    log_to_stderr(LevelFilter::INFO);
    raise_open_files();
    let background = args.background;
    if background {
        // The hub must survive its terminal and ignore Ctrl-C there.
        rustix::process::setsid().map_err(system)?;
    }
    let config = settings::config(args)?;
    if background {
        std::env::set_current_dir("/").map_err(system)?;
    }
    tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(system)?.block_on(serve(config))
}

async fn serve(config: Config) -> Result<(), ExpectedError> {
    let mut signals = Signals::new()?;
    let mut serving = match Serving::start(config.clone()).await {
        Err(ServeError::Listen(ListenError::InUse(address))) => {
            return Err(ExpectedError::PortInUse { address, user: PortUser::of(address).await });
        }
        started => started?,
    };
    if let Err(error) = editor::sweep(&config.hub.data_dir) {
        tracing::warn!(%error, "cannot delete drafts of an earlier edit");
    }
    if let Some(warning) = serving.hub().sandbox_warning() {
        output::say(&format!("plexus: warning: {warning}"));
    }
    output::announce(&format!("plexus listening on {}", serving.url()));
    let fenced = Arc::clone(serving.hub());
    let ending = tokio::select! {
        ending = signals.next() => ending,
        fenced = fenced.fenced() => {
            serving.stop(ShutDown::LeaveChildren).await;
            return Err(ExpectedError::Fenced(fenced));
        }
        request = serving.down_requested() => {
            let children = serving.stop_for(request).await;
            output::say(&format!("plexus: stopped the hub and {}", count(children)));
            return Ok(());
        }
    };
    let children = serving.stop(ShutDown::LeaveChildren).await;
    if children == 0 {
        return Ok(());
    }
    let (paused, them) = match children {
        1 => ("1 child is paused at the gate and continues".to_owned(), "it"),
        _ => (format!("{children} children are paused at the gate and continue"), "them"),
    };
    output::say(&format!("plexus: {paused} with the next `plexus serve`; `plexus down` stops {them}"));
    if ending == Ending::CtrlC && std::io::stderr().is_terminal() {
        output::say(&format!("plexus: press Ctrl-C again to stop {them} now"));
        if tokio::time::timeout(SECOND_CTRL_C, signals.next()).await.is_ok() {
            let ended = end_children(config).await?;
            output::say(&format!("plexus: stopped {}", count(ended.count)));
        }
    }
    Ok(())
}

pub(crate) fn count(children: usize) -> String {
    counted(children, "child", "children")
}

/// What asked the hub to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Ctrl-C at the terminal.
    CtrlC,
    /// Another signal.
    Signal,
}

/// The signals that a hub handles.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    /// Caught so that a file over the size limit fails the write instead of killing the hub.
    _file_size: Signal,
}

impl Signals {
    pub(crate) fn new() -> Result<Self, ExpectedError> {
        let of = |kind| signal(kind).map_err(system);
        Ok(Self {
            interrupt: of(SignalKind::interrupt())?,
            terminate: of(SignalKind::terminate())?,
            hang_up: of(SignalKind::hangup())?,
            _file_size: of(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?,
        })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> Ending {
        tokio::select! {
            _ = self.interrupt.recv() => Ending::CtrlC,
            _ = self.terminate.recv() => Ending::Signal,
            _ = self.hang_up.recv() => Ending::Signal,
        }
    }
}

/// Logs to stderr: the levels in `PLEXUS_LOG`, such as `info,plexus_core=debug`, else `default`.
pub(crate) fn log_to_stderr(default: LevelFilter) {
    let chosen = std::env::var("PLEXUS_LOG").ok().and_then(|levels| levels.parse::<Targets>().ok());
    let levels = chosen.unwrap_or_else(|| Targets::new().with_default(default));
    let wants_marks = levels.iter().any(|(target, level)| target == TIMING && level == LevelFilter::TRACE);
    let marks = wants_marks.then(timing_marks::layer);
    let levels = levels.with_target(TIMING, LevelFilter::OFF);
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(false).with_filter(levels);
    tracing_subscriber::registry().with(lines).with(marks).init();
}

/// Raises the limit of open files, because a hub with hundreds of children and clients needs more than the default.
fn raise_open_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::debug!(%error, "cannot raise the limit of open files");
    }
}
