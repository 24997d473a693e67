//! Context for an approval: the task of the requesting agent, and earlier decisions about similar calls. Both are
//! computed on request from the turn and the audit log, and reveal only what the caller may see anyway.

use std::path::Path;

use plexus_policy::{Call, Likeness};
use plexus_protocol::audit::{AuditEntry, AuditKind, AuditRow};
use plexus_protocol::loopback::{Like, Purpose, PurposeStep};
use plexus_protocol::{ApprovalStatus, Error, ErrorKind, MAX_TEXT_BYTES, Object, Principal, shorten};
use plexus_store::{ApprovalRow, AuditFilter, AuditFrom, Store};
use serde_json::Value;

use crate::callers::access::{self, Admitted};
use crate::errors::store_error;
use crate::lineage::known_lineage;
use crate::summary;

/// The maximum number of similar calls in a result.
const MAX_SIMILAR: usize = 10;
/// The maximum number of audit log entries searched, and of pages they are read in.
const MAX_ENTRIES: u64 = 500;
const MAX_PAGES: usize = 4;

/// The task of the requesting agent: its path in the tree and the prompt of the turn.
pub(crate) async fn purpose(
    store: &dyn Store,
    caller: &Admitted,
    row: &ApprovalRow,
) -> Result<Purpose, Error> {
    let session = store.session(row.approval.session_id).await.map_err(store_error)?;
    let lineage = match session {
        Some(session) => known_lineage(store, session).await.map_err(store_error)?,
        None => Default::default(),
    };
    // A session sees itself and its descendants, but not its ancestors.
    let above = |id| matches!(caller.principal, Principal::Session { id: me, .. } if me != id);
    let seen = lineage.sessions().iter().skip_while(|session| above(session.id));
    let path = seen.map(|session| PurposeStep { id: session.id, name: session.name.clone() }).collect();
    let turn = store.turn(row.approval.session_id, row.turn).await.map_err(store_error)?;
    let mut prompt = turn.map_or(Value::Null, |turn| Value::String(turn.prompt));
    let truncated = shorten(&mut prompt, MAX_TEXT_BYTES);
    let prompt = match prompt {
        Value::String(prompt) => Some(prompt),
        _ => None,
    };
    Ok(Purpose { path, turn: row.turn, prompt, truncated })
}

/// Earlier decisions about similar calls, newest first, limited to those the caller may see.
pub(crate) async fn similar(
    store: &dyn Store,
    caller: &Admitted,
    row: &ApprovalRow,
) -> Result<Vec<Like>, Error> {
    let (mut found, mut read, mut before) = (Vec::new(), 0, u64::MAX);
    for _ in 0..MAX_PAGES {
        let filter =
            AuditFilter { tool_name: Some(row.approval.tool_name.clone()), ..AuditFilter::default() };
        let page = store.audit(filter, AuditFrom::Before(before), MAX_ENTRIES - read).await;
        let page = page.map_err(store_error)?;
        let Some(last) = page.last() else { break };
        (before, read) = (last.number, read + page.len() as u64);
        let asked = row.approval.clone();
        // Comparing calls parses command lines, so it runs on a blocking thread.
        let calls = tokio::task::spawn_blocking(move || similar_calls(&asked, page)).await;
        let calls = calls.map_err(|error| Error::new(ErrorKind::Internal, error.to_string()))?;
        for call in calls {
            if may_see(store, caller, &call.entry).await? {
                found.extend(to_like(call));
            }
            if found.len() == MAX_SIMILAR {
                return Ok(found);
            }
        }
        if read >= MAX_ENTRIES {
            break;
        }
    }
    Ok(found)
}

/// Whether the caller may see the session of an audit log entry.
async fn may_see(store: &dyn Store, caller: &Admitted, entry: &AuditEntry) -> Result<bool, Error> {
    let Some(id) = entry.session_id else { return Ok(false) };
    if matches!(caller.principal, Principal::Operator | Principal::Token { .. }) {
        return Ok(true);
    }
    match store.session(id).await.map_err(store_error)? {
        Some(session) => Ok(access::relation(store, &caller.principal, &session).await?.is_some()),
        None => Ok(false),
    }
}

/// An entry of the audit log about an earlier call.
struct SimilarCall {
    entry: AuditEntry,
    similarity: Similarity,
}

/// How an earlier call relates to the requested one.
#[derive(PartialEq, Eq)]
enum Similarity {
    /// The same call.
    Same,
    /// Another call of the same kind.
    SameKind,
}

/// The entries about calls similar to this one.
fn similar_calls(asked: &plexus_protocol::Approval, rows: Vec<AuditRow>) -> Vec<SimilarCall> {
    let mine = similarity_key(&asked.tool_name, &asked.input, &asked.cwd);
    let about_calls = rows.into_iter().map(|row| row.entry).filter(|entry| {
        matches!(entry.kind, AuditKind::Decision | AuditKind::Gate) && entry.approval_id != Some(asked.id)
    });
    about_calls
        .filter_map(|entry| {
            if entry.digest.is_some() && entry.digest == asked.digest {
                return Some(SimilarCall { entry, similarity: Similarity::Same });
            }
            // Entries for decisions of the gate alone have no working directory.
            let cwd = entry.cwd.as_deref().unwrap_or(&asked.cwd);
            let similar =
                mine.is_some() && similarity_key(&asked.tool_name, entry.input.as_ref()?, cwd) == mine;
            similar.then_some(SimilarCall { entry, similarity: Similarity::SameKind })
        })
        .collect()
}

fn similarity_key(tool_name: &str, input: &Object, cwd: &str) -> Option<Likeness> {
    let input = Value::Object(input.clone());
    Likeness::of(&Call { tool_name, input: &input, cwd: Path::new(cwd), home: None, now: 0 })
}

fn to_like(call: SimilarCall) -> Option<Like> {
    let SimilarCall { entry, similarity } = call;
    let status = match entry.status.as_str() {
        "allow" | "allowed" => ApprovalStatus::Allowed,
        "deny" | "denied" => ApprovalStatus::Denied,
        "expired" => ApprovalStatus::Expired,
        "withdrawn" => ApprovalStatus::Withdrawn,
        _ => return None,
    };
    let by_gate = entry.gate.as_ref().filter(|_| entry.kind == AuditKind::Gate);
    let reason = by_gate.and_then(|gate| gate.get("reason")?.as_str());
    let message = entry.message.as_deref().or(reason).map(summary::line);
    let summary = summary::summary(&entry.input.unwrap_or_default());
    let edited = entry.updated_input.is_some();
    let same = similarity == Similarity::Same;
    Some(Like { at: entry.at, status, by: entry.by, message, same, edited, summary })
}
