//! Follows a session at the terminal, for `plexus run` and `plexus attach`. One loop receives the events of the session, the approvals of
//! sessions below it, the keyboard and signals. `events` handles events, `typing` handles keys, `answering` and `sending` handle typed lines.

mod answering;
mod connection;
mod editing;
mod events;
mod held_lines;
mod keyboard;
mod line;
mod question;
mod screen;
mod sending;
mod text_stream;
mod transcript;
mod typed_command;
mod typing;

use std::collections::{BTreeMap, VecDeque};
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use plexus_protocol::SessionId;
use plexus_protocol::claudecode::Status;
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

use self::answering::Awaiting;
use self::held_lines::HeldLines;
use self::keyboard::Keyboard;
use self::line::Line;
pub(crate) use self::screen::OutputMode;
use self::screen::{Bottom, Screen};
use self::text_stream::TextStream;
use self::transcript::Transcript;
use self::typing::Focus;
use crate::error::{ExpectedError, system};
use crate::escape::one_line;
use crate::follow::{EventPosition, Follower};
use crate::hub::{HubClient, JsonArg};
use crate::ls;
use crate::output;
use crate::paint::Paint;
use crate::prompts::OwnPrompts;
use crate::review::Reviewed;
use crate::review::width::end;
use crate::show::Events;
use crate::stored_events::StoredEvents;
use crate::terminal::{age, hub_advice};

/// How often the status line is redrawn.
const TICK: Duration = Duration::from_secs(1);

/// How much of an incomplete text the status line shows.
const WRITTEN: usize = 40;

/// The format of events.
enum Format {
    /// Rendered for a terminal.
    Rendered(Transcript),
    /// Plain lines, for a pipe or a file.
    Plain(Events),
}

impl Format {
    fn of(output_mode: OutputMode) -> Self {
        let stdout = std::io::stdout();
        if output_mode == OutputMode::Terminal && stdout.is_terminal() {
            Self::Rendered(Transcript::new(Paint::of(&stdout)))
        } else {
            Self::Plain(Events::default())
        }
    }
}

/// When the conversation ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// At the end of this turn.
    Turn(u64),
    /// When the user leaves.
    Stay,
}

/// Whether the hub responds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Connection {
    /// It responds.
    Live,
    /// It does not respond. Typed lines are ignored.
    Lost,
}

/// The state of the session at the start.
pub(crate) struct Start {
    pub(crate) id: SessionId,
    pub(crate) name: String,
    pub(crate) purpose: Purpose,
    pub(crate) turn: u64,
    pub(crate) status: Status,
    pub(crate) cost_usd: f64,
    /// The turn that this program started with a prompt of the user.
    pub(crate) own_turn: Option<u64>,
    /// Approvals after this cursor are relevant.
    pub(crate) cursor: u64,
}

/// The reader of the output.
pub(crate) fn output_mode(json: JsonArg) -> OutputMode {
    if json.json {
        OutputMode::Json
    } else if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        OutputMode::Terminal
    } else {
        OutputMode::Plain
    }
}

/// A conversation with a session.
pub(crate) struct TerminalSession<'a> {
    hub: &'a HubClient,
    id: SessionId,
    name: String,
    purpose: Purpose,
    screen: Screen,
    keyboard: Keyboard,
    /// The line for the agent, also while it is set aside for an approval.
    draft: Line,
    /// The line that answers the approval on the screen.
    answer: Line,
    /// The line that keys go to while an approval is on the screen.
    focus: Focus,
    /// Finished lines for the agent that were not handled yet.
    finished_drafts: VecDeque<String>,
    /// The open approvals; the first one is on the screen.
    open: VecDeque<Reviewed>,
    /// Ids of approvals that could not be read yet.
    unread: VecDeque<String>,
    awaiting: Awaiting,
    connection: Connection,
    /// When the hub was disconnected last.
    disconnected_at: Instant,
    /// Formats events, and keeps what later events refer to.
    shown: Format,
    turn: u64,
    status: Status,
    since: Instant,
    cost_usd: f64,
    /// Calls without a result so far, each as one line.
    tools: BTreeMap<String, String>,
    /// Text deltas that overtook the result of such a call, because deltas are not stored before they are sent.
    held: String,
    /// The agent's text while it arrives.
    stream: TextStream,
    /// Lines that wait until the approval on the screen is answered.
    held_lines: HeldLines,
    /// Files for the next message.
    attached: Vec<PathBuf>,
    /// Prompts that the user gave here.
    own_prompts: OwnPrompts,
    /// Ctrl-C was pressed in this turn.
    interrupting: bool,
    /// Ctrl-D was typed while an approval was shown or resolved.
    leaving: bool,
    /// Stdin has ended or is not a terminal.
    input_closed: bool,
    /// The turn and event to continue from.
    next: EventPosition,
}

