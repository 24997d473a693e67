//! The parent agent: an MCP client that answers every approval of its child until the child's turn ends. It records the texts that an agent
//! reads and writes: the arguments and the results of its tool calls.

use std::fmt;

use anyhow::{Context as _, bail, ensure};
use plexus_testkit::rpc::{Door as _, McpClient};
use serde_json::{Value, json};

use super::child::Child;

/// How long one call may wait, in milliseconds.
const WAIT_MS: u64 = 30_000;

/// How the parent learns what its child does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// `loopback.wait`, combined with `loopback.respond`: approvals and finished turns.
    Wait,
    /// `claudecode.poll`: every event, its texts truncated at this many bytes.
    Poll { max_bytes: usize },
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wait => f.write_str("wait"),
            Self::Poll { max_bytes } => write!(f, "poll, texts of {max_bytes} bytes"),
        }
    }
}

/// What the parent read and wrote.
pub(super) struct Supervised {
    /// The id of the child's session.
    pub(super) session: String,
    pub(super) calls: usize,
    pub(super) approvals: usize,
    pub(super) read: String,
    pub(super) written: String,
}

struct Parent {
    client: McpClient,
    supervised: Supervised,
}

/// Creates the child and supervises it to the end of its turn.
pub(super) async fn supervise(child: &Child, way: Way) -> anyhow::Result<Supervised> {
    let supervised = Supervised {
        session: String::new(),
        calls: 0,
        approvals: 0,
        read: String::new(),
        written: String::new(),
    };
    let mut parent = Parent { client: child.parent().await?, supervised };
    let created = parent.call("claudecode.create", child.create()).await?;
    parent.supervised.session = created["id"].as_str().context("an id")?.to_owned();
    match way {
        Way::Wait => parent.wait().await?,
        Way::Poll { max_bytes } => parent.poll(max_bytes).await?,
    }
    Ok(parent.supervised)
}

impl Parent {
    async fn call(&mut self, method: &str, arguments: Value) -> anyhow::Result<Value> {
        let written = arguments.to_string();
        let result = self.client.call(method, arguments).await?;
        let Supervised { calls, read, written: all, .. } = &mut self.supervised;
        *calls += 1;
        // The hub returns the result as compact JSON, so this is the text of the answer.
        read.push_str(&result.to_string());
        all.push_str(&written);
        Ok(result)
    }

    async fn wait(&mut self) -> anyhow::Result<()> {
        let mut news = self.call("loopback.wait", json!({"cursor": 0})).await?;
        loop {
            if let Some(turn) = news["finished"].get(0) {
                ensure!(turn["status"] == "complete", "the turn did not complete: {turn}");
                return Ok(());
            }
            let decisions = self.allow(&news["approvals"])?;
            let cursor = &news["cursor"];
            news = if decisions.is_empty() {
                self.call("loopback.wait", json!({"cursor": cursor})).await?
            } else {
                let answers = json!({"decisions": decisions, "wait_ms": WAIT_MS, "cursor": cursor});
                self.call("loopback.respond", answers).await?["wait"].take()
            };
        }
    }

    async fn poll(&mut self, max_bytes: usize) -> anyhow::Result<()> {
        loop {
            let session = &self.supervised.session;
            let arguments = json!({"session_id": session, "wait_ms": WAIT_MS, "max_bytes": max_bytes});
            let result = self.call("claudecode.poll", arguments).await?;
            let decisions = self.allow(&result["pending_approvals"])?;
            if !decisions.is_empty() {
                self.call("loopback.respond", json!({"decisions": decisions})).await?;
            }
            match result["status"].as_str() {
                Some("complete") if result["has_more"] != true => return Ok(()),
                Some("complete" | "running" | "awaiting_permission") => {}
                _ => bail!("the turn did not complete: {result}"),
            }
        }
    }

    /// Allows approvals whose input it has read in full.
    fn allow(&mut self, approvals: &Value) -> anyhow::Result<Vec<Value>> {
        let approvals = approvals.as_array().map(Vec::as_slice).unwrap_or_default();
        self.supervised.approvals += approvals.len();
        let mut decisions = Vec::new();
        for approval in approvals {
            ensure!(approval["truncated"] != true, "an approval is truncated: {approval}");
            decisions.push(json!({"approval_id": approval["id"], "approve": true}));
        }
        Ok(decisions)
    }
}
