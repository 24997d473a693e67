//! Whether removing old data delays decisions: how long a child waits for its answer on a hub that removes tens of thousands of events at the
//! same time, and on a hub that keeps the same events, alternately.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::ensure;
use clap::Args;
use plexus_store::{Durability, SqlStore, Store as _};
use plexus_testkit::hub_process::HubProcess;
use plexus_testkit::rpc::Rpc;
use serde_json::json;
use tempfile::TempDir;

use crate::figures::Figures;
use crate::permit::waits_of_one;
use crate::report::{Report, Threshold, progress};
use crate::{bench_dir, hub_client};

/// The largest ratio of the waiting times.
const GOAL: f64 = 1.5;

#[derive(Args)]
pub(crate) struct RetentionArgs {
    /// Number of permits on each hub
    #[arg(long, default_value_t = 400)]
    permits: usize,

    /// Number of events that each hub removes or keeps
    #[arg(long, default_value_t = 60_000)]
    events: usize,

    /// Number of alternations
    #[arg(long, default_value_t = 4)]
    rounds: usize,
}

pub(crate) async fn run(args: &RetentionArgs) -> anyhow::Result<ExitCode> {
    let mut report = Report::new(
        "retention",
        "From `respond` to the start of the tool while the hub removes old events",
        "removing approvals, journals and conversations. Both hubs store the same events, and one of them removes its events from the first \
         measurement to the last.",
    );
    let keeps = BenchHub::with("").await?;
    let removes = BenchHub::with("[retention]\nevery_secs = 0.1\nevents_days = 0.00001\n").await?;
    keeps.fill(args.events).await?;
    let old = removes.fill(args.events).await?;
    removes.until_gone(&old).await?;
    let before = removes.events_left(&old).await?;
    let (mut kept, mut removed) = (Vec::new(), Vec::new());
    for round in 0..args.rounds {
        progress(&format!("round {} of {}", round + 1, args.rounds));
        let permits = args.permits / args.rounds;
        let mut hubs = [(&keeps, &mut kept), (&removes, &mut removed)];
        if round % 2 == 1 {
            hubs.reverse();
        }
        for (hub, waits) in hubs {
            waits.push(waits_of_one(&hub.hub, hub.dir.path(), round, permits).await?);
        }
    }
    let left = removes.events_left(&old).await?;
    ensure!(left > 0, "the hub deleted all events before the last permit; use more --events");
    report.measures += &format!(" ({} of {} meanwhile)", before - left, args.events);
    report.times("nothing removed", &Figures::of(kept.concat())).baseline();
    report.times("while the hub removes events", &Figures::of(removed.concat()));
    report.values("events removed meanwhile", "events", &[(before - left) as f64]);
    let ratio = |(removed, kept): (&Vec<_>, &Vec<_>)| {
        Figures::of(removed.clone()).ratio_to(&Figures::of(kept.clone()))
    };
    let ratios: Vec<f64> = removed.iter().zip(&kept).map(ratio).collect();
    report.goal(
        "p50 while events are removed, compared with none removed",
        "×",
        &ratios,
        Threshold::AtMost(GOAL),
    );
    report.finish()
}

/// A hub and its directory.
struct BenchHub {
    hub: HubProcess,
    dir: TempDir,
}

impl BenchHub {
    async fn with(config: &str) -> anyhow::Result<Self> {
        let dir = bench_dir::on_a_disk()?;
        let hub = bench_dir::start_hub(dir.path(), &format!("durability = \"full\"\n{config}")).await?;
        Ok(Self { hub, dir })
    }

    fn rpc(&self) -> anyhow::Result<Rpc> {
        Ok(Rpc::new(self.hub.url(), &self.hub.token()?))
    }

    /// A session with a turn of this many events, and a turn after it.
    async fn fill(&self, events: usize) -> anyhow::Result<String> {
        let rpc = self.rpc()?;
        let create = json!({"name": "old", "working_dir": self.dir.path().join("work")});
        let session = hub_client::create(&rpc, create).await?;
        for steps in [json!([{"flood": {"events": events, "bytes": 300}}]), json!([{"say": "next"}])] {
            let prompt = json!({"steps": steps}).to_string();
            rpc.call("claudecode.chat_async", json!({"session_id": session, "prompt": prompt})).await?;
            hub_client::until_complete(&rpc, ("session_id", &session)).await?;
        }
        Ok(session)
    }

    /// Waits for the first deletion.
    async fn until_gone(&self, session: &str) -> anyhow::Result<()> {
        let rpc = self.rpc()?;
        let first = json!({"session_id": session, "turn": 1, "from_seq": 0, "limit": 1});
        while rpc.call("claudecode.poll", first.clone()).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    async fn events_left(&self, session: &str) -> anyhow::Result<u64> {
        let store = SqlStore::sqlite(&self.hub.data_dir().join("plexus.db"), Durability::Full)?;
        let session = session.parse()?;
        // Events are removed from the first on.
        let first = store.events(session, 1, 0, 1).await?.first().map(|event| event.seq);
        let count = store.event_count(session, 1).await?;
        Ok(first.map_or(0, |first| count - first))
    }
}
