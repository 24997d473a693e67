//! Runs the calls: one scripted agent whose calls are answered by a client, and one whose calls a rule allows. Agent and client record
//! the monotonic clock at their ends of each call.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use plexus_agent::RunDir;
use plexus_testkit::hub_process::HubProcess;
use plexus_testkit::rpc::{Listener, Rpc};
use serde_json::{Value, json};

use super::marks::{self, Mark};
use super::run_files::{self, Exchange};
use crate::bench_dir;
use crate::hub_client::{next_approval, now_ns, until_complete};
use crate::kept_connection::KeptConnection;
use crate::permit::child_params;

/// Calls that are not measured: the first ones fill caches.
const NOT_COUNTED: usize = 20;
/// The time limit for the last marks to be read from the hub's stderr.
const LIMIT: Duration = Duration::from_secs(10);

/// Whether the hub writes timing marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marks {
    On,
    Off,
}

/// One call.
pub(super) struct Call {
    pub(super) tool_use_id: String,
    /// The last request about the call, and its reply.
    pub(super) exchange: Exchange,
    /// When the agent sent that request, and when it read the reply.
    pub(super) requested_at: u64,
    pub(super) read_at: u64,
    /// How a client answered; `None` if a rule allowed the call.
    pub(super) decided: Option<Decided>,
    /// The marks of the hub and of the agent's keeper, of all calls.
    pub(super) hub: Arc<[Mark]>,
    pub(super) keeper: Arc<[Mark]>,
}

/// An answer of a client.
pub(super) struct Decided {
    pub(super) approval: String,
    /// When the client had the approval.
    pub(super) shown_at: u64,
    /// When the client sent its answer.
    pub(super) sent_at: u64,
}

/// Runs this many calls of each kind on a new hub.
pub(super) async fn run(marks: Marks, calls: usize) -> anyhow::Result<Vec<Call>> {
    let dir = bench_dir::on_a_disk()?;
    let mut options = bench_dir::prepare(dir.path(), "durability = \"full\"\n")?;
    if marks == Marks::On {
        options.env.push(("PLEXUS_LOG".to_owned(), format!("warn,{}=trace", plexus_agent::TIMING)));
    }
    let hub = HubProcess::start(options).await?;
    let rpc = Rpc::new(hub.url(), &hub.token()?);
    let steps = calls + NOT_COUNTED;
    let answered = rpc.call("claudecode.create", child_params("answered", dir.path(), steps));
    let mut listener = Listener::open(hub.url(), "/events", &hub.token()?, None).await?;
    let answered = answered.await?;
    let mut decided = answer(&hub, &mut listener, steps).await?;
    until_complete(&rpc, ("name", "answered")).await?;
    rpc.call("policy.add", json!({"rules": [{"rule": "Step", "effect": "allow"}]})).await?;
    let allowed = rpc.call("claudecode.create", child_params("allowed", dir.path(), steps)).await?;
    until_complete(&rpc, ("name", "allowed")).await?;
    let ran = ran(&std::fs::read_to_string(dir.path().join(bench_dir::LOG))?)?;
    ensure!(ran.len() == 2 * steps, "{} of {} calls ran", ran.len(), 2 * steps);
    let hub_marks = hub_marks(&hub, marks, ran.last().map_or(0, |ran| ran.read_at)).await?;
    let mut traced = Vec::new();
    for (session, ran) in [answered, allowed].iter().zip(ran.chunks(steps)) {
        let id = session["id"].as_str().context("a session has an id")?;
        let run_dir = RunDir::new(hub.data_dir().join("sessions").join(id).join("runs/1"));
        let mut exchanges = run_files::exchanges(&run_dir)?;
        let keeper: Arc<[Mark]> = marks::read(&std::fs::read_to_string(run_dir.stderr())?).into();
        for Ran { tool_use_id, requested_at, read_at } in ran.iter().skip(NOT_COUNTED) {
            traced.push(Call {
                exchange: exchanges.remove(tool_use_id).context("a call has a reply")?,
                decided: decided.remove(tool_use_id),
                tool_use_id: tool_use_id.clone(),
                requested_at: *requested_at,
                read_at: *read_at,
                hub: Arc::clone(&hub_marks),
                keeper: Arc::clone(&keeper),
            });
        }
    }
    Ok(traced)
}

/// Answers this many approvals, each as soon as the client has it.
async fn answer(
    hub: &HubProcess,
    listener: &mut Listener,
    approvals: usize,
) -> anyhow::Result<HashMap<String, Decided>> {
    let mut connection = KeptConnection::open(hub.url(), &hub.token()?).await?;
    let mut decided = HashMap::new();
    for _ in 0..approvals {
        let approval = next_approval(listener).await?;
        let shown_at = now_ns();
        let [id, tool_use_id] =
            ["id", "tool_use_id"].map(|field| approval[field].as_str().unwrap_or_default().to_owned());
        let allow = json!({"approval_id": id, "approve": true});
        let sent_at = now_ns();
        connection.call("loopback.respond", allow).await?;
        decided.insert(tool_use_id, Decided { approval: id, shown_at, sent_at });
    }
    Ok(decided)
}

/// A call in the log of the agents.
struct Ran {
    tool_use_id: String,
    requested_at: u64,
    read_at: u64,
}

fn ran(log: &str) -> anyhow::Result<Vec<Ran>> {
    let ran = log.lines().map(|line| {
        let line: Value = serde_json::from_str(line)?;
        let time = |field: &str| line[field].as_u64().with_context(|| format!("the agent logs `{field}`"));
        let tool_use_id = line["tool_use_id"].as_str().context("the agent logs the call")?.to_owned();
        Ok(Ran { tool_use_id, requested_at: time("requested_at_ns")?, read_at: time("at_ns")? })
    });
    ran.collect()
}

/// The marks of the hub, once they include the end of the last call.
async fn hub_marks(hub: &HubProcess, marks: Marks, last: u64) -> anyhow::Result<Arc<[Mark]>> {
    if marks == Marks::Off {
        return Ok(Arc::default());
    }
    let complete = async {
        loop {
            let read = marks::read(&hub.stderr());
            if read.last().is_some_and(|mark| mark.at > last) {
                return read.into();
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(LIMIT, complete).await.context("the hub wrote no marks about the last call")
}
