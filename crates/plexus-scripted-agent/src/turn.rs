//! One turn: performs the script of a prompt step by step and reports the result as the real CLI does.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::Scripts;
use crate::host::{Host, Prompt};
use crate::script::{self, Call, Order, Step};
use crate::{call, tools};

/// The usage and cost of a message. They are invented but constant.
const INPUT_TOKENS: u64 = 10;
const OUTPUT_TOKENS: u64 = 5;
const COST_USD: f64 = 0.001;
pub(crate) const MODEL: &str = "scripted-agent";

/// Why a turn ends before the end of its script.
#[derive(Debug)]
pub(crate) enum Stop {
    Interrupted,
    Failed(String),
    /// A call that the rest of the script depends on was denied.
    Denied(String),
}

/// Serves prompts one after the other until stdin is closed. The exit code follows the last result.
pub(crate) fn serve(host: &Host, scripts: Scripts) -> i32 {
    let mut cost = 0.0;
    let mut code = 0;
    while let Some(prompt) = host.next_prompt() {
        let turn = Turn { host, scripts, tally: Mutex::default() };
        let started = Instant::now();
        let end = turn.run(&prompt);
        code = i32::from(end.is_err());
        if matches!(end, Err(Stop::Interrupted)) {
            let message =
                json!({"role":"user","content":[{"type":"text","text":"[Request interrupted by user]"}]});
            host.send_message(json!({"type":"user","message":message,"parent_tool_use_id":null}));
        }
        let tally = turn.tally.into_inner().unwrap_or_else(PoisonError::into_inner);
        // The real CLI counts the cost of the whole process, not of the turn.
        cost += COST_USD * tally.messages as f64;
        host.send_message(result(tally, end, cost, started));
        host.turn_ended();
    }
    code
}

/// A running turn.
pub(crate) struct Turn<'a> {
    pub host: &'a Host,
    scripts: Scripts,
    tally: Mutex<Tally>,
}

#[derive(Debug, Default)]
pub(crate) struct Tally {
    messages: u64,
    last_text: String,
    pub denials: Vec<Value>,
}

