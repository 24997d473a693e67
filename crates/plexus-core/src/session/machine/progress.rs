//! The progress of a turn: the part of its state that survives a restart. It is stored with the turn, in the same commit as
//! the lines it follows from. It decides when the turn is over, what it cost and how it ended.

use std::collections::{BTreeMap, BTreeSet};

use plexus_claude::{HookDecision, TurnResult};
use plexus_protocol::arbor::Position;
use plexus_protocol::{ApprovalId, Attention, Event, NodeId, Object, SessionId};
use plexus_store::{Change, TurnStatus};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::hooks::OpenHook;
use super::turn::Ending;
use super::turn_clock::Clock;
use crate::session::PromptFormat;

/// The result subtype of a turn that reached the cost limit its process was started with.
pub(super) const COST_LIMIT_REACHED: &str = "error_max_budget_usd";

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
    #[serde(rename = "interrupt_asked")]
    pub(super) interrupt_requested: bool,
    /// The run whose first `init` was seen.
    #[serde(rename = "met")]
    pub(super) init_seen: Option<u32>,
    /// Messages added to the turn that the child has not confirmed.
    #[serde(rename = "sends")]
    pub(super) unread_messages: Vec<UnreadMessage>,
    /// The turn was ended because the child waited on a lost connection.
    pub(super) permit_lost: bool,
    /// The latest `result`, until the child is idle.
    pub(super) result: Option<Outcome>,
    /// The child reports when it is idle. Older versions do not: their result ends the turn.
    #[serde(rename = "says_idle")]
    pub(super) reports_idle: bool,
    /// Background tasks that still run.
    pub(super) tasks: BTreeSet<String>,
    /// The total cost of the process when the turn started.
    pub(super) cost_before: f64,
    /// The total cost of the process.
    pub(super) cost_now: f64,
    /// The total cost of the process as it last answered, after a tool of this turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) running_cost: Option<f64>,
    /// The token counts of all results but the last.
    pub(super) usage: Object,
    /// The model calls of all results but the last.
    pub(super) num_turns: u64,
    /// How long the turn has run, where its time is limited.
    pub(super) clock: Clock,
    /// The number of calls held at the gate.
    pub(super) held: usize,
    /// The budget approval without which the turn cannot continue.
    #[serde(rename = "asked_for_more")]
    pub(super) budget_approval: Option<ApprovalId>,
    /// The run that was started with a cost limit, and the budget at that time.
    pub(super) cost_limit: Option<(u32, u64)>,
    /// The run that has reached its cost limit. Claude Code ends the turn there, but can still request calls of that turn.
    pub(super) spent_run: Option<u32>,
    /// The budget that ran out, so that the turn was interrupted.
    #[serde(rename = "out_of")]
    pub(super) exhausted_budget: Option<String>,
    /// The problem between the child and its model.
    pub(super) trouble: Option<Attention>,
    /// The answers whose mode is stored as the session's mode, of calls without a result. The mode may have changed since.
    pub(super) modes_applied: Vec<ApprovalId>,
    /// How Claude Code reads the prompt.
    #[serde(rename = "reading")]
    pub(super) format: PromptFormat,
    /// Callbacks of the user's hooks without an answer that was sent, by request id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) hooks: BTreeMap<String, OpenHook>,
    /// What hooks decided about calls that have no result yet, by `tool_use_id`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) hook_decisions: BTreeMap<String, HookDecision>,
    /// The node of a prompt that has files.
    pub(super) prompt_node: Option<NodeId>,
    /// The run that was started for `/compact`. It receives no other prompt and ends with the turn.
    pub(super) command_run: Option<u32>,
    /// Whether the conversation was compacted in this turn.
    pub(super) compaction: Compaction,
}

/// Whether a turn compacted its conversation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Compaction {
    /// It did not.
    #[default]
    None,
    /// Claude Code reported a compaction with these details. The summary is in a later line.
    AwaitingSummary(Object),
    /// It did, and the summary is stored.
    Done,
}

impl Compaction {
    /// Takes the details of a compaction whose summary has arrived.
    pub(super) fn take_details(&mut self) -> Option<Object> {
        let Self::AwaitingSummary(details) = self else { return None };
        let details = std::mem::take(details);
        *self = Self::Done;
        Some(details)
    }
}

/// A message that was added to the running turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct UnreadMessage {
    pub(super) uuid: String,
    pub(super) text: String,
    /// Its node, if it has files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) node: Option<NodeId>,
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

    fn is_success(&self) -> bool {
        !self.is_error && self.subtype == "success"
    }
}

impl Progress {
    /// The change that stores it with a turn.
    pub(super) fn change(&self, session: SessionId, turn: u64) -> Change {
        Change::Progress(session, turn, serde_json::to_value(self).unwrap_or(Value::Null))
    }

    /// Whether a result belongs to work that the child started by itself before it read the prompt of this turn.
    pub(super) fn belongs_to_earlier_work(&self, result: &TurnResult) -> bool {
        result.origin_kind.as_deref() == Some("task-notification") && !self.acknowledged
    }

