//! An agent of a chaos run and its driver. Each turn has calls with unique texts. The driver reads every event once. A repeated, reordered
//! or changed event is a fault.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fastrand::Rng;
use plexus_testkit::model::{Scripts, Step};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::Run;
use super::client::Client;
use super::forks::Fork;
use super::observations::{Turn, of};
use crate::{Channel, script};

/// The number of calls in a turn.
const CALLS: usize = 4;
/// One turn in this many is followed by a fork.
const FORK_ONE_IN: u8 = 6;
/// The pause between two attempts to reach a hub.
const TRY_AGAIN: Duration = Duration::from_millis(20);
/// How long the driver waits for the result of `chat` before it disconnects.
const PATIENCE: Duration = Duration::from_millis(100);

/// The program of an agent.
pub(super) enum Program {
    /// The scripted agent.
    Scripted(PathBuf),
    /// A pinned `claude`.
    Real {
        /// The program.
        claude: PathBuf,
        /// The scripts of its model.
        model: Scripts,
    },
}

/// Where an agent runs.
pub(super) enum Place {
    /// On the only host.
    Here,
    /// On this host.
    Host(String),
    /// On this host, as a child of the session with this token.
    Below(String, String),
}

/// An agent of a chaos run.
pub(super) struct Agent {
    pub(super) number: usize,
    pub(super) program: Program,
    pub(super) channel: Channel,
    pub(super) work: PathBuf,
    pub(super) place: Place,
}

/// The session and turn with which an agent continues.
struct Next {
    session: String,
    /// The number of the turn in that session.
    turn: u64,
    /// The number of the agent's next prompt over all its sessions.
    number: u64,
    /// The numbers of the prompts that may have started a turn whose texts were not yet read.
    sent: Vec<u64>,
    /// The texts that it wrote in complete turns.
    said: Vec<String>,
    /// All its texts, as the driver received them.
    told: Vec<Value>,
}

impl Agent {
    /// Runs turn after turn until the end of the chaos run.
    pub(super) async fn run_turns(self, run: Arc<Run>, mut rng: Rng) -> anyhow::Result<()> {
        let client = Client::new(&run, rng.fork());
        let session = match &self.place {
            Place::Below(_, token) => self.create(&Client::of_session(&run, rng.fork(), token)).await,
            Place::Here | Place::Host(_) => self.create(&client).await,
        };
        run.observations.joined(&session);
        let mut next =
            Next { session, turn: 1, number: 1, sent: Vec::new(), said: Vec::new(), told: Vec::new() };
        while !run.over.load(Ordering::SeqCst) {
            self.begin(&client, &mut next, &mut rng).await;
            self.read_turn(&run, &client, &mut next).await;
            if rng.u8(0..FORK_ONE_IN) == 0 {
                let fork = self.fork(&client, &next).await;
                let original = next.session.clone();
                run.observations.forked(Fork { original, fork: fork.clone(), told: next.told.clone() });
                // The scripted agent has no transcript to continue from, so it stays in its session.
                if let Program::Real { .. } = self.program {
                    run.observations.moved(&next.session, &fork);
                    (next.session, next.turn) = (fork, 1);
                }
            }
            // The next prompt may find the process running, ended or ending.
            sleep(Duration::from_millis(rng.u64(0..400))).await;
        }
        run.idle_agents.fetch_add(1, Ordering::SeqCst);
        let mut no_more_commands = run.no_more_commands.subscribe();
        // The sender lives as long as the run.
        let _ = no_more_commands.wait_for(|none| *none).await;
        // A prompt whose result was lost may have reached the host of the session later.
        while has_started(&client, &next).await {
            self.read_turn(&run, &client, &mut next).await;
        }
        Ok(())
    }

    /// Reads the next turn to its end, and records it.
    async fn read_turn(&self, run: &Run, client: &Client, next: &mut Next) {
        let turn = next.turn;
        let (status, events) = follow(run, client, &next.session, turn).await;
        let texts: Vec<Value> = of(&events, "content").map(|event| event["text"].clone()).collect();
        // If the result of a call was lost, the next call may have started this turn.
        let is_said =
            |number: &u64| texts.iter().any(|text| self.expected(*number).iter().any(|said| text == said));
        let found = next.sent.iter().copied().find(is_said);
        next.sent.retain(|sent| Some(*sent) != found);
        let number = found.unwrap_or(next.number - 1);
        if status == "complete" {
            next.said.extend(self.expected(number));
        }
        next.told.extend(texts);
        let read = Turn { session: next.session.clone(), turn, status, events };
        run.observations.turn(run.victims, &self.number_of(number), read, &self.expected(number));
        next.turn = turn + 1;
    }

