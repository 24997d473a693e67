//! The journal and the outbox of a run: at which offsets the requests of a call and their replies end. The marks of hub and keeper have
//! these offsets.

use std::collections::HashMap;

use anyhow::Context as _;
use plexus_agent::RunDir;
use serde_json::Value;

/// A request of the agent and its reply.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exchange {
    /// The end of the request in the journal.
    pub(super) request_end: u64,
    /// The end of the reply in the outbox.
    pub(super) reply_end: u64,
}

/// The last exchange about each call, by its `tool_use_id`. For a call that needed an approval this is the request of that approval.
pub(super) fn exchanges(dir: &RunDir) -> anyhow::Result<HashMap<String, Exchange>> {
    let journal = std::fs::read_to_string(dir.journal()).context("journal")?;
    let outbox = std::fs::read_to_string(dir.outbox()).context("outbox")?;
    let replies: HashMap<String, u64> = lines(&outbox)
        .filter_map(|(line, end)| Some((line["response"]["request_id"].as_str()?.to_owned(), end)))
        .collect();
    let requests = lines(&journal).filter_map(|(line, request_end)| {
        let tool_use_id = line["request"]["tool_use_id"].as_str()?.to_owned();
        let reply_end = *replies.get(line["request_id"].as_str()?)?;
        Some((tool_use_id, Exchange { request_end, reply_end }))
    });
    Ok(requests.collect())
}

/// The lines of a file, each with the offset of its end.
fn lines(text: &str) -> impl Iterator<Item = (Value, u64)> {
    text.split_inclusive('\n').scan(0, |offset, line| {
        *offset += line.len() as u64;
        Some((serde_json::from_str(line).unwrap_or_default(), *offset))
    })
}
