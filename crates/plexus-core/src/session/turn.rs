//! A turn as its owner remembers it: what has to survive a restart is [`Progress`], kept with the turn in the same
//! commit as the lines it came from. Works out when a turn is over, what it cost and how it ended.

use std::collections::BTreeSet;

use plexus_claude::TurnResult;
use plexus_protocol::arbor::Position;
use plexus_protocol::{ApprovalId, Attention, Event, Object, SessionId};
use plexus_store::{Change, TurnStatus};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::time::Clock;

use super::Reading;

/// How Claude Code calls the end of a turn that cost more than it was started with.
const OVER_ITS_COST: &str = "error_max_budget_usd";

/// What has to be remembered of a turn between two lines.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Progress {
    /// The run that has answered `initialize`.
    pub(super) initialized: Option<u32>,
    /// The run that may be sent prompts.
    pub(super) ready: Option<u32>,
    /// The child has said that it read the prompt.
    pub(super) acknowledged: bool,
    /// The prompt went to another run already, because the first one ended before reading it.
    pub(super) moved: bool,
    /// Someone ended the turn.
    pub(super) interrupted: bool,
    /// By asking the child to, and not with a denial.
    pub(super) interrupt_asked: bool,
    /// The run whose first `init` was seen.
    pub(super) met: Option<u32>,
    /// Messages added to the turn that the child has not said it read.
    pub(super) sends: Vec<Message>,
    /// It was ended because the child waited on a connection that it had lost.
    pub(super) permit_lost: bool,
    /// The latest `result`, until the child is idle.
    pub(super) result: Option<Outcome>,
    /// The child says when it is idle. One that does not has ended its turn with its result.
    pub(super) says_idle: bool,
    /// Background tasks that have not ended.
    pub(super) tasks: BTreeSet<String>,
    /// What the process had cost, in all, when the turn began.
    pub(super) cost_before: f64,
    /// What the process has cost, in all.
    pub(super) cost_now: f64,
    /// Token counts of results that were followed by another.
    pub(super) usage: Object,
    /// Model calls of results that were followed by another.
    pub(super) num_turns: u64,
    /// How long it has run, as far as that is limited.
    pub(super) clock: Clock,
    /// How many calls wait at the gate until more is given.
    pub(super) held: usize,
    /// The question for more without which the turn cannot go on.
    pub(super) asked_for_more: Option<ApprovalId>,
    /// The run that was started with a limit of its cost, and what was given then.
    pub(super) cost_limit: Option<(u32, u64)>,
    /// What was used up, so that the turn was interrupted.
    pub(super) out_of: Option<String>,
    /// What is wrong between the child and its model.
    pub(super) trouble: Option<Attention>,
    /// How its prompt is read.
    pub(super) reading: Reading,
}

/// A message that was added to a running turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Message {
    pub(super) uuid: String,
    pub(super) text: String,
}

/// What is kept of a `result` message.
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

/// The turn in progress.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) number: u64,
    pub(super) prompt: String,
    /// The run the prompt is bound to, and the uuid it goes out under there.
    pub(super) bound: Option<(u32, String)>,
    /// Why its process is being ended.
    pub(super) stopped: Option<String>,
    pub(super) progress: Progress,
}

impl Turn {
    /// How it ended, by its last result.
    pub(super) fn ending(&self, head: Position) -> Option<Ending> {
        let ending = self.progress.ending(head)?;
        match &self.stopped {
            Some(why) if ending.status != TurnStatus::Complete => Some(Ending::interrupted(why.clone())),
            _ => Some(ending),
        }
    }
}

/// How a turn ended: its status, its last event, and one text for whoever waits for it.
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

    /// The turn was interrupted because what it was given is used up.
    pub(super) fn out_of(message: String) -> Self {
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
    /// Itself, to be stored with a turn.
    pub(super) fn change(&self, session: SessionId, turn: u64) -> Change {
        Change::Progress(session, turn, serde_json::to_value(self).unwrap_or(Value::Null))
    }

    /// Whether a result ends what the child began by itself just before it came to the prompt of this turn.
    pub(super) fn is_of_other_work(&self, result: &TurnResult) -> bool {
        result.origin_kind.as_deref() == Some("task-notification") && !self.acknowledged
    }

    /// A result came; the one before it, if any, is handed back: it was not the last.
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

    /// Whether a result that has just come ends the turn: only where no `idle` is to be waited for.
    pub(super) fn is_over_by_result(&self) -> bool {
        !self.says_idle && self.is_over_when_idle()
    }

    /// Whether an `idle` that comes now ends the turn.
    pub(super) fn is_over_when_idle(&self) -> bool {
        // An interrupt takes back what was not read.
        let all_read = self.sends.is_empty() || self.interrupt_asked;
        self.result.is_some() && self.tasks.is_empty() && all_read
    }

    /// How the turn ended, by its last result.
    pub(super) fn ending(&self, head: Position) -> Option<Ending> {
        let outcome = self.result.clone()?;
        if let Some(what) = &self.out_of {
            return Some(Ending::out_of(what.clone()));
        }
        if outcome.subtype == OVER_ITS_COST {
            let message = "cost_usd is used up: the agent ended the turn at what was left of it";
            return Some(Ending::out_of(message.to_owned()));
        }
        if self.interrupted && !outcome.is_good() {
            return Some(Ending::interrupted("The turn was interrupted.".to_owned()));
        }
        if self.permit_lost && !outcome.is_good() {
            let message = "the agent lost the hub while it waited for an answer, so the turn was ended; prompt it again";
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

    /// What the turn has cost. A process says so with its results alone: without one, `cost_now` is an earlier turn's.
    pub(super) fn cost(&self) -> f64 {
        if self.result.is_some() { (self.cost_now - self.cost_before).max(0.0) } else { 0.0 }
    }

    /// What the next turn begins with.
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
    fn what_the_child_did_by_itself_before_the_prompt_is_not_its_result() {
        let by_itself =
            TurnResult { origin_kind: Some("task-notification".to_owned()), ..result("noted", 1.0) };
        let mut progress = Progress::default();
        assert!(progress.is_of_other_work(&by_itself) && !progress.is_of_other_work(&result("done", 1.0)));
        progress.acknowledged = true;
        assert!(!progress.is_of_other_work(&by_itself), "the end of the turn's own background work");
    }

    #[test]
    fn a_child_that_never_says_idle_is_done_with_its_result() {
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