    fn number_of(&self, number: u64) -> String {
        format!("a{}t{number}", self.number)
    }

    /// The texts of a turn, in order.
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
        let mut params = json!({"name": name, "working_dir": self.work, "channel": channel});
        match &self.place {
            Place::Here => params["env"] = json!({"CHAOS_CLAUDE": program}),
            // These hubs have one program.
            Place::Host(host) | Place::Below(host, _) => params["host"] = json!(host),
        }
        create_once(client, "claudecode.create", params, &name).await
    }

    async fn fork(&self, client: &Client, next: &Next) -> String {
        let name = format!("agent-{}-from-{}", self.number, next.number);
        let params = json!({"session_id": next.session, "new_name": name});
        create_once(client, "claudecode.fork", params, &name).await
    }

    /// Starts the next turn, even if the result of the call is lost. Each call has a prompt of its own: if the first one started a
    /// turn that failed at once, the second one starts another.
    async fn begin(&self, client: &Client, next: &mut Next, rng: &mut Rng) {
        loop {
            let (session, turn) = (next.session.clone(), next.turn);
            let prompt = self.prompt(next.number, &next.said, client.rule_in_force());
            next.sent.push(next.number);
            next.number += 1;
            let chat = json!({"session_id": session, "prompt": prompt});
            // `chat` would wait for the end of the turn, so the client disconnects.
            let begun = match rng.u8(0..4) {
                0 => client.call_within("claudecode.chat", chat, PATIENCE).await,
                _ => client.call("claudecode.chat_async", chat).await,
            };
            if begun.is_ok() {
                return;
            }
            // The turn may have started although the result was lost.
            let got = client.call("claudecode.get", json!({"session_id": session})).await;
            if got.is_ok_and(|got| got["session"]["turn"].as_u64() >= Some(turn)) {
                return;
            }
            sleep(TRY_AGAIN).await;
        }
    }

    fn prompt(&self, number: u64, said: &[String], rule: Option<u64>) -> String {
        let me = self.number_of(number);
        match &self.program {
            Program::Scripted(_) => {
                let steps = (0..CALLS).flat_map(|call| {
                    let id = format!("{me}c{call}");
                    let tool = rule.filter(|_| call % 2 == 1).map_or("Step".to_owned(), rule_text);
                    [
                        json!({"say": format!("{me} says {call}")}),
                        json!({"tool": tool, "id": id, "input": {"call": id}}),
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
                steps[0] = if_it_knows(said.to_vec(), steps[0].clone());
                steps.push(Step::text(format!("{me} is done")));
                model.script(&marker, steps);
                format!("{marker} go on")
            }
        }
    }
}

/// The rule with this label, which is also the name of the tool that it allows.
pub(super) fn rule_text(label: u64) -> String {
    format!("Rule{label}")
}

/// A step that runs only if the model request contains all these texts: every process and every fork must know its history.
fn if_it_knows(said: Vec<String>, step: Step) -> Step {
    Step::from_fn(move |request| {
        let request = request.to_string();
        let forgotten = said.iter().find(|said| !request.contains(said.as_str()));
        forgotten.map_or_else(|| step.clone(), |said| Step::text(format!("what is `{said}`?")))
    })
}

/// Creates a session exactly once, with as many calls as necessary. Returns its id.
pub(super) async fn create_once(client: &Client, method: &str, params: Value, name: &str) -> String {
    loop {
        match client.call(method, params.clone()).await {
            Ok(create_once) => return crate::text(&create_once["id"]),
            // An earlier call created it, but its result was lost.
            Err(error) if error.data["type"] == "name_taken" => {
                if let Ok(got) = client.call("claudecode.get", json!({"name": name})).await {
                    return crate::text(&got["session"]["id"]);
                }
            }
            Err(_) => sleep(TRY_AGAIN).await,
        }
    }
}

/// Whether the next turn has started.
async fn has_started(client: &Client, next: &Next) -> bool {
    loop {
        match client.call("claudecode.get", json!({"session_id": next.session})).await {
            Ok(got) => return got["session"]["turn"].as_u64() >= Some(next.turn),
            Err(_) => sleep(TRY_AGAIN).await,
        }
    }
}

/// Reads a turn to its end, each event once. Returns its status and events.
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
                run.observations.fault(format!(
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
