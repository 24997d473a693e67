//! What is asked: approvals, the calls they are about, the limits that calls are held by, and the streams that wait.

use plexus_protocol::budget::BudgetLimit;
use plexus_protocol::claudecode::Channel;
use plexus_protocol::{Approval, ApprovalId, Object, SessionId, UnixSeconds};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RunKey;

/// An approval to be asked.
#[derive(Debug, Clone)]
pub struct NewApproval {
    /// As it will be shown; its status is `pending`.
    pub approval: Approval,
    /// The run that asks.
    pub run: u32,
    /// The turn it belongs to; 0 outside any.
    pub turn: u64,
    /// How it came.
    pub channel: Channel,
    /// The control request to answer, on the control channel.
    pub request_id: Option<String>,
}

/// An approval as it is kept. `approval.session_name` is the session's present name, and the input is whole.
#[derive(Debug, Clone)]
pub struct ApprovalRow {
    /// As it is shown.
    pub approval: Approval,
    /// The run that asks.
    pub run: u32,
    /// The turn it belongs to.
    pub turn: u64,
    /// How it came.
    pub channel: Channel,
    /// The control request to answer.
    pub request_id: Option<String>,
    /// Its number in the feed.
    pub number: u64,
}

/// A tool call as the gate saw and answered it.
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
    /// Names tool, input and directory.
    pub digest: String,
    /// The control request it came in.
    pub request_id: String,
    /// The gate's answer, or that the call is held.
    pub verdict: Verdict,
}

/// What became of a call at the gate. The JSON of this type is the format of stored data and of `gate` in audit entries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Verdict {
    /// The gate has no opinion: Claude Code's permission rules decide.
    OwnCourse,
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
    /// A budget is exhausted: the call waits for a budget approval and is put before the gate again.
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
            reason: "Plexus could not read its own record of this call.".to_owned(),
        })
    }

    pub(crate) fn held(approval: ApprovalId, call: &CallInput) -> Self {
        let CallInput { input, cwd, mode } = call.clone();
        Self::Held { approval, input, cwd, mode }
    }
}

/// What else is known of a call that the gate saw.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CallInput {
    /// What the tool is to be given.
    pub input: Object,
    /// Where the child stood.
    pub cwd: Option<String>,
    /// The mode the child was in.
    pub mode: Option<String>,
}

impl From<Object> for CallInput {
    fn from(input: Object) -> Self {
        Self { input, cwd: None, mode: None }
    }
}

/// A limit of a session, in units ([`BudgetLimit::units`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetRow {
    /// The session it was given to, for itself and all below it.
    pub session: SessionId,
    /// What is limited.
    pub limit: BudgetLimit,
    /// What was given.
    pub granted: u64,
    /// What was used by it, by those below it without such a limit, and by those that are deleted.
    pub own: u64,
    /// What is set aside for those below it that have such a limit.
    pub below: u64,
    /// What it and all below it have used since it was given.
    pub used: u64,
}

impl BudgetRow {
    /// What can still be used or given.
    pub fn left(&self) -> u64 {
        self.granted.saturating_sub(self.own + self.below)
    }
}

/// Something waits until more is given.
#[derive(Debug, Clone)]
pub struct Held {
    /// The session that waits.
    pub session: SessionId,
    /// The call that waits at the gate; `None` where the turn itself is to end without more.
    pub tool_use_id: Option<String>,
    /// The question for more.
    pub approval: ApprovalId,
    /// The limit that is used up.
    pub limit: BudgetRow,
}

/// A stream on which a permit over HTTP waits, so that it can be taken up again after a restart.
#[derive(Debug, Clone)]
pub struct PermitStream {
    /// The SSE event id the stream began with.
    pub event_id: String,
    /// Whose it is.
    pub key: RunKey,
    /// The approval it waits for.
    pub approval: ApprovalId,
    /// The JSON-RPC id to answer.
    pub jsonrpc_id: Value,
    /// The progress token to keep it alive with.
    pub progress_token: Option<Value>,
}

/// Which pending approvals are meant.
#[derive(Debug, Clone)]
pub enum Open {
    /// All of them.
    All,
    /// One session's.
    OfSession(SessionId),
    /// Those asked of one addressee ([`plexus_protocol::AskedOf::key`]), and those that went on without it: it may come back and decide
    /// them. The number of each is the one it had when this addressee was asked.
    AskedOf(String),
}

/// How much is alive and open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Living sessions.
    pub sessions: u64,
    /// Pending approvals.
    pub open_approvals: u64,
    /// When the oldest of them was asked.
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
            (Verdict::OwnCourse, json!({"answer": "own_course"})),
            (Verdict::Allow { reason: reason() }, json!({"answer": "allow", "reason": "rule 7"})),
            (Verdict::Ask { reason: reason() }, json!({"answer": "ask", "reason": "rule 7"})),
            (Verdict::Deny { reason: reason() }, json!({"answer": "deny", "reason": "rule 7"})),
            (
                Verdict::held(
                    approval,
                    &CallInput { input: input.clone(), cwd: None, mode: Some("plan".to_owned()) },
                ),
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
