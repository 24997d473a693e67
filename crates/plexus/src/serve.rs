//! `plexus serve`: the hub in the foreground, until a signal or `plexus down` ends it. A signal leaves the children
//! paused at the gate for the next hub.

use std::io::IsTerminal as _;
use std::time::Duration;

use plexus_core::ShutDown;
use plexus_server::{Config, Serving, end_children};
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::cli::ServeArgs;
use crate::error::{ExpectedError, system};
use crate::{editor, output, settings};

/// How long a person has for the second Ctrl-C.
const SECOND_THOUGHT: Duration = Duration::from_secs(2);

/// Runs the hub.
pub(crate) fn run(args: ServeArgs) -> Result<(), ExpectedError> {
    log_to_stderr("info");
    raise_open_files();
    let background = args.background;
    if background {
        // The terminal it was started from may go, and Ctrl-C there is not meant for it.
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
    let mut serving = Serving::start(config.clone()).await?;
    if let Err(error) = editor::sweep(&config.hub.data_dir) {
        tracing::warn!(%error, "drafts that an editor left cannot be removed");
    }
    if let Some(warning) = serving.hub().wall_warning() {
        output::say(&format!("plexus: warning: {warning}"));
    }
    output::print(&format!("plexus listening on {}", serving.url()));
    let ending = tokio::select! {
        ending = signals.next() => ending,
        request = serving.down_asked() => {
            let children = serving.go_down(request).await;
            output::say(&format!("plexus: ended, with {}", count(children)));
            return Ok(());
        }
    };
    let children = serving.stop(ShutDown::LeaveChildren).await;
    if children == 0 {
        return Ok(());
    }
    let (paused, them) = match children {
        1 => ("1 child is paused at the gate and goes on".to_owned(), "it"),
        _ => (format!("{children} children are paused at the gate and go on"), "them"),
    };
    output::say(&format!("plexus: {paused} with the next `plexus serve`; `plexus down` ends {them}"));
    if ending == Ending::CtrlC && std::io::stderr().is_terminal() {
        output::say(&format!("plexus: press Ctrl-C again to end {them} now"));
        if tokio::time::timeout(SECOND_THOUGHT, signals.next()).await.is_ok() {
            let ended = end_children(config).await?;
            output::say(&format!("plexus: ended {}", count(ended)));
        }
    }
    Ok(())
}

pub(crate) fn count(children: usize) -> String {
    if children == 1 { "1 child".to_owned() } else { format!("{children} children") }
}

/// How a person, or the system, asked the hub to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// At the terminal.
    CtrlC,
    /// By any other signal.
    Signal,
}

/// The signals that a hub heeds.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    /// Caught so that a file over the size limit is an error of that write instead of the end of the hub.
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

    /// The next wish for an end.
    pub(crate) async fn next(&mut self) -> Ending {
        tokio::select! {
            _ = self.interrupt.recv() => Ending::CtrlC,
            _ = self.terminate.recv() => Ending::Signal,
            _ = self.hang_up.recv() => Ending::Signal,
        }
    }
}

/// Logs what `PLEXUS_LOG` asks for, else what is `usual`.
pub(crate) fn log_to_stderr(usual: &str) {
    let filter = EnvFilter::try_from_env("PLEXUS_LOG").unwrap_or_else(|_| EnvFilter::new(usual));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).init();
}

/// A hub with hundreds of children and clients needs more open files than a shell usually gives.
fn raise_open_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}
