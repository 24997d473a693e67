//! Limits the work of the hub per tool call and per decision: commits, syncs, SQL statements, bytes written, allocations. Time depends on the
//! machine, and work does not, so a change that makes the hub do more fails here. The limits are in `limits.tsv`. A limit that is far
//! above the count must be lowered.
//!
//! The hub runs in the process of the test, whose allocator counts. This is a test program of its own, because other tests would count too.

mod counting_allocator;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, ensure};
use plexus_agent::Launcher;
use plexus_core::ShutDown;
use plexus_server::{Config, Serving};
use plexus_store::faulty_disk::Disk;
use plexus_store::work_count::WorkCount;
use plexus_testkit::binaries;
use plexus_testkit::rpc::Rpc;
use serde_json::{Value, json};

use crate::counting_allocator::{CountingAllocator, allocations};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Calls and decisions per measurement.
const TIMES: usize = 100;
/// A limit must be lowered if the count is below this part of it.
const TOO_GENEROUS: f64 = 0.45;

/// The counts of one measurement, by name, per call or decision.
type Counts = BTreeMap<&'static str, f64>;

struct Hub {
    serving: Serving,
    rpc: Rpc,
    dir: tempfile::TempDir,
}

impl Hub {
    async fn start() -> anyhow::Result<Self> {
        let dir = tempfile::tempdir()?;
        for folder in ["data", "work", "home"] {
            std::fs::create_dir(dir.path().join(folder))?;
        }
        let mut config = Config::defaults(dir.path().join("data"))?;
        config.listen = ([127, 0, 0, 1], 0).into();
        config.hub.plexus = binaries::plexus()?;
        config.hub.claude = Launcher::program_only(binaries::scripted_agent()?)?;
        config.hub.clean_env = true;
        config.hub.home = Some(dir.path().join("home"));
        config.hub.limits.asks_per_minute = 1_000_000;
        let serving = Serving::start(config).await?;
        let token = std::fs::read_to_string(dir.path().join("data/operator.token"))?;
        let rpc = Rpc::new(serving.url(), token.trim());
        Ok(Self { serving, rpc, dir })
    }

    /// Runs a child with this many calls to its end, and answers each approval. Returns the work per call.
    async fn count(&self, name: &str, times: usize) -> anyhow::Result<Counts> {
        let mut cursor = self.rpc.call("loopback.wait", json!({})).await?["cursor"].clone();
        let session = self
            .rpc
            .call("claudecode.create", json!({"name": name, "working_dir": self.dir.path().join("work")}))
            .await?;
        let steps: Vec<Value> =
            (0..times).map(|number| json!({"tool": "Step", "input": {"number": number}})).collect();
        let before = counters();
        let prompt = json!({"steps": steps}).to_string();
        self.rpc
            .call("claudecode.chat_async", json!({"session_id": session["id"], "prompt": prompt}))
            .await?;
        loop {
            let news =
                self.rpc.call("loopback.wait", json!({"cursor": cursor, "timeout_ms": 60_000})).await?;
            cursor = news["cursor"].clone();
            for approval in news["approvals"].as_array().into_iter().flatten() {
                self.rpc
                    .call("loopback.respond", json!({"approval_id": approval["id"], "approve": true}))
                    .await?;
            }
            if let Some(finished) = news["finished"].as_array().and_then(|finished| finished.first()) {
                ensure!(finished["status"] == "complete", "{finished}");
                break;
            }
        }
        let after = counters();
        Ok(before
            .iter()
            .zip(after)
            .map(|((name, before), (_, after))| (*name, (after - before) / times as f64))
            .collect())
    }
}

fn counters() -> [(&'static str, f64); 5] {
    let WorkCount { commits, statements, syncs, written_bytes } = WorkCount::now();
    [
        ("commits", commits as f64),
        ("syncs", syncs as f64),
        ("statements", statements as f64),
        ("written_bytes", written_bytes as f64),
        ("allocations", allocations() as f64),
    ]
}

/// The lines of `limits.tsv`: what is counted, per what, and the limit.
fn limits() -> anyhow::Result<BTreeMap<(String, String), f64>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/work/limits.tsv");
    let text = std::fs::read_to_string(file)?;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let [what, per, limit] = line.split('\t').collect::<Vec<_>>()[..] else {
                anyhow::bail!("not three columns: {line}")
            };
            Ok(((what.to_owned(), per.to_owned()), limit.parse()?))
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_and_a_decision_take_no_more_work_than_their_limits() -> anyhow::Result<()> {
    let _disk = Disk::take();
    let hub = Hub::start().await?;
    // The first calls fill caches.
    let decision = {
        hub.count("first", 10).await?;
        hub.count("asked", TIMES).await?
    };
    hub.rpc.call("policy.add", json!({"rules": [{"rule": "Step", "effect": "allow"}]})).await?;
    let call = hub.count("allowed", TIMES).await?;
    let limits = limits()?;
    let mut wrong = Vec::new();
    for (per, counts) in [("call", &call), ("decision", &decision)] {
        for (what, count) in counts {
            let limit = limits.get(&((*what).to_owned(), per.to_owned())).context("a limit")?;
            println!("{what} per {per}: {count:.2} (limit {limit})");
            if count > limit {
                wrong.push(format!("{what} per {per}: {count:.2} is more than {limit}"));
            } else if *count < limit * TOO_GENEROUS {
                wrong.push(format!("{what} per {per}: {count:.2} is far below {limit}; lower the limit"));
            }
        }
    }
    hub.serving.stop(ShutDown::EndChildren).await;
    ensure!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}
