//! Conversations in a chaos run: agents sometimes fork their sessions, and real agents continue in the fork. At the end each fork must
//! exist once, with its complete history, and each session must contain what its reader received.

use std::collections::{BTreeSet, HashMap};

use plexus_testkit::rpc::Rpc;
use serde_json::{Value, json};

use super::observations::{Turn, of};

/// A session that was forked.
#[derive(Debug)]
pub(super) struct Fork {
    pub(super) original: String,
    pub(super) fork: String,
    /// The texts of its agent before the fork, as the driver received them.
    pub(super) told: Vec<Value>,
}

/// Compares forks and sessions with what the readers received.
pub(super) async fn compare(
    rpc: &Rpc,
    forks: &[Fork],
    sessions: &[String],
    turns: &[Turn],
    faults: &mut Vec<String>,
) -> anyhow::Result<()> {
    let made = forks.iter().flat_map(|fork| [&fork.original, &fork.fork]);
    let known: BTreeSet<&String> = sessions.iter().chain(made).collect();
    let mut paths = HashMap::new();
    for session in known {
        let path = path(rpc, session).await?;
        let told = turns.iter().filter(|turn| turn.session == *session);
        let told: Vec<&Value> =
            told.flat_map(|turn| of(&turn.events, "content")).map(|event| &event["text"]).collect();
        let kept = said(path.iter().filter(|node| node["session_id"] == **session));
        if kept != told {
            faults.push(format!("{session} said {told:?}, and {kept:?} is kept"));
        }
        let acts = rpc.call("audit.list", json!({"kind": "session", "session_id": session})).await?;
        let acts = acts["rows"].as_array().into_iter().flatten();
        let forked = acts.filter(|act| act["entry"]["status"] == "forked").count();
        let wanted = forks.iter().filter(|fork| fork.original == *session).count();
        if forked != wanted {
            faults.push(format!("{session} was to be forked {wanted} times, and was {forked} times"));
        }
        paths.insert(session, path);
    }
    for Fork { original, fork, told } in forks {
        let (before, after) = (&paths[original], &paths[fork]);
        let shared = before.iter().zip(after).take_while(|(one, other)| one["id"] == other["id"]);
        if said(shared.map(|(node, _)| node)) != told.iter().collect::<Vec<_>>() {
            faults.push(format!("{fork} does not go on from where {original} stood"));
        }
    }
    let listed = rpc.call("claudecode.list", json!({})).await?["sessions"].as_array().map_or(0, Vec::len);
    if listed != paths.len() {
        faults.push(format!("{listed} sessions are there, and {} were made", paths.len()));
    }
    Ok(())
}

/// The texts of the agent among these nodes.
fn said<'a>(nodes: impl Iterator<Item = &'a Value>) -> Vec<&'a Value> {
    let own = nodes.filter(|node| node["role"] == "assistant");
    let blocks = own.flat_map(|node| node["content"].as_array().into_iter().flatten());
    blocks.filter(|block| block["type"] == "text").map(|block| &block["text"]).collect()
}

/// The conversation of a session, root first.
async fn path(rpc: &Rpc, session: &str) -> anyhow::Result<Vec<Value>> {
    let (mut nodes, mut from) = (Vec::new(), json!(0));
    while !from.is_null() {
        let page = json!({"session_id": session, "from": from, "limit": 1000});
        let mut page = rpc.call("arbor.path", page).await?;
        nodes.extend(page["nodes"].as_array().into_iter().flatten().cloned());
        from = page["next"].take();
    }
    Ok(nodes)
}
