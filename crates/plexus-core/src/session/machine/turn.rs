//! Turns: how one begins, when it is over, what it cost and how it ended. [`Progress`] is the part that survives a restart:
//! it is stored with the turn, in the same commit as the lines it follows from.

use std::collections::BTreeSet;

use plexus_claude::{SentId, TurnResult};
use plexus_protocol::arbor::Position;
use plexus_protocol::{ApprovalId, Attention, Error, ErrorKind, Event, NodeId, Object, SessionId};
use plexus_store::{Change, StoreError, TurnStatus};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::oneshot;

use super::commands::{Begin, Origin};
use super::process::Phase;
use super::time::Clock;
use super::wake::Wake;
use super::{AfterTry, Effect, Machine, Reply};
use crate::errors::store_error;
use crate::session::{Prompt, PromptFormat};

/// The result subtype of a turn that reached the cost limit its process was started with.
const OVER_ITS_COST: &str = "error_max_budget_usd";

/// The state of a turn between two lines.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Progress {
    /// The run that has answered `initialize`.
    pub(super) initialized: Option<u32>,
    /// The run that may be sent prompts.
    pub(super) ready: Option<u32>,
    /// The child has confirmed that it read the prompt.
    pub(super) acknowledged: bool,
    /// The prompt went to a second run, because the first ended before it read the prompt.
    pub(super) moved: bool,
    /// The turn was interrupted.
    pub(super) interrupted: bool,
    /// The child was asked to end the turn; a denial that interrupts does not ask.
    pub(super) interrupt_asked: bool,
    /// The run whose first `init` was seen.
    pub(super) met: Option<u32>,
    /// Messages added to the turn that the child has not confirmed.
    pub(super) sends: Vec<Message>,
    /// The turn was ended because the child waited on a lost connection.
    pub(super) permit_lost: bool,
    /// The latest `result`, until the child is idle.
    pub(super) result: Option<Outcome>,
    /// The child reports when it is idle. Older versions do not: their result ends the turn.
    pub(super) says_idle: bool,
    /// Background tasks that still run.
    pub(super) tasks: BTreeSet<String>,
    /// The total cost of the process when the turn began.
    pub(super) cost_before: f64,
    /// The total cost of the process.
    pub(super) cost_now: f64,
    /// The token counts of all results but the last.
    pub(super) usage: Object,
    /// The model calls of all results but the last.
    pub(super) num_turns: u64,
    /// How long the turn has run, where its time is limited.
    pub(super) clock: Clock,
    /// The number of calls held at the gate.
    pub(super) held: usize,
    /// The budget approval without which the turn cannot continue.
    pub(super) asked_for_more: Option<ApprovalId>,
    /// The run that was started with a cost limit, and the budget at that time.
    pub(super) cost_limit: Option<(u32, u64)>,
    /// The budget that ran out, so that the turn was interrupted.
    pub(super) out_of: Option<String>,
    /// The problem between the child and its model.
    pub(super) trouble: Option<Attention>,
    /// How Claude Code reads the prompt.
    #[serde(rename = "reading")]
    pub(super) format: PromptFormat,
}

/// A message that was added to the running turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Message {
    pub(super) uuid: String,
    pub(super) text: String,
}

/// The stored part of a `result` message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Outcome {
    pub(super) subtype: String,
    pub(super) is_error: bool,
    pub(super) text: String,
    pub(super) usage: Object,
    pub(super) num_turns: u64,
}

impl Outcome {
    fn of(result: TurnResult) -> Self {
        let text = match result.result {
            Some(text) if !text.is_empty() => text,
            _ => result.errors.join("\n"),
        };
        Self {
            subtype: result.subtype,
            is_error: result.is_error,
            text,
            usage: result.usage,
            num_turns: result.num_turns.unwrap_or(0),
        }
    }

    fn is_good(&self) -> bool {
        !self.is_error && self.subtype == "success"
    }
}

/// The running turn.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) number: u64,
    pub(super) prompt: String,
    /// The run that the prompt goes to; `None` before there is one.
    pub(super) bound: Option<Bound>,
    /// Why its process is being stopped.
    pub(super) stopped: Option<String>,
    pub(super) progress: Progress,
}

