//! One agent of a chaos run and whoever drives it: turn after turn, each with calls that say which they are, read as
//! they happen from one position on. What is told twice, out of order or differently is a fault.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fastrand::Rng;
use plexus_testkit::model::{Scripts, Step};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::Run;
use super::book::{Turn, of};
use super::client::Client;
use super::forks::Fork;
use crate::{Channel, script};

/// How many calls a turn has.
const CALLS: usize = 4;
/// One turn in so many is followed by a fork.
const FORK_ONE_IN: u8 = 6;
/// How soon a hub that is away is tried again.
const TRY_AGAIN: Duration = Duration::from_millis(20);
/// How long one that chats stays for the answer.
const PATIENCE: Duration = Duration::from_millis(100);

/// What an agent is.
pub(super) enum Program {
    /// The scripted agent.
    Scripted(PathBuf),
    /// A pinned `claude`.
    Real {
        /// The program.
        claude: PathBuf,
        /// Where its answers are written down.
        model: Scripts,
    },
}

/// An agent.
pub(super) struct Agent {
    pub(super) number: usize,
    pub(super) program: Program,
    pub(super) channel: Channel,
    pub(super) work: PathBuf,
}

/// Where an agent goes on.
struct Next {
    session: String,
    /// The turn of that session.
    turn: u64,
    /// The turn of the agent, in whatever session.
    number: u64,
    /// What it has said, in turns that came to a good end.
    said: Vec<String>,
    /// All that it was told to have said.
    told: Vec<Value>,
}

impl Agent {
    /// Works turn by turn until the run is over.
    pub(super) async fn live(self, run: Arc<Run>, mut rng: Rng) -> anyhow::Result<()> {
        let client = Client::new(&run, rng.fork());
        let session = self.create(&client).await;
        run.book.joined(&session);
        let mut next = Next { session, turn: 1, number: 1, said: Vec::new(), told: Vec::new() };
        while !run.over.load(Ordering::SeqCst) {
            self.begin(&client, &next, &mut rng).await;
            let Next { turn, number, .. } = next;
            let (status, events) = follow(&run, &client, &next.session, turn).await;
            if status == "complete" {
                next.said.extend(self.expected(number));
            }
            next.told.extend(of(&events, "content").map(|event| event["text"].clone()));
            let read = Turn { session: next.session.clone(), turn, status, events };
            run.book.turn(run.victims, &self.number_of(number), read, &self.expected(number));
            (next.turn, next.number) = (turn + 1, number + 1);
            if rng.u8(0..FORK_ONE_IN) == 0 {
                let fork = self.fork(&client, &next).await;
                let original = next.session.clone();
                run.book.forked(Fork { original, fork: fork.clone(), told: next.told.clone() });
                // Of the scripted agent there is no transcript to go on from: it stays.
                if let Program::Real { .. } = self.program {
                    run.book.moved(&next.session, &fork);
                    (next.session, next.turn) = (fork, 1);
                }
            }
            // Sometimes the next prompt finds the process, sometimes none, and sometimes one on its way out.
            sleep(Duration::from_millis(rng.u64(0..400))).await;
        }
        Ok(())
    }

    fn number_of(&self, number: u64) -> String {
        format!("a{}t{number}", self.number)
    }

    /// The texts a turn says, in order.
    fn expected(&self, number: u64) -> Vec<String> {
        match self.program {
            Program::Scripted(_) => {
                (0..CALLS).map(|call| format!("{} says {call}", self.number_of(number))).collect()
            }
            Program::Real { .. } => vec![format!("{} is done", self.number_of(number))],
        }
    }

    async fn create(&self, client: &Client) -> String {
        let (program, channel) = match (&self.program, self.channel) {
            (Program::Scripted(program), _) => (program, "control"),
            (Program::Real { claude, .. }, Channel::Control) => (claude, "control"),
            (Program::Real { claude, .. }, _) => (claude, "mcp"),
        };
        let name = format!("agent-{}", self.number);
        let params = json!({
            "name": name, "working_dir": self.work, "channel": channel, "env": {"CHAOS_CLAUDE": program},
        });
        made(client, "claudecode.create", params, &name).await
    }

