//! The log of the harness: each effect of the machine in a few words.

use plexus_store::{Change, Verdict};
use serde_json::Value;

use super::super::Cause;

pub(super) fn cause_name(cause: &Cause) -> String {
    match cause {
        Cause::Ended => "ended".to_owned(),
        Cause::Stopped(why) => format!("stopped, {why}"),
        Cause::Failed(reason, _) => format!("failed, {reason}"),
    }
}

/// A line to the child, in a few words.
pub(super) fn sent(line: &str) -> String {
    let line: Value = serde_json::from_str(line).expect("a line is JSON");
    match line["type"].as_str() {
        Some("control_response") => {
            let response = &line["response"];
            let id = response["request_id"].as_str().unwrap_or_default();
            let body = &response["response"];
            let gate = &body["hookSpecificOutput"]["permissionDecision"];
            let answer = match (&response["error"], gate, &body["behavior"]) {
                (Value::String(_), _, _) => "error",
                (_, Value::String(gate), _) => gate,
                (_, _, Value::String(behavior)) => behavior,
                _ => "no opinion",
            };
            format!("{id}: {answer}")
        }
        Some("control_request") => line["request"]["subtype"].as_str().unwrap_or_default().to_owned(),
        Some("user") => format!("prompt {}", line["message"]["content"]),
        other => panic!("{other:?}"),
    }
}

/// A change, by name; the bookkeeping of lines and of the conversation is left out.
pub(super) fn name_of(change: &Change) -> Option<String> {
    Some(match change {
        Change::JournalOffset(..)
        | Change::Progress(..)
        | Change::AddNode(..)
        | Change::ExtendNode { .. } => {
            return None;
        }
        Change::StartRun { key, state, .. } => format!("begin run {} ({state:?})", key.run),
        Change::RunProcess(..) => "process".to_owned(),
        Change::RunState(_, state) => format!("run is {state:?}"),
        Change::EndRun(key, _) => format!("end run {}", key.run),
        Change::StartTurn { turn, .. } => format!("begin turn {turn}"),
        Change::BindTurn { run, .. } => format!("bind to run {run}"),
        Change::Event(_, _, event) => {
            let event = serde_json::to_value(event).expect("an event is JSON");
            let kind = event["type"].as_str().unwrap_or_default();
            match event["subtype"].as_str() {
                Some(subtype) => format!("{kind} {subtype}"),
                None => kind.to_owned(),
            }
        }
        Change::EndTurn { turn, status, .. } => format!("end turn {turn}: {status:?}"),
        Change::Call(row, _) => {
            format!("call {}: {}", row.tool_use_id, verdict_name(&row.verdict))
        }
        Change::Release(row, _) => {
            format!("release {}: {}", row.tool_use_id, verdict_name(&row.verdict))
        }
        Change::Ask(new) => format!("ask about {}", new.approval.tool_use_id),
        Change::ResolveIfPending { status, .. } => format!("{status:?} if pending"),
        Change::Delivered(_) => "delivered".to_owned(),
        Change::ReleaseKeys(_, tool_use_id) => format!("free {tool_use_id}"),
        Change::Configure(_, config) => format!("mode {}", config.permission_mode.as_str()),
        Change::Spend(_, limit, units) => format!("spend {units} of {}", limit.as_str()),
        Change::AskBudget(_) => "ask for budget".to_owned(),
        Change::CheckBudget(_) => "check budget".to_owned(),
        Change::CheckSlot(_) => "check slot".to_owned(),
        Change::Stream(_) => "stream".to_owned(),
        Change::Audit(entry) => format!("audit {}", entry.message.as_deref().unwrap_or_default()),
        Change::Notice { data, .. } => format!("notice {}", data["type"].as_str().unwrap_or_default()),
        other => panic!("a session never stores {other:?}"),
    })
}

fn verdict_name(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::NoOpinion => "no opinion",
        Verdict::Allow { .. } => "allow",
        Verdict::Ask { .. } => "ask",
        Verdict::Deny { .. } => "deny",
        Verdict::Held { .. } => "held",
    }
}