/// The run that a prompt goes to, and the UUID it has there. A turn that the child began by itself has no UUID.
#[derive(Debug, Clone)]
pub(super) struct Bound {
    pub(super) run: u32,
    pub(super) prompt_uuid: Option<String>,
}

impl Turn {
    /// How it ended, according to its last result.
    pub(super) fn ending(&self, head: Position) -> Option<Ending> {
        let ending = self.progress.ending(head)?;
        match &self.stopped {
            Some(why) if ending.status != TurnStatus::Complete => Some(Ending::interrupted(why.clone())),
            _ => Some(ending),
        }
    }
}

/// A turn that becomes the running one when it is durable.
pub(in crate::session) struct NewTurn {
    turn: Turn,
    begin: BeginReply,
    /// What is restored when the store refuses it.
    previous_head: NodeId,
    woken_to: Option<u64>,
}

/// Who learns whether the turn has begun.
enum BeginReply {
    Caller(oneshot::Sender<Result<u64, Error>>),
    /// Nobody: the hub began it to wake the session.
    Hub,
}

impl Machine {
    /// Begins a turn, unless one is running.
    pub(super) fn begin_turn(&mut self, begin: Begin) {
        let Begin { prompt: Prompt { text, format }, origin } = begin;
        if let Some(turn) = &self.turn {
            let message = format!("turn {} is in progress", turn.number);
            let error = Error::new(ErrorKind::TurnInProgress, message).with("turn", turn.number);
            if let Origin::Caller(reply) = origin {
                self.effects.push(Effect::Reply(Reply::Turn(reply, Err(error))));
            }
            return;
        }
        let (session, number) = (self.row.id, self.row.latest_turn + 1);
        let previous_head = self.row.head;
        let (begin, origin, woken_to) = match origin {
            Origin::Caller(reply) => (BeginReply::Caller(reply), None, None),
            Origin::Wake { to } => (BeginReply::Hub, Some("hub".to_owned()), Some(to)),
        };
        let mut changes = vec![
            Change::CheckBudget(session),
            Change::StartTurn { session, turn: number, prompt: text.clone(), woken_to },
        ];
        self.row.latest_turn = number;
        self.add_prompt(&text, &mut changes);
        let start = Event::Start { id: session, user_position: self.head(), origin };
        changes.push(Change::Event(session, number, Box::new(start)));
        // The inherited progress is durable with the turn: a hub that finds only a prompt needs to know its process.
        let progress = Progress { format, ..self.last_progress.next() };
        changes.push(progress.change(session, number));
        let turn = Turn { number, prompt: text, bound: None, stopped: None, progress };
        let new = NewTurn { turn, begin, previous_head, woken_to };
        self.effects.push(Effect::TryCommit(changes, AfterTry::BeginTurn(Box::new(new))));
    }

    pub(super) fn on_turn_tried(&mut self, new: NewTurn, result: Result<(), StoreError>) {
        let NewTurn { turn, begin, previous_head, woken_to } = new;
        let number = turn.number;
        if let Err(error) = result {
            self.row.head = previous_head;
            self.row.latest_turn = number - 1;
            let error = store_error(error);
            match begin {
                BeginReply::Caller(reply) => self.effects.push(Effect::Reply(Reply::Turn(reply, Err(error)))),
                BeginReply::Hub => self.on_wake_failed(&error),
            }
            return;
        }
        self.row.woken_to = self.row.woken_to.max(woken_to.unwrap_or(0));
        self.turn = Some(turn);
        match begin {
            BeginReply::Caller(reply) => {
                self.kill_point("prompt", "turn begun");
                self.effects.push(Effect::Reply(Reply::Turn(reply, Ok(number))));
            }
            BeginReply::Hub => self.kill_point("wake", "turn begun"),
        }
        self.ensure_process();
        self.send_prompt();
    }

