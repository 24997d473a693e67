//! `plexus watch`: the tree of sessions, the open approvals and the log of a session on one screen; single keys answer. `model`, `update`
//! and `keys` hold the state and its changes, `view` draws it. This module runs the loop over the terminal, the hub's streams and
//! signals.

mod answers;
pub(crate) mod decode;
mod feed;
mod foot;
mod guards;
mod hub_calls;
pub(crate) mod input;
mod keys;
mod log;
mod model;
mod terminal;
mod update;
mod view;

#[cfg(test)]
mod tests;

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plexus_server::DataDir;
use rustix::termios::{QueueSelector, tcflush};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::cli::WatchArgs;
use crate::client::{CallError, Client};
use crate::editor::{self, EditError, Edited};
use crate::error::{ExpectedError, system};
use crate::serve::Signals;
use crate::terminal::now;
use decode::Input;
use hub_calls::HubCalls;
use input::Keys;
use model::Model;
use terminal::Screen;
use update::{Effect, Event, update};
use view::Paint;

/// How often ages are redrawn. This makes no request.
const TICK: Duration = Duration::from_secs(5);
/// The maximum number of events between two frames.
const WAITING: usize = 256;

/// The message after an edit without result.
const LEFT_OPEN: &str = "nothing was answered, the approval stays open";

/// Runs until the user quits.
pub(crate) fn run(args: &WatchArgs) -> Result<(), ExpectedError> {
    if !(std::io::stdout().is_terminal() && std::io::stdin().is_terminal()) {
        let message = "`plexus watch` needs a terminal; `plexus approvals` lists the open approvals";
        return Err(ExpectedError::Usage(message.to_owned()));
    }
    let dir = args.data_dir.resolve()?;
    let colourless = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let paint = if colourless { Paint::Plain } else { Paint::Colours };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(system)?;
    runtime.block_on(watch(&dir, paint))
}

async fn watch(dir: &Path, paint: Paint) -> Result<(), ExpectedError> {
    let socket = DataDir::socket(dir);
    let client = Client::Operator { socket };
    if let Err(CallError::NotReached(_)) = client.call("loopback.pending", json!({})).await {
        return Err(ExpectedError::NoHub(dir.to_owned()));
    }
    let mut signals = Signals::new()?;
    let (events, updates) = mpsc::channel(WAITING);
    let mut feeds = JoinSet::new();
    feeds.spawn(feed::approvals(client.clone(), events.clone()));
    feeds.spawn(feed::sessions(client, events.clone()));
    let mut watching = Watching::new(dir, events, updates, paint)?;
    tokio::select! {
        ended = watching.run() => ended,
        // Dropping `watching` restores the terminal.
        _ = signals.next() => Ok(()),
        Some(Err(error)) = feeds.join_next() => Err(system(error)),
    }
}

/// Whether to continue.
enum Next {
    On,
    Leave,
}

/// The channel of typed input.
type Typed =
    (mpsc::UnboundedSender<io::Result<input::Typed>>, mpsc::UnboundedReceiver<io::Result<input::Typed>>);

struct Watching {
    dir: PathBuf,
    model: Model,
    screen: Screen,
    hub_calls: HubCalls,
    updates: mpsc::Receiver<Event>,
    keys: Option<Keys>,
    typed: Typed,
}

impl Watching {
    fn new(
        dir: &Path,
        events: mpsc::Sender<Event>,
        updates: mpsc::Receiver<Event>,
        paint: Paint,
    ) -> Result<Self, ExpectedError> {
        let model = Model { now: now(), ..Model::default() };
        let screen = Screen::take(paint).map_err(system)?;
        let (send, typed) = mpsc::unbounded_channel();
        let keys = Some(Keys::read(send.clone()).map_err(system)?);
        let hub_calls = HubCalls::new(dir.to_owned(), events);
        Ok(Self { dir: dir.to_owned(), model, screen, hub_calls, updates, keys, typed: (send, typed) })
    }

    async fn run(&mut self) -> Result<(), ExpectedError> {
        let mut resized = signal(SignalKind::window_change()).map_err(system)?;
        let mut tick = tokio::time::interval(TICK);
        loop {
            self.screen.draw(&mut self.model).map_err(system)?;
            let mut at = None;
            let event = tokio::select! {
                event = self.updates.recv() => event,
                input = self.typed.1.recv() => match input.transpose().map_err(system)? {
                    Some((typed_at, input)) => {
                        at = Some(typed_at);
                        match input {
                            Input::Key(key) => Some(Event::Key(key)),
                            Input::Paste(text) => Some(Event::Pasted(text)),
                        }
                    }
                    None => return Ok(()),
                },
                _ = resized.recv() => Some(Event::Resized),
                _ = tick.tick() => Some(Event::Tick(now())),
            };
            let mut event = event;
            // Events that arrive together are drawn together.
            for _ in 0..WAITING {
                let Some(happened) = event.take() else { break };
                let at = at.take().unwrap_or_else(Instant::now);
                if let Next::Leave = self.apply(happened, at).await? {
                    return Ok(());
                }
                event = self.updates.try_recv().ok();
            }
        }
    }

    async fn apply(&mut self, event: Event, at: Instant) -> Result<Next, ExpectedError> {
        let mut events = vec![(event, at)];
        while let Some((event, at)) = events.pop() {
            for effect in update(&mut self.model, event, at) {
                match effect {
                    Effect::Quit => return Ok(Next::Leave),
                    Effect::Follow(session) => self.hub_calls.follow(session),
                    Effect::Read(approval) => self.hub_calls.read(approval),
                    Effect::Call { method, params, answers, done } => {
                        self.hub_calls.call(method, params, answers, done);
                    }
                    Effect::Edit(approval, editable) => {
                        // Only the editor reads the keys now.
                        self.keys = None;
                        self.screen.lend();
                        let edited = editor::edit(&self.dir, &editable, None).await;
                        self.screen.take_again().map_err(system)?;
                        // Input typed for the editor must not confirm anything.
                        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
                        while self.typed.1.try_recv().is_ok() {}
                        self.keys = Some(Keys::read(self.typed.0.clone()).map_err(system)?);
                        let event = match edited {
                            Ok(Edited::Changed(input)) => Event::Edited(approval, input),
                            Ok(Edited::Same) => {
                                Event::Outcome(format!("the input was not changed: {LEFT_OPEN}"))
                            }
                            Err(EditError::Invalid { why, .. }) => {
                                Event::Outcome(format!("{LEFT_OPEN}: {why}"))
                            }
                            Err(why) => Event::Outcome(format!("{LEFT_OPEN}: {why}")),
                        };
                        events.push((event, Instant::now()));
                    }
                }
            }
        }
        Ok(Next::On)
    }
}