impl<'a> TerminalSession<'a> {
    pub(crate) fn new(hub: &'a HubClient, start: &Start, output_mode: OutputMode) -> Self {
        let mut own_prompts = OwnPrompts::default();
        start.own_turn.into_iter().for_each(|turn| own_prompts.add_turn(turn));
        Self {
            hub,
            id: start.id,
            name: start.name.clone(),
            purpose: start.purpose,
            screen: Screen::new(output_mode),
            keyboard: Keyboard::new(output_mode),
            draft: Line::default(),
            answer: Line::default(),
            focus: Focus::Answer,
            finished_drafts: VecDeque::new(),
            open: VecDeque::new(),
            unread: VecDeque::new(),
            awaiting: Awaiting::Nothing,
            connection: Connection::Live,
            disconnected_at: Instant::now(),
            shown: Format::of(output_mode),
            turn: start.turn,
            status: start.status,
            since: Instant::now(),
            cost_usd: start.cost_usd,
            tools: BTreeMap::new(),
            held: String::new(),
            stream: TextStream::default(),
            held_lines: HeldLines::default(),
            attached: Vec::new(),
            own_prompts,
            interrupting: false,
            leaving: false,
            input_closed: output_mode != OutputMode::Terminal,
            next: EventPosition::START,
        }
    }

    /// Shows the stored events of the latest turn, and its open approvals. Past events do not change the state, so a turn that has
    /// ended is not shown as running.
    pub(crate) async fn catch_up(&mut self) -> Result<(), ExpectedError> {
        let counted = !self.busy();
        let mut rest = StoredEvents::of(self.id, self.turn);
        while let Some(page) = rest.page(self.hub).await? {
            for mut item in page.events {
                self.add_prompt(&mut item).await;
                let event = &item["event"];
                let what = event["type"].as_str().unwrap_or_default().to_owned();
                self.track_call(event, &what);
                if !counted {
                    self.cost_usd += event["cost_usd"].as_f64().unwrap_or(0.0);
                }
                self.show(&item, &what);
            }
            self.status = page.status;
            for approval in page.pending {
                self.fetch_approval(approval.id.to_string()).await?;
            }
        }
        self.next = rest.next();
        Ok(())
    }

    /// Runs the conversation and returns the status of the latest turn. Lines typed meanwhile do not reach the shell.
    pub(crate) async fn run(&mut self, start: &Start) -> Result<Status, ExpectedError> {
        let ended = self.event_loop(start).await;
        self.keyboard.end();
        ended
    }