impl Turn<'_> {
    pub(crate) fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, prompt: &Prompt) -> Result<(), Stop> {
        let host = self.host;
        host.send_state("running");
        host.send_message(json!({
            "type":"system", "subtype":"init", "cwd":host.launch.cwd, "tools":tools::TOOLS, "mcp_servers":[],
            "model":MODEL, "permissionMode":host.permission_mode(), "slash_commands":[], "apiKeySource":"none",
            "claude_code_version":"scripted", "output_style":"default", "skills":[], "plugins":[]
        }));
        host.acknowledge(prompt);
        let text = text_of(&prompt.message["content"]);
        let steps = script::parse(&text, &host.launch.cwd, self.scripts);
        let steps = steps.map_err(|error| Stop::Failed(error.to_string()))?;
        for step in steps {
            if host.is_interrupted() {
                return Err(Stop::Interrupted);
            }
            match self.perform(step) {
                Err(Stop::Denied(reason)) => {
                    self.say(&format!("That call was denied ({reason}), so I stop here."));
                    break;
                }
                performed => performed?,
            }
        }
        if host.is_interrupted() { Err(Stop::Interrupted) } else { Ok(()) }
    }

    fn perform(&self, step: Step) -> Result<(), Stop> {
        let host = self.host;
        match step {
            Step::Say(text) => self.say(&text),
            Step::Tools { calls, order } => return self.call_tools(&calls, order),
            Step::Flood { events, bytes } => self.flood(events, bytes),
            Step::Clock { events, every } => self.clock(events, every),
            Step::Replay(path) => return self.replay(&path).map_err(Stop::Failed),
            Step::BigLine { bytes } => self.big_line(bytes),
            Step::Raw(bytes) => host.write(&bytes),
            Step::CancelOpen { once } => call::cancel_open(self, once),
            Step::UnknownRequest(subtype) => {
                let answer = match host.ask(json!({"subtype":subtype})) {
                    Ok(answer) => format!("success: {}", answer.response),
                    Err(error) => format!("error: {error}"),
                };
                self.say(&format!("{subtype} was answered with {answer}"));
            }
            Step::Stderr(text) => drop(std::io::stderr().write_all(text.as_bytes())),
            Step::WaitFile(path) => {
                let path = host.launch.cwd.join(path);
                host.wait_until(|| path.exists());
            }
            Step::ResultError(text) => return Err(Stop::Failed(text)),
            Step::Exit(code) => std::process::exit(code),
        }
        Ok(())
    }

    fn say(&self, text: &str) {
        let id = self.next_message();
        text.clone_into(&mut self.tally().last_text);
        self.host.send_message(assistant(&id, json!({"type":"text","text":text})));
    }

    fn flood(&self, events: usize, bytes: usize) {
        let id = self.next_message();
        let mut lines = String::new();
        for number in 0..events {
            // Numbered, so that a lost or reordered text is detected.
            let block = json!({"type":"text","text":format!("{number:x<bytes$}")});
            lines.push_str(&self.host.message(assistant(&id, block)).to_string());
            lines.push('\n');
            if lines.len() > 64 * 1024 {
                self.host.write(lines.as_bytes());
                lines.clear();
            }
        }
        self.host.write(lines.as_bytes());
    }

    /// Writes at fixed times, so that a late text does not delay the texts after it.
    fn clock(&self, events: usize, every: Duration) {
        let mut due = Instant::now();
        for _ in 0..events {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if self.host.is_interrupted() {
                break;
            }
            let now = clock_gettime(ClockId::Monotonic);
            self.say(&(now.tv_sec * 1_000_000_000 + now.tv_nsec).to_string());
            due += every;
        }
    }

    fn replay(&self, path: &Path) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        let mut file = BufReader::new(File::open(self.host.launch.cwd.join(path)).map_err(failed)?);
        tools::note_replay(path)?;
        // Only complete lines, because the reader thread may write an answer between two writes.
        let mut lines = Vec::new();
        while file.read_until(b'\n', &mut lines).map_err(failed)? > 0 {
            if lines.len() > 64 * 1024 {
                self.host.write(&lines);
                lines.clear();
            }
        }
        self.host.write(&lines);
        Ok(())
    }

    fn big_line(&self, bytes: usize) {
        let mark = "<here>";
        let id = self.next_message();
        let line = self.host.message(assistant(&id, json!({"type":"text","text":mark}))).to_string();
        if let Some((before, after)) = line.split_once(mark) {
            self.host.write(format!("{before}{}{after}\n", "x".repeat(bytes)).as_bytes());
        }
    }

    fn call_tools(&self, calls: &[Call], order: Order) -> Result<(), Stop> {
        let message = self.next_message();
        let ids: Vec<String> =
            calls.iter().map(|call| call.id.clone().unwrap_or_else(|| self.next_id())).collect();
        for (call, id) in calls.iter().zip(&ids) {
            let block = json!({"type":"tool_use","id":id,"name":call.tool,"input":call.input});
            self.host.send_message(assistant(&message, block));
        }
        let jobs = calls.iter().zip(&ids);
        let ends: Vec<_> = match order {
            // Every call gets a result, even after an interrupt.
            Order::OneByOne => jobs.map(|(call, id)| call::perform(self, id, call)).collect(),
            Order::AtOnce => std::thread::scope(|scope| {
                let threads: Vec<_> =
                    jobs.map(|(call, id)| scope.spawn(move || call::perform(self, id, call))).collect();
                let broken = || Err(Stop::Failed("a tool call panicked".to_owned()));
                threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| broken())).collect()
            }),
        };
        ends.into_iter().collect()
    }

    /// Tool ids are unique over the life of a session, whose runs are separate processes.
    pub(crate) fn next_id(&self) -> String {
        let session: String = self.host.launch.session_id.chars().take(8).collect();
        static COUNTER: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let number = COUNTER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        format!("toolu_{session}_{}_{number}", std::process::id())
    }

    pub(crate) fn next_message(&self) -> String {
        self.tally().messages += 1;
        format!("msg_{}", Uuid::new_v4().simple())
    }
}

/// A message of the assistant. As with the real CLI, it contains one block, and blocks of one message share its id.
pub(crate) fn assistant(id: &str, block: Value) -> Value {
    let message = json!({
        "id":id, "type":"message", "role":"assistant", "model":MODEL, "content":[block], "stop_reason":null,
        "stop_sequence":null, "usage":{"input_tokens":INPUT_TOKENS,"output_tokens":OUTPUT_TOKENS}
    });
    json!({"type":"assistant","message":message,"parent_tool_use_id":null})
}

fn result(tally: Tally, end: Result<(), Stop>, cost: f64, started: Instant) -> Value {
    let (input, output) = (INPUT_TOKENS * tally.messages, OUTPUT_TOKENS * tally.messages);
    let mut result = json!({
        "type":"result", "subtype":"success", "is_error":end.is_err(), "num_turns":tally.messages,
        "duration_ms":started.elapsed().as_millis() as u64, "duration_api_ms":0, "stop_reason":"end_turn",
        "total_cost_usd":cost, "permission_denials":tally.denials,
        "usage":{"input_tokens":input,"output_tokens":output,
                 "cache_creation_input_tokens":0,"cache_read_input_tokens":0},
        "modelUsage":{MODEL:{"inputTokens":input,"outputTokens":output,"costUSD":cost}}
    });
    match end {
        Ok(()) => result["result"] = tally.last_text.into(),
        // An API failure has the subtype `success` and the error flag.
        Err(Stop::Failed(reason) | Stop::Denied(reason)) => result["result"] = reason.into(),
        Err(Stop::Interrupted) => {
            result["subtype"] = "error_during_execution".into();
            result["errors"] = json!(["interrupted"]);
        }
    }
    result
}

fn text_of(content: &Value) -> String {
    let blocks = content.as_array().map(Vec::as_slice).unwrap_or_default();
    let texts = content.as_str().into_iter().chain(blocks.iter().filter_map(|block| block["text"].as_str()));
    texts.collect::<Vec<_>>().join("\n")
}
