//! Approvals, the calls they are about, the budgets that hold calls, and the streams that wait for decisions.

use plexus_protocol::budget::BudgetLimit;
use plexus_protocol::claudecode::Channel;
use plexus_protocol::{Approval, ApprovalId, AskedOf, Object, SessionId, UnixSeconds};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RunKey;

/// An approval to be created.
#[derive(Debug, Clone)]
pub struct NewApproval {
    /// The approval as clients see it; its status is `pending`.
    pub approval: Approval,
    /// The run that asks.
    pub run: u32,
    /// Its turn; 0 outside any.
    pub turn: u64,
    /// The channel of the request.
    pub channel: Channel,
    /// On the control channel: the request to answer.
    pub request_id: Option<String>,
}

impl NewApproval {
    /// The approval as it is stored under this number of the feed.
    pub fn stored(&self, number: u64, answers_to: AskedOf) -> ApprovalRow {
        let Self { approval, run, turn, channel, request_id } = self.clone();
        ApprovalRow { approval, answers_to, run, turn, channel, request_id, number }
    }
}

/// A stored approval, with the current name of its session and its whole input.
#[derive(Debug, Clone)]
pub struct ApprovalRow {
    /// The approval as clients see it.
    pub approval: Approval,
    /// Who its session answers to.
    pub answers_to: AskedOf,
    /// The run that asks.
    pub run: u32,
    /// Its turn; 0 outside any.
    pub turn: u64,
    /// The channel of the request.
    pub channel: Channel,
    /// On the control channel: the request to answer.
    pub request_id: Option<String>,
    /// The number of the feed entry that asked its addressee.
    pub number: u64,
}

/// A tool call at the gate.
#[derive(Debug, Clone)]
pub struct CallRow {
    /// The run.
    pub key: RunKey,
    /// The turn.
    pub turn: u64,
    /// The agent's id for the call.
    pub tool_use_id: String,
    /// The tool.
    pub tool_name: String,
    /// A digest of tool, input and directory.
    pub digest: String,
    /// The control request that reported it.
    pub request_id: String,
    /// The gate's answer, or that the call is held.
    pub verdict: Verdict,
    /// The call in one line, for people.
    pub summary: String,
}

/// The outcome of a call at the gate. The JSON of this type is the format of stored data and of `gate` in audit entries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Verdict {
    /// The gate has no opinion: Claude Code's permission rules decide.
    #[serde(rename = "own_course")]
    NoOpinion,
    /// The gate allows the call.
    Allow {
        /// Why.
        reason: String,
    },
    /// An approval has to be requested.
    Ask {
        /// Why.
        reason: String,
    },
    /// The gate denies the call.
    Deny {
        /// Why.
        reason: String,
    },
    /// A budget is exhausted: the call waits for a budget approval and then goes to the gate again.
    Held {
        /// The budget approval.
        approval: ApprovalId,
        /// The input of the tool.
        input: Object,
        /// The working directory of the child.
        cwd: Option<String>,
        /// The permission mode of the child.
        mode: Option<String>,
    },
}

impl Verdict {
    /// Reads a stored verdict. An unreadable one denies the call.
    pub fn from_stored(value: Value) -> Self {
        serde_json::from_value(value).unwrap_or_else(|_| Self::Deny {
            reason: "Plexus could not read its stored data about this call.".to_owned(),
        })
    }

    pub(crate) fn held(approval: ApprovalId, call: &CallInput) -> Self {
        let CallInput { input, cwd, mode, .. } = call.clone();
        Self::Held { approval, input, cwd, mode }
    }
}

/// The rest of a call at the gate, which is stored only if the call is held.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CallInput {
    /// The input of the tool.
    pub input: Object,
    /// The working directory of the child.
    pub cwd: Option<String>,
    /// The permission mode of the child.
    pub mode: Option<String>,
    /// The version of the permission rules by which the gate has judged the call ([`crate::RulesInForce`]).
    pub rules_version: u64,
}