    async fn event_loop(&mut self, start: &Start) -> Result<Status, ExpectedError> {
        if let Some(status) = self.final_status(self.turn) {
            return Ok(status);
        }
        let mut events = Follower::session(&self.hub.client, self.id, self.next);
        let mut below = Follower::approvals(&self.hub.client, start.cursor);
        let mut ctrl_c = caught(SignalKind::interrupt())?;
        let mut terminate = caught(SignalKind::terminate())?;
        let mut hang_up = caught(SignalKind::hangup())?;
        let mut continued = caught(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?;
        let mut ticks = tokio::time::interval(TICK);
        self.draw_bottom();
        loop {
            while let Some(line) = self.finished_drafts.pop_front() {
                self.send(&line).await?;
            }
            if self.leaving {
                return self.detach();
            }
            let ended = tokio::select! {
                item = events.next() => self.on_event(item.map_err(|error| self.hub.explain(error))?).await?,
                item = below.next() => {
                    self.on_approval_event(item.map_err(|error| self.hub.explain(error))?).await?;
                    None
                }
                input = self.keyboard.next(), if !self.input_closed => match input {
                    Some(input) => {
                        let ended = self.on_input(&input).await?;
                        // Ctrl-C in an editor was for the editor.
                        ctrl_c = caught(SignalKind::interrupt())?;
                        ended
                    }
                    None => Some(self.detach()?),
                },
                _ = ctrl_c.recv() => self.on_ctrl_c()?,
                _ = terminate.recv() => self.killed(SignalKind::terminate()),
                _ = hang_up.recv() => self.killed(SignalKind::hangup()),
                _ = continued.recv() => {
                    self.keyboard.continued();
                    self.screen.redraw();
                    None
                }
                _ = ticks.tick() => {
                    if self.connection == Connection::Lost {
                        self.reconnect().await?;
                    }
                    None
                }
            };
            if let Some(status) = ended {
                self.screen.set_bottom(Bottom::Empty);
                return Ok(status);
            }
            if !self.keyboard.has_more() {
                self.draw_bottom();
            }
        }
    }

    /// A signal ends the program, which restores the terminal first.
    fn killed(&mut self, signal: SignalKind) -> ! {
        self.keyboard.end();
        std::process::exit(128 + signal.as_raw_value())
    }

    /// Leaves a session that continues. In `run`, which waits for the end of the turn, this is an early exit.
    fn detach(&mut self) -> Result<Status, ExpectedError> {
        if self.screen.has_prompt() {
            // The cursor is behind the prompt, which stays.
            self.screen.end_line();
        }
        self.screen.set_bottom(Bottom::Empty);
        let message = format!(
            "detached; {} keeps running, and `plexus attach {}` shows it again",
            self.name, self.name
        );
        match self.purpose {
            Purpose::Turn(_) => Err(ExpectedError::Interrupted(message)),
            Purpose::Stay => {
                if self.busy() {
                    output::say(&format!("plexus: {message}"));
                }
                Ok(self.status)
            }
        }
    }

    fn busy(&self) -> bool {
        matches!(self.status, Status::Running | Status::AwaitingPermission)
    }

    fn draw_bottom(&mut self) {
        if self.connection == Connection::Lost {
            let advice = hub_advice(self.disconnected_at.elapsed().as_secs());
            self.screen.set_bottom(Bottom::Progress(format!("[disconnected]{advice} ")));
        } else if let Some(prompt) = self.typing_prompt() {
            self.screen.set_bottom(prompt);
        } else {
            self.screen.set_bottom(Bottom::Progress(self.progress()));
        }
    }

    /// The status, the time and the cost, and then the current action, which is cut if the terminal is narrow.
    fn progress(&self) -> String {
        let (state, age) = (ls::status(self.status), age(self.since.elapsed().as_secs()));
        let pending = self.stream.pending().trim();
        let action = match self.tools.values().next_back() {
            Some(call) => call.clone(),
            None if pending.is_empty() => String::new(),
            None => {
                // Only the end is escaped, because this runs with every word that arrives.
                let start = pending.ceil_char_boundary(pending.len().saturating_sub(4 * WRITTEN));
                format!("writes: {}", end(&one_line(pending.get(start..).unwrap_or_default()), WRITTEN))
            }
        };
        format!("[{state}, {age}, ${:.4}] {action}", self.cost_usd)
    }

    /// The status of this turn, if the conversation ends with it.
    fn final_status(&self, turn: u64) -> Option<Status> {
        match self.purpose {
            Purpose::Turn(awaited) => (turn >= awaited && !self.busy()).then_some(self.status),
            Purpose::Stay => None,
        }
    }

    /// Handles Ctrl-C: the first one interrupts the turn, the second one leaves.
    fn on_ctrl_c(&mut self) -> Result<Option<Status>, ExpectedError> {
        if !self.busy() && self.purpose == Purpose::Stay {
            return Ok(Some(self.status));
        }
        if self.interrupting {
            let message = format!(
                "detached; {} keeps running, and `plexus attach {}` shows it again",
                self.name, self.name
            );
            self.screen.set_bottom(Bottom::Empty);
            return Err(ExpectedError::Interrupted(message));
        }
        self.interrupting = true;
        self.screen.say("plexus: interrupting the turn; press Ctrl-C again to leave");
        let (client, session) = (self.hub.client.clone(), json!({"session_id": self.id}));
        // The events of the session report the result.
        tokio::spawn(async move { client.call("claudecode.interrupt", session).await });
        Ok(None)
    }
}

fn caught(kind: SignalKind) -> Result<Signal, ExpectedError> {
    signal(kind).map_err(system)
}
