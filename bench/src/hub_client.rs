//! What benchmarks ask a hub: create a session, wait for a turn, read the approvals in a stream of events.

use anyhow::{Context as _, ensure};
use plexus_testkit::rpc::{Listener, Rpc};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

/// Creates a session and returns its id.
pub(crate) async fn create(rpc: &Rpc, params: Value) -> anyhow::Result<String> {
    Ok(rpc.call("claudecode.create", params).await?["id"].as_str().context("an id")?.to_owned())
}

/// Waits until the latest turn of a session is complete. The parameter `session_id` or `name` names the session.
pub(crate) async fn until_complete(rpc: &Rpc, (field, session): (&str, &str)) -> anyhow::Result<()> {
    let mut from_seq = 0;
    loop {
        let mut poll = json!({"from_seq": from_seq, "wait_ms": 10_000, "limit": 1000, "max_bytes": 16});
        poll[field] = session.into();
        let poll = rpc.call("claudecode.poll", poll).await?;
        from_seq = poll["read_position"].as_u64().unwrap_or(from_seq);
        match poll["status"].as_str() {
            Some("complete") => return Ok(()),
            status => ensure!(status == Some("running"), "the turn did not complete: {status:?}"),
        }
    }
}

/// The approval of an event that says that one is requested.
pub(crate) fn requested_approval(event: &str) -> Option<Value> {
    let mut data: Value = serde_json::from_str(event).ok()?;
    (data["type"] == "asked").then(|| data["approval"].take())
}

/// The next approval that is requested.
pub(crate) async fn next_approval(listener: &mut Listener) -> anyhow::Result<Value> {
    loop {
        let event = listener.next().await?.context("the stream of events ended")?;
        if let Some(approval) = requested_approval(&event.data) {
            return Ok(approval);
        }
    }
}

/// The monotonic clock, which the scripted agents also use.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