impl From<Object> for CallInput {
    fn from(input: Object) -> Self {
        Self { input, ..Self::default() }
    }
}

/// A budget of one session for one limit, in units ([`BudgetLimit::units`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetRow {
    /// The session that it was granted to, for itself and all sessions below.
    pub session: SessionId,
    /// The limit.
    pub limit: BudgetLimit,
    /// The grant.
    pub granted: u64,
    /// Used by the session, by sessions below without a grant of their own, and by deleted sessions below.
    pub own: u64,
    /// Reserved for sessions below with a grant of their own.
    pub below: u64,
    /// Used by the session and all sessions below since the grant.
    pub used: u64,
}

impl BudgetRow {
    /// What can still be used or granted.
    pub fn left(&self) -> u64 {
        self.granted.saturating_sub(self.own + self.below)
    }
}

/// A call or turn that waits for more budget.
#[derive(Debug, Clone)]
pub struct HeldForBudget {
    /// The waiting session.
    pub session: SessionId,
    /// The held call; `None` if the running turn waits.
    pub tool_use_id: Option<String>,
    /// The budget approval.
    pub approval: ApprovalId,
    /// The exhausted budget.
    pub limit: BudgetRow,
}

/// A stream on which a permit over HTTP waits. It is stored so that the client can resume it after a restart.
#[derive(Debug, Clone)]
pub struct PermitStream {
    /// The event id at the start of the stream.
    pub event_id: String,
    /// The run that asks.
    pub key: RunKey,
    /// The approval that it waits for.
    pub approval: ApprovalId,
    /// The ids of the client's call.
    pub ids: CallIds,
}

/// The ids of a client's call. The store and the hub keep them for the door; no other part reads them.
#[derive(Debug, Clone)]
pub struct CallIds {
    /// The JSON-RPC id to answer.
    pub jsonrpc_id: Value,
    /// The token of its progress messages, which keep it alive.
    pub progress_token: Option<Value>,
}

/// Selects pending approvals.
#[derive(Debug, Clone)]
pub enum OpenFilter {
    /// All of them.
    All,
    /// The approvals of one session.
    OfSession(SessionId),
    /// The approvals of one addressee ([`plexus_protocol::AskedOf::key`]), including approvals that escalated past it: it may
    /// still decide them. Each has the feed number of the request to this addressee.
    AskedOf(String),
}

/// The numbers of sessions and pending approvals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Sessions that are not deleted.
    pub sessions: u64,
    /// Pending approvals.
    pub open_approvals: u64,
    /// When the oldest of them was created.
    pub oldest_open: Option<UnixSeconds>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_stored_verdict_is_read_as_it_was_written_and_an_unreadable_one_denies() {
        let approval = ApprovalId::random();
        let input = Object::from_iter([("z".to_owned(), json!(0.1)), ("a".to_owned(), json!([1]))]);
        let reason = || "rule 7".to_owned();
        for (verdict, stored) in [
            (Verdict::NoOpinion, json!({"answer": "own_course"})),
            (Verdict::Allow { reason: reason() }, json!({"answer": "allow", "reason": "rule 7"})),
            (Verdict::Ask { reason: reason() }, json!({"answer": "ask", "reason": "rule 7"})),
            (Verdict::Deny { reason: reason() }, json!({"answer": "deny", "reason": "rule 7"})),
            (
                Verdict::held(approval, &CallInput { mode: Some("plan".to_owned()), ..input.clone().into() }),
                json!({"answer": "held", "approval": approval, "input": input, "cwd": null, "mode": "plan"}),
            ),
        ] {
            assert_eq!(json!(verdict).to_string(), stored.to_string());
            assert_eq!(Verdict::from_stored(stored), verdict);
        }
        for unreadable in
            [json!(null), json!({}), json!({"answer": 7}), json!({"answer": "held"}), json!("allow")]
        {
            assert!(matches!(Verdict::from_stored(unreadable), Verdict::Deny { .. }));
        }
    }
}