    async fn fork(&self, client: &Client, next: &Next) -> String {
        let name = format!("agent-{}-from-{}", self.number, next.number);
        let params = json!({"session_id": next.session, "new_name": name});
        made(client, "claudecode.fork", params, &name).await
    }

    /// Begins the next turn, whatever becomes of the answer.
    async fn begin(&self, client: &Client, next: &Next, rng: &mut Rng) {
        let Next { session, turn, number, said, .. } = next;
        let me = self.number_of(*number);
        let prompt = match &self.program {
            Program::Scripted(_) => {
                let steps = (0..CALLS).flat_map(|call| {
                    let id = format!("{me}c{call}");
                    [
                        json!({"say": format!("{me} says {call}")}),
                        json!({"tool": "Step", "id": id, "input": {"call": id}}),
                    ]
                });
                script(&Value::Array(steps.collect()))
            }
            Program::Real { model, .. } => {
                let marker = format!("CHAOS-{me}-");
                let bash = |call: usize| {
                    let command = format!("echo {me}c{call} >> {}", self.work.join("ran").display());
                    Step::tool("Bash", json!({"command": command, "description": "a step"}))
                };
                let mut steps: Vec<Step> = (0..CALLS).map(bash).collect();
                steps[0] = if_it_knows(said.clone(), steps[0].clone());
                steps.push(Step::text(format!("{me} is done")));
                model.script(&marker, steps);
                format!("{marker} go on")
            }
        };
        loop {
            let chat = json!({"session_id": session, "prompt": prompt});
            // One that waits for the end of its turn never stays for it.
            let begun = match rng.u8(0..4) {
                0 => client.call_within("claudecode.chat", chat, PATIENCE).await,
                _ => client.call("claudecode.chat_async", chat).await,
            };
            if begun.is_ok() {
                return;
            }
            // Perhaps it was begun, and the answer was lost.
            let got = client.call("claudecode.get", json!({"session_id": session})).await;
            if got.is_ok_and(|got| got["session"]["turn"].as_u64() >= Some(*turn)) {
                return;
            }
            sleep(TRY_AGAIN).await;
        }
    }
}

/// A step of a model that was sent all of this: whatever process it is, and whosever fork, it knows what was said before.
fn if_it_knows(said: Vec<String>, step: Step) -> Step {
    Step::from_fn(move |request| {
        let request = request.to_string();
        let forgotten = said.iter().find(|said| !request.contains(said.as_str()));
        forgotten.map_or_else(|| step.clone(), |said| Step::text(format!("what is `{said}`?")))
    })
}

/// Makes a session, once, however often it takes to be told so; its id.
async fn made(client: &Client, method: &str, params: Value, name: &str) -> String {
    loop {
        match client.call(method, params.clone()).await {
            Ok(made) => return crate::text(&made["id"]),
            // Nobody said so, but it was made.
            Err(error) if error.data["type"] == "name_taken" => {
                if let Ok(got) = client.call("claudecode.get", json!({"name": name})).await {
                    return crate::text(&got["session"]["id"]);
                }
            }
            Err(_) => sleep(TRY_AGAIN).await,
        }
    }
}

/// Reads a turn to its end, each event once; how it ended.
async fn follow(run: &Run, client: &Client, session: &str, turn: u64) -> (String, Vec<Value>) {
    let mut events: Vec<Value> = Vec::new();
    loop {
        let poll = json!({
            "session_id": session, "turn": turn, "from_seq": events.len(), "wait_ms": 2000, "limit": 50,
        });
        let Ok(poll) = client.call("claudecode.poll", poll).await else {
            sleep(TRY_AGAIN).await;
            continue;
        };
        for told in poll["events"].as_array().into_iter().flatten() {
            if told["seq"].as_u64() != Some(events.len() as u64) {
                run.book.fault(format!(
                    "{session} turn {turn}: {} after {} events",
                    told["seq"],
                    events.len()
                ));
            }
            events.push(told["event"].clone());
        }
        let ended =
            ["complete", "failed", "interrupted"].contains(&poll["status"].as_str().unwrap_or_default());
        if ended && poll["has_more"] == false {
            return (crate::text(&poll["status"]), events);
        }
    }
}
