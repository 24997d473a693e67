//! `plexus watch`: the tree of sessions, what waits for an answer and what happens, on one screen, answered by single
//! keys. What is known and how it changes is in `model`, `update` and `keys`, drawing in `view`; here the terminal, the
//! hub's streams and the signals come together in one loop.

mod answers;
mod diff;
mod feed;
mod foot;
mod input;
mod keys;
mod log;
mod model;
mod outside;
mod question;
mod rows;
mod terminal;
mod update;
mod view;
mod width;

#[cfg(test)]
mod screens;

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crossterm::event::Event as Input;
use plexus_protocol::Object;
use plexus_server::DataDir;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::cli::WatchArgs;
use crate::client::{CallError, Client};
use crate::editor::{Draft, EditError, Edited};
use crate::error::{ExpectedError, system};
use crate::serve::Signals;
use crate::terminal::now;
use input::Keys;
use model::Model;
use outside::Outside;
use terminal::Screen;
use update::{Effect, Event, update};
use view::Paint;

/// How often ages are drawn anew. This asks nobody anything.
const TICK: Duration = Duration::from_secs(5);
/// How much may come between two frames.
const WAITING: usize = 256;

/// Shows everything until its user leaves.
pub(crate) fn run(args: &WatchArgs) -> Result<(), ExpectedError> {
    if !(std::io::stdout().is_terminal() && std::io::stdin().is_terminal()) {
        let message = "`plexus watch` needs a terminal; `plexus loopback pending` lists what is open";
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
    let client = Client::Operator { socket: socket.clone() };
    if let Err(CallError::NotReached(_)) = client.call("loopback.pending", json!({})).await {
        return Err(ExpectedError::NoHub(dir.to_owned()));
    }
    let mut signals = Signals::new()?;
    let (tell, told) = mpsc::channel(WAITING);
    let mut feeds = JoinSet::new();
    feeds.spawn(feed::approvals(client.clone(), tell.clone()));
    feeds.spawn(feed::sessions(client, tell.clone()));
    let mut watching = Watching::new(socket, tell, told, paint)?;
    tokio::select! {
        ended = watching.run() => ended,
        // The guard gives the terminal back.
        _ = signals.next() => Ok(()),
        Some(Err(error)) = feeds.join_next() => Err(system(error)),
    }
}

/// Whether it goes on.
enum Next {
    On,
    Leave,
}

/// The way keys come.
type Typed = (mpsc::UnboundedSender<io::Result<Input>>, mpsc::UnboundedReceiver<io::Result<Input>>);

struct Watching {
    model: Model,
    screen: Screen,
    outside: Outside,
    told: mpsc::Receiver<Event>,
    keys: Option<Keys>,
    typed: Typed,
}

impl Watching {
    fn new(
        socket: PathBuf,
        tell: mpsc::Sender<Event>,
        told: mpsc::Receiver<Event>,
        paint: Paint,
    ) -> Result<Self, ExpectedError> {
        let model = Model { now: now(), ..Model::default() };
        let screen = Screen::take(paint).map_err(system)?;
        let (send, typed) = mpsc::unbounded_channel();
        let keys = Some(Keys::read(send.clone()).map_err(system)?);
        let outside = Outside::new(socket, tell);
        Ok(Self { model, screen, outside, told, keys, typed: (send, typed) })
    }

    async fn run(&mut self) -> Result<(), ExpectedError> {
        let mut resized = signal(SignalKind::window_change()).map_err(system)?;
        let mut tick = tokio::time::interval(TICK);
        loop {
            self.screen.draw(&mut self.model).map_err(system)?;
            let event = tokio::select! {
                event = self.told.recv() => event,
                input = self.typed.1.recv() => match input {
                    Some(Ok(Input::Key(key))) => Some(Event::Key(key)),
                    Some(Ok(Input::Paste(text))) => Some(Event::Pasted(text)),
                    Some(Ok(Input::Resize(..))) => Some(Event::Resized),
                    Some(Ok(_)) => continue,
                    Some(Err(error)) => return Err(system(error)),
                    None => return Ok(()),
                },
                _ = resized.recv() => Some(Event::Resized),
                _ = tick.tick() => Some(Event::Tick(now())),
            };
            let mut event = event;
            // What came together is drawn together.
            for _ in 0..WAITING {
                let Some(happened) = event.take() else { break };
                if let Next::Leave = self.happens(happened).await? {
                    return Ok(());
                }
                event = self.told.try_recv().ok();
            }
        }
    }

    async fn happens(&mut self, event: Event) -> Result<Next, ExpectedError> {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            for effect in update(&mut self.model, event, Instant::now()) {
                match effect {
                    Effect::Quit => return Ok(Next::Leave),
                    Effect::Follow(session) => self.outside.follow(session),
                    Effect::Read(approval) => self.outside.read(approval),
                    Effect::Call { method, params, answers, done } => {
                        self.outside.call(method, params, answers, done);
                    }
                    Effect::Edit(approval, input) => {
                        // Nobody but the editor reads the keys now.
                        self.keys = None;
                        self.screen.lend();
                        let edited = edited(&input).await;
                        self.screen.take_again().map_err(system)?;
                        self.keys = Some(Keys::read(self.typed.0.clone()).map_err(system)?);
                        events.push(match edited {
                            Ok(Edited::Changed(input)) => Event::Edited(approval, input),
                            Ok(Edited::Same) => {
                                Event::Outcome("nothing was changed, nothing is answered".to_owned())
                            }
                            Err(why) => Event::Outcome(format!("{why}: nothing is answered")),
                        });
                    }
                }
            }
        }
        Ok(Next::On)
    }
}

/// What the user makes of an input, on the terminal as it is.
async fn edited(input: &Object) -> Result<Edited, EditError> {
    Draft::of(input)?.edit().await
}
