//! Tables of the domain rules, over rows in memory.

mod audit;
mod budgets;
mod feed;
mod held_calls;

use plexus_protocol::claudecode::PolicyName;
use plexus_protocol::{
    ApprovalId, ApprovalStatus, AskedOf, Decider, Decision, Event, Object, Right, SessionId, UnixSeconds,
};
use serde_json::{Value, json};

use crate::{
    CallRow, Change, Committed, MemoryStore, NewApproval, NewSession, Refusal, RunKey, StoreError,
    TurnStatus, Verdict, samples,
};

const NOW: UnixSeconds = 1_800_000_000;

fn object(value: Value) -> Object {
    value.as_object().unwrap().clone()
}

fn apply(store: &MemoryStore, change: Change) -> Committed {
    store.apply(NOW, &[change]).unwrap()
}

fn refused(store: &MemoryStore, change: Change) -> Refusal {
    match store.apply(NOW, &[change]) {
        Err(StoreError::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

fn new_session(name: &str, answers_to: AskedOf) -> NewSession {
    let mut new = samples::session(name.to_owned().try_into().unwrap());
    new.answers_to = answers_to;
    new.config.policy = PolicyName::AskAll;
    new.config.hub_tools = true;
    new
}

fn create(store: &MemoryStore, name: &str, answers_to: AskedOf) -> SessionId {
    let new = new_session(name, answers_to);
    let id = new.id;
    apply(store, Change::CreateSession(Box::new(new)));
    id
}

/// A chain of sessions, each below the one before; the first answers to the operator.
fn chain<const N: usize>(store: &MemoryStore) -> [SessionId; N] {
    let mut answers_to = AskedOf::Operator;
    std::array::from_fn(|level| {
        let id = create(store, &format!("level-{level}"), answers_to.clone());
        answers_to = AskedOf::Session { id };
        id
    })
}

fn start_turn(store: &MemoryStore, session: SessionId) {
    apply(store, Change::StartTurn { session, turn: 1, prompt: String::new(), woken_to: None });
}

fn end_turn(session: SessionId, cost_usd: f64) -> Change {
    let last =
        Box::new(Event::Content { text: "last".to_owned(), parent_tool_use_id: None, truncated: None });
    let (status, summary) = (TurnStatus::Complete, Some("done".to_owned()));
    Change::EndTurn { session, turn: 1, status, last, summary, cost_usd }
}

fn call(session: SessionId, tool_use_id: &str, answer: &str) -> CallRow {
    CallRow {
        key: RunKey { session, run: 1 },
        turn: 1,
        tool_use_id: tool_use_id.to_owned(),
        tool_name: "Bash".to_owned(),
        digest: "digest".to_owned(),
        request_id: "request".to_owned(),
        summary: String::new(),
        verdict: Verdict::from_stored(json!({"answer": answer, "reason": "a rule"})),
    }
}

fn at_gate(session: SessionId, tool_use_id: &str, answer: &str) -> Change {
    let input = object(json!({"command": "ls"}));
    Change::Call(Box::new(call(session, tool_use_id, answer)), input.into())
}

fn approval(session: SessionId, asked_of: AskedOf) -> NewApproval {
    let name = "old-name".to_owned().try_into().unwrap();
    let mut new = samples::approval(RunKey { session, run: 1 }, name, "t", NOW - 5);
    new.approval.asked_of = asked_of;
    new
}

fn decision(updated_input: Option<Value>) -> Decision {
    Decision { updated_input: updated_input.map(object), ..samples::allow() }
}

fn allows(approval: ApprovalId, updated_input: Option<Value>) -> Change {
    let decision = Box::new(decision(updated_input));
    Change::Resolve { approval, status: ApprovalStatus::Allowed, decision }
}
