//! The agent's side of the wire to its host: complete lines to stdout, requests that wait for their answers, and the queue of prompts. The
//! reader thread adds what arrives, and the turn waits for it. Both share one lock and one condition variable.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io::{Stdout, Write as _};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use rustix::time::{ClockId, Timespec, clock_gettime};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::launch::{Launch, Replay};

/// A queued prompt.
#[derive(Debug)]
pub(crate) struct Prompt {
    pub uuid: Option<String>,
    pub message: Value,
}

/// An answer, when its request was sent, and when it was read.
#[derive(Debug)]
pub(crate) struct Answer {
    pub response: Value,
    pub requested_at: Timespec,
    pub at: Timespec,
}

/// A response, and when it was read.
type Response = (Value, Timespec);

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unanswered {
    #[error("{0}")]
    Refused(String),
    #[error("interrupted")]
    Interrupted,
    #[error("Stream closed")]
    Closed,
}

#[derive(Debug, Default)]
struct State {
    callbacks: Vec<String>,
    permission_mode: String,
    /// The open requests, with the answer when it has arrived.
    open: HashMap<String, Option<Result<Response, String>>>,
    prompts: VecDeque<Prompt>,
    known: HashSet<String>,
    busy: bool,
    interrupted: bool,
    closed: bool,
    /// The process groups of running commands.
    commands: HashSet<Pid>,
}

impl State {
    /// Whether a turn runs or is queued.
    fn in_turn(&self) -> bool {
        self.busy || !self.prompts.is_empty()
    }
}

pub(crate) struct Host {
    pub launch: Launch,
    out: Mutex<Stdout>,
    state: Mutex<State>,
    changed: Condvar,
}