    /// A message outside any turn is the child's own initiative: it begins a turn of its own.
    pub(super) fn ensure_turn(&mut self, run: u32, changes: &mut Vec<Change>) {
        if self.turn.is_some() {
            return;
        }
        let (session, number) = (self.row.id, self.row.latest_turn + 1);
        self.row.latest_turn = number;
        let (prompt, prompt_uuid) = (String::new(), String::new());
        changes.push(Change::StartTurn { session, turn: number, prompt: prompt.clone(), woken_to: None });
        changes.push(Change::BindTurn { session, turn: number, run, prompt_uuid });
        let progress = Progress { acknowledged: true, ..self.last_progress.next() };
        let bound = Some(Bound { run, prompt_uuid: None });
        self.turn = Some(Turn { number, prompt, bound, stopped: None, progress });
        let start =
            Event::Start { id: session, user_position: self.head(), origin: Some("background".to_owned()) };
        changes.push(Change::Event(session, number, Box::new(start)));
        changes.push(self.progress());
    }

    /// Sends the prompt of the running turn, once, to a process that is ready for it.
    pub(super) fn send_prompt(&mut self) {
        let (Some(process), Some(turn)) = (&self.process, self.turn.as_mut()) else { return };
        if process.phase != Phase::Ready {
            return;
        }
        let (session, run, number) = (self.row.id, process.key.run, turn.number);
        let (uuid, bind) = match &turn.bound {
            Some(bound) if bound.run != run => return,
            // The child began this turn by itself.
            Some(Bound { prompt_uuid: None, .. }) => return,
            Some(Bound { prompt_uuid: Some(uuid), .. }) => (uuid.clone(), None),
            None => {
                let uuid = uuid::Uuid::new_v4().to_string();
                turn.bound = Some(Bound { run, prompt_uuid: Some(uuid.clone()) });
                (uuid.clone(), Some(Change::BindTurn { session, turn: number, run, prompt_uuid: uuid }))
            }
        };
        if process.sent.contains(&SentId::Prompt(uuid.clone())) {
            return;
        }
        let line = match turn.progress.format {
            PromptFormat::Plain => plexus_claude::user_message(&uuid, &turn.prompt),
            PromptFormat::Expanded => plexus_claude::user_message_expanded(&uuid, &turn.prompt),
        };
        self.commit(bind.into_iter().collect());
        self.kill_point("prompt", "bound");
        self.send(line);
        self.kill_point("prompt", "sent");
        self.restart_stall_timer();
        self.send_messages();
    }

    /// Ends the running turn, if there is one.
    pub(super) fn end_turn(&mut self, ending: Ending, changes: &mut Vec<Change>) {
        changes.extend(self.count_last_time());
        if self.turn.is_none() {
            return;
        }
        let Ending { status, mut last, summary } = ending;
        self.add_outcome(status, &mut last, changes);
        let Some(turn) = self.turn.take() else { return };
        self.last_progress = turn.progress;
        let idle_by = self.shared.settings.idle_after.map(|idle| self.now.instant + idle);
        if let Some(process) = self.process.as_mut() {
            process.interrupt_by = None;
            process.stall_by = None;
            process.idle_by = idle_by;
        }
        self.message = None;
        self.ungated.clear();
        self.running_tools.clear();
        let (session, number) = (self.row.id, turn.number);
        changes.push(self.progress());
        // Approvals that arrived meanwhile may still be open. A turn that was interrupted is not followed by another.
        let wakes = self.row.config.wake && status != TurnStatus::Interrupted;
        self.wake = if wakes { Wake::Wanted } else { Wake::No };
        let (last, cost_usd) = (Box::new(last), self.last_progress.cost());
        changes.push(Change::EndTurn { session, turn: number, status, last, summary, cost_usd });
    }
}

/// How a turn ended: its status, its last event, and a summary for the feed.
pub(super) struct Ending {
    pub(super) status: TurnStatus,
    pub(super) last: Event,
    pub(super) summary: Option<String>,
}

impl Ending {
    pub(super) fn failed(reason: &str, message: String, stderr: Vec<String>) -> Self {
        let summary = Some(message.clone());
        let last = Event::Error { message, reason: Some(reason.to_owned()), stderr };
        Self { status: TurnStatus::Failed, last, summary }
    }