    /// Takes a result and returns the one before it, which was not the last.
    pub(super) fn add_result(&mut self, result: TurnResult) -> Option<Outcome> {
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
        !self.reports_idle && self.is_over_when_idle()
    }

    /// Whether the turn is over once the child is idle.
    pub(super) fn is_over_when_idle(&self) -> bool {
        // An interrupt takes back unread messages.
        let all_read = self.unread_messages.is_empty() || self.interrupt_requested;
        self.result.is_some() && self.tasks.is_empty() && all_read
    }

    /// How the turn ended, according to its last result.
    pub(super) fn ending(&self, head: Position) -> Option<Ending> {
        let outcome = self.result.clone()?;
        if let Some(what) = &self.exhausted_budget {
            return Some(Ending::out_of_budget(what.clone()));
        }
        if outcome.subtype == COST_LIMIT_REACHED {
            let message = "the cost_usd budget is exhausted, so Claude Code ended the turn";
            return Some(Ending::out_of_budget(message.to_owned()));
        }
        if self.interrupted && !outcome.is_success() {
            return Some(Ending::interrupted("The turn was interrupted.".to_owned()));
        }
        if self.permit_lost && !outcome.is_success() {
            let message = "the agent lost its connection to the hub while it waited for an answer, so the turn ended; prompt it again";
            return Some(Ending::failed("permit_lost", message.to_owned(), Vec::new()));
        }
        if !outcome.is_success() {
            let message = if outcome.text.is_empty() {
                format!("Claude Code ended the turn: {}", outcome.subtype)
            } else {
                outcome.text
            };
            let reason = if outcome.subtype == "success" { "api_error" } else { outcome.subtype.as_str() };
            return Some(Ending::failed(reason, message, Vec::new()));
        }
        if self.format == PromptFormat::Compact && self.compaction == Compaction::None {
            let why = if outcome.text.is_empty() { "no reason was given" } else { &outcome.text };
            let message = format!("Claude Code did not compact the conversation: {why}");
            return Some(Ending::failed("not_compacted", message, Vec::new()));
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

    /// The progress that the next turn starts with.
    pub(super) fn next(&self) -> Self {
        Self {
            initialized: self.initialized,
            ready: self.ready,
            reports_idle: self.reports_idle,
            init_seen: self.init_seen,
            cost_before: self.cost_now,
            cost_now: self.cost_now,
            cost_limit: self.cost_limit,
            spent_run: self.spent_run,
            modes_applied: self.modes_applied.clone(),
            hooks: self.hooks.clone(),
            command_run: self.command_run,
            ..Self::default()
        }
    }
}

/// Whether the child has read the prompt of the turn with this stored progress.
pub(crate) fn has_read_prompt(progress: &Value) -> bool {
    progress["acknowledged"] == true
}

/// The nodes of prompts and messages with files that the child has not confirmed, from the stored progress of a turn.
pub(in crate::session) fn unread_files(stored: &Value) -> Vec<NodeId> {
    let progress: Progress = serde_json::from_value(stored.clone()).unwrap_or_default();
    let messages = progress.unread_messages.into_iter().filter_map(|message| message.node);
    progress.prompt_node.into_iter().chain(messages).collect()
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
    use plexus_protocol::TreeId;
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
        progress.reports_idle = true;
        progress.tasks.insert("t".to_owned());
        assert!(progress.add_result(result("first", 1.0)).is_none());
        assert!(!progress.is_over_when_idle());
        progress.tasks.clear();
        assert!(progress.is_over_when_idle() && !progress.is_over_by_result());
    }

    #[test]
    fn a_result_of_background_work_before_the_prompt_does_not_end_the_turn() {
        let by_itself =
            TurnResult { origin_kind: Some("task-notification".to_owned()), ..result("noted", 1.0) };
        let mut progress = Progress::default();
        assert!(
            progress.belongs_to_earlier_work(&by_itself)
                && !progress.belongs_to_earlier_work(&result("done", 1.0))
        );
        progress.acknowledged = true;
        assert!(!progress.belongs_to_earlier_work(&by_itself), "the end of the turn's own background work");
    }

    #[test]
    fn a_result_ends_the_turn_of_a_child_that_never_reports_idle() {
        let mut progress = Progress::default();
        assert!(!progress.is_over_by_result());
        progress.add_result(result("done", 1.0));
        assert!(progress.is_over_by_result());
    }

    #[test]
    fn a_turn_reports_only_its_own_cost_and_usage() {
        let mut first = Progress::default();
        first.add_result(result("a", 0.5));
        let mut second = first.next();
        assert_eq!(second.add_result(result("b", 0.75)).map(|earlier| earlier.text), None);
        assert_eq!(second.add_result(result("c", 1.0)).map(|earlier| earlier.text).as_deref(), Some("b"));
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
    fn an_api_failure_with_subtype_success_is_a_failure() {
        let mut progress = Progress::default();
        progress.add_result(TurnResult { is_error: true, ..result("API Error: 500", 0.0) });
        assert_eq!(progress.ending(head()).map(|ending| ending.status), Some(TurnStatus::Failed));
    }
}