impl Host {
    pub(crate) fn new(launch: Launch) -> Self {
        let state = State { permission_mode: launch.permission_mode.clone(), ..State::default() };
        Self { launch, out: Mutex::new(std::io::stdout()), state: Mutex::new(state), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // Output.

    /// Writes bytes unchanged. The agent exits if the host has closed the pipe.
    pub(crate) fn write(&self, bytes: &[u8]) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        if out.write_all(bytes).and_then(|()| out.flush()).is_err() {
            std::process::exit(1);
        }
    }

    pub(crate) fn send(&self, message: &Value) {
        self.write(format!("{message}\n").as_bytes());
    }

    /// The message with the fields that every message of a session has.
    pub(crate) fn message(&self, mut message: Value) -> Value {
        message["session_id"] = self.launch.session_id.as_str().into();
        message["uuid"] = Uuid::new_v4().to_string().into();
        message
    }

    pub(crate) fn send_message(&self, message: Value) {
        self.send(&self.message(message));
    }

    pub(crate) fn send_state(&self, state: &str) {
        self.send_message(json!({"type":"system","subtype":"session_state_changed","state":state}));
    }

    /// Confirms a prompt, if the launch line requests it.
    pub(crate) fn acknowledge(&self, prompt: &Prompt) {
        if self.launch.replay == Replay::On {
            let mut echo =
                json!({"type":"user","message":prompt.message,"parent_tool_use_id":null,"isReplay":true});
            echo["session_id"] = self.launch.session_id.as_str().into();
            echo["uuid"] = prompt.uuid.clone().unwrap_or_else(|| Uuid::new_v4().to_string()).into();
            self.send(&echo);
        }
    }

    // Requests.

    /// Sends a request and returns its id, without waiting.
    pub(crate) fn open_request(&self, request: Value) -> String {
        let id = Uuid::new_v4().to_string();
        self.state().open.insert(id.clone(), None);
        self.send(&json!({"type":"control_request","request_id":id,"request":request}));
        id
    }

    /// Withdraws a request.
    pub(crate) fn withdraw(&self, id: &str) {
        self.state().open.remove(id);
        self.send(&json!({"type":"control_cancel_request","request_id":id}));
    }

    /// Sends a request and waits for the answer without a time limit.
    pub(crate) fn ask(&self, request: Value) -> Result<Answer, Unanswered> {
        let requested_at = clock_gettime(ClockId::Monotonic);
        let id = self.open_request(request);
        let mut state = self.state();
        loop {
            match state.open.get_mut(&id).map(Option::take) {
                Some(Some(answer)) => {
                    state.open.remove(&id);
                    let (response, at) = answer.map_err(Unanswered::Refused)?;
                    return Ok(Answer { response, requested_at, at });
                }
                None => return Err(Unanswered::Interrupted),
                // The interrupt arrived just before the request was sent.
                Some(None) if state.interrupted => {
                    drop(state);
                    self.withdraw(&id);
                    return Err(Unanswered::Interrupted);
                }
                Some(None) if state.closed => return Err(Unanswered::Closed),
                Some(None) => {}
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Records an answer. An answer to a request that is not open, for example a second one, changes nothing.
    pub(crate) fn answered(&self, id: &str, answer: Result<Value, String>) {
        let at = clock_gettime(ClockId::Monotonic);
        let mut state = self.state();
        let Some(waiting @ None) = state.open.get_mut(id) else { return };
        // The echo precedes everything that the answer causes.
        if let (Replay::On, Ok(response)) = (self.launch.replay, &answer) {
            let echo = json!({"subtype":"success","request_id":id,"response":response});
            self.send(&json!({"type":"control_response","response":echo}));
        }
        *waiting = Some(answer.map(|response| (response, at)));
        self.changed.notify_all();
    }

    // Prompts and turns.

    /// Queues a prompt. A known prompt is only acknowledged.
    pub(crate) fn prompted(&self, prompt: Prompt) {
        let mut state = self.state();
        if prompt.uuid.as_ref().is_some_and(|uuid| !state.known.insert(uuid.clone())) {
            self.acknowledge(&prompt);
            if !state.in_turn() {
                self.send_state("idle");
            }
            return;
        }
        state.prompts.push_back(prompt);
        self.changed.notify_all();
    }

    /// Removes a prompt from the queue. Returns whether it was queued.
    pub(crate) fn forget(&self, uuid: &str) -> bool {
        let mut state = self.state();
        let before = state.prompts.len();
        state.prompts.retain(|prompt| prompt.uuid.as_deref() != Some(uuid));
        state.prompts.len() < before
    }

    /// Waits for the next prompt. Its turn runs until [`Host::turn_ended`]. `None` when stdin is closed.
    pub(crate) fn next_prompt(&self) -> Option<Prompt> {
        let mut state = self.state();
        loop {
            if let Some(prompt) = state.prompts.pop_front() {
                state.busy = true;
                return Some(prompt);
            }
            if state.closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(crate) fn turn_ended(&self) {
        let mut state = self.state();
        state.busy = false;
        state.interrupted = false;
        self.send_state("idle");
    }

    /// Ends the running or queued turn: withdraws its requests and kills its commands.
    pub(crate) fn interrupt(&self) {
        let mut state = self.state();
        state.interrupted = state.in_turn();
        let open: Vec<_> = state.open.drain().map(|(id, _)| id).collect();
        for id in open {
            self.send(&json!({"type":"control_cancel_request","request_id":id}));
        }
        for group in &state.commands {
            // It fails if the command has just exited, which is fine.
            let _ = kill_process_group(*group, Signal::KILL);
        }
        self.changed.notify_all();
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.state().interrupted
    }

    /// Waits until `done` returns true or the turn is interrupted. Nothing notifies it of the condition, so it polls.
    pub(crate) fn wait_until(&self, done: impl Fn() -> bool) {
        let mut state = self.state();
        while !done() && !state.interrupted && !state.closed {
            let waited = self.changed.wait_timeout(state, Duration::from_millis(10));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(crate) fn command_started(&self, group: Pid) {
        let mut state = self.state();
        state.commands.insert(group);
        if state.interrupted {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    pub(crate) fn command_ended(&self, group: Pid) {
        self.state().commands.remove(&group);
    }

    /// Records that stdin is closed, so no more answers and prompts will arrive.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.changed.notify_all();
    }

    // Settings from the host.

    pub(crate) fn set_callbacks(&self, callbacks: Vec<String>) {
        self.state().callbacks = callbacks;
    }

    pub(crate) fn callbacks(&self) -> Vec<String> {
        self.state().callbacks.clone()
    }

    pub(crate) fn set_permission_mode(&self, mode: &str) {
        self.state().permission_mode = mode.to_owned();
    }

    /// Reports the mode to the host.
    pub(crate) fn send_permission_mode(&self) {
        let mode = self.permission_mode();
        self.send_message(json!({"type":"system","subtype":"status","status":null,"permissionMode":mode}));
    }

    pub(crate) fn permission_mode(&self) -> String {
        self.state().permission_mode.clone()
    }
}