    /// The turn was interrupted because a budget is used up.
    pub(super) fn out_of_budget(message: String) -> Self {
        let summary = Some(message.clone());
        let last = Event::Error { message, reason: Some("budget_exhausted".to_owned()), stderr: Vec::new() };
        Self { status: TurnStatus::Interrupted, last, summary }
    }

    pub(super) fn interrupted(message: String) -> Self {
        let summary = Some(message.clone());
        let last = Event::Error { message, reason: Some("interrupted".to_owned()), stderr: Vec::new() };
        Self { status: TurnStatus::Interrupted, last, summary }
    }
}

impl Progress {
    /// The change that stores it with a turn.
    pub(super) fn change(&self, session: SessionId, turn: u64) -> Change {
        Change::Progress(session, turn, serde_json::to_value(self).unwrap_or(Value::Null))
    }

    /// Whether a result belongs to work that the child began by itself before it read the prompt of this turn.
    pub(super) fn is_of_other_work(&self, result: &TurnResult) -> bool {
        result.origin_kind.as_deref() == Some("task-notification") && !self.acknowledged
    }

    /// Takes a result and returns the one before it, which was not the last.
    pub(super) fn take_result(&mut self, result: TurnResult) -> Option<Outcome> {
        if let Some(total) = result.total_cost_usd {
            self.cost_now = total;
        }
        let earlier = self.result.replace(Outcome::of(result));
        if let Some(earlier) = &earlier {
            add_usage(&mut self.usage, &earlier.usage);
            self.num_turns += earlier.num_turns;
        }
        earlier
    }

    /// Whether a result that has just arrived ends the turn: only for a child that does not report when it is idle.
    pub(super) fn is_over_by_result(&self) -> bool {
        !self.says_idle && self.is_over_when_idle()
    }

    /// Whether the turn is over once the child is idle.
    pub(super) fn is_over_when_idle(&self) -> bool {
        // An interrupt takes back unread messages.
        let all_read = self.sends.is_empty() || self.interrupt_asked;
        self.result.is_some() && self.tasks.is_empty() && all_read
    }

    /// How the turn ended, according to its last result.
    pub(super) fn ending(&self, head: Position) -> Option<Ending> {
        let outcome = self.result.clone()?;
        if let Some(what) = &self.out_of {
            return Some(Ending::out_of_budget(what.clone()));
        }
        if outcome.subtype == OVER_ITS_COST {
            let message = "the cost_usd budget is used up, so Claude Code ended the turn";
            return Some(Ending::out_of_budget(message.to_owned()));
        }
        if self.interrupted && !outcome.is_good() {
            return Some(Ending::interrupted("The turn was interrupted.".to_owned()));
        }
        if self.permit_lost && !outcome.is_good() {
            let message = "the agent lost its connection to the hub while it waited for an answer, so the \
                turn ended; prompt it again";
            return Some(Ending::failed("permit_lost", message.to_owned(), Vec::new()));
        }
        if !outcome.is_good() {
            let message = if outcome.text.is_empty() {
                format!("Claude Code ended the turn: {}", outcome.subtype)
            } else {
                outcome.text
            };
            let reason = if outcome.subtype == "success" { "api_error" } else { outcome.subtype.as_str() };
            return Some(Ending::failed(reason, message, Vec::new()));
        }
        let mut usage = outcome.usage;
        add_usage(&mut usage, &self.usage);
        let last = Event::Complete {
            new_head: head,
            result: outcome.text.clone(),
            usage,
            cost_usd: self.cost(),
            num_turns: outcome.num_turns + self.num_turns,
        };
        Some(Ending { status: TurnStatus::Complete, last, summary: Some(outcome.text) })
    }

    /// The cost of the turn. A process reports its cost with its results: without one, `cost_now` belongs to an earlier turn.
    pub(super) fn cost(&self) -> f64 {
        if self.result.is_some() { (self.cost_now - self.cost_before).max(0.0) } else { 0.0 }
    }

    /// The progress that the next turn begins with.
    pub(super) fn next(&self) -> Self {
        Self {
            initialized: self.initialized,
            ready: self.ready,
            says_idle: self.says_idle,
            met: self.met,
            cost_before: self.cost_now,
            cost_now: self.cost_now,
            cost_limit: self.cost_limit,
            ..Self::default()
        }
    }
}

/// Adds the counts of `more` to `usage`, one level of objects deep.
fn add_usage(usage: &mut Object, more: &Object) {
    for (name, count) in more {
        match (usage.get_mut(name), count) {
            (Some(Value::Object(inner)), Value::Object(more)) => add_usage(inner, more),
            (Some(have), count) => {
                if let (Some(a), Some(b)) = (have.as_u64(), count.as_u64()) {
                    *have = Value::from(a + b);
                }
            }
            (None, count) => {
                usage.insert(name.clone(), count.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plexus_protocol::{NodeId, TreeId};
    use serde_json::json;

    fn result(text: &str, cost: f64) -> TurnResult {
        TurnResult {
            subtype: "success".to_owned(),
            is_error: false,
            result: Some(text.to_owned()),
            errors: Vec::new(),
            usage: json!({"input_tokens": 10, "cache": {"a": 1}}).as_object().cloned().expect("object"),
            total_cost_usd: Some(cost),
            num_turns: Some(2),
            stop_reason: None,
            terminal_reason: None,
            origin_kind: None,
            permission_denials: Vec::new(),
            user_message_uuid: None,
        }
    }

    fn head() -> Position {
        Position { tree_id: TreeId::random(), node_id: NodeId::random() }
    }

    #[test]
    fn a_turn_is_over_after_a_result_and_the_last_background_task() {
        let mut progress = Progress::default();
        assert!(!progress.is_over_when_idle());
        progress.says_idle = true;
        progress.tasks.insert("t".to_owned());
        assert!(progress.take_result(result("first", 1.0)).is_none());
        assert!(!progress.is_over_when_idle());
        progress.tasks.clear();
        assert!(progress.is_over_when_idle() && !progress.is_over_by_result());
    }

    #[test]
    fn a_result_of_background_work_before_the_prompt_does_not_end_the_turn() {
        let by_itself =
            TurnResult { origin_kind: Some("task-notification".to_owned()), ..result("noted", 1.0) };
        let mut progress = Progress::default();
        assert!(progress.is_of_other_work(&by_itself) && !progress.is_of_other_work(&result("done", 1.0)));
        progress.acknowledged = true;
        assert!(!progress.is_of_other_work(&by_itself), "the end of the turn's own background work");
    }

    #[test]
    fn a_result_ends_the_turn_of_a_child_that_never_reports_idle() {
        let mut progress = Progress::default();
        assert!(!progress.is_over_by_result());
        progress.take_result(result("done", 1.0));
        assert!(progress.is_over_by_result());
    }

    #[test]
    fn cost_and_usage_are_the_turns_own() {
        let mut first = Progress::default();
        first.take_result(result("a", 0.5));
        let mut second = first.next();
        assert_eq!(second.take_result(result("b", 0.75)).map(|earlier| earlier.text), None);
        assert_eq!(second.take_result(result("c", 1.0)).map(|earlier| earlier.text).as_deref(), Some("b"));
        let Some(Event::Complete { cost_usd, usage, num_turns, result, .. }) =
            second.ending(head()).map(|ending| ending.last)
        else {
            panic!("a good ending")
        };
        assert_eq!((cost_usd, num_turns, result.as_str()), (0.5, 4, "c"));
        assert_eq!(usage["input_tokens"], 20);
        assert_eq!(usage["cache"]["a"], 2);
    }

    #[test]
    fn an_api_failure_that_calls_itself_success_is_a_failure() {
        let mut progress = Progress::default();
        progress.take_result(TurnResult { is_error: true, ..result("API Error: 500", 0.0) });
        assert_eq!(progress.ending(head()).map(|ending| ending.status), Some(TurnStatus::Failed));
    }
}
