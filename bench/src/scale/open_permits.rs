//! Open permits of agents outside the hub. One agent, the probe, requests permits one after another, and each is answered. All other
//! permits stay open, so that the probe's work is the same at every number of open permits.

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use plexus_testkit::hub_process::HubProcess;
use plexus_testkit::rpc::Listener;
use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use super::{SETTLE, ScaleArgs, list_times};
use crate::hub_client::requested_approval;
use crate::kept_connection::KeptConnection;
use crate::report::progress;
use crate::{bench_dir, memory, outside_agent};

/// Permits that are requested at the same time. The hub limits the number of connections that have sent no request yet.
const AT_ONCE: usize = 200;
/// The memory of an idle connection is the difference between these numbers of them. The hub closes idle connections if there are too many.
const FIRST_IDLE: usize = 100;
const MAX_IDLE: usize = 300;
/// Sessions that are created at the same time.
const SESSIONS_AT_ONCE: usize = 16;
/// The time limit for one approval to be published, for one answer, and for one list.
pub(super) const LIMIT: Duration = Duration::from_secs(60);

/// The measurements of one hub.
pub(super) struct Measured {
    /// Decisions with one open permit: from sending `respond` until the probe has its answer.
    pub(super) alone: Vec<Duration>,
    /// The same with all permits open.
    pub(super) among_open: Vec<Duration>,
    /// The growth of the hub's resident memory per idle connection, in bytes.
    pub(super) connection_memory: f64,
    /// The growth of the hub's resident memory per open permit with its connection, in bytes.
    pub(super) memory: f64,
    /// The times of `loopback.pending` and `claudecode.list` with all permits open.
    pub(super) pending: Vec<Duration>,
    pub(super) list: Vec<Duration>,
}

/// Measures a new hub with one open permit, then with `open` permits. All sessions exist before the first permit.
pub(super) async fn measure(open: usize, args: &ScaleArgs) -> anyhow::Result<Measured> {
    raise_open_files(open)?;
    let held = open.saturating_sub(1).max(1);
    let sessions = held.div_ceil(args.per_session) + 1;
    let config = format!(
        "durability = \"full\"\nlimits.sessions = {}\nlimits.open_approvals = {}\nlimits.open_approvals_mb = 1024\n\
         doors.calls = 100000\ndoors.calls_per_caller = {}\n",
        sessions + 100,
        open + 100,
        args.per_session + 100,
    );
    let dir = bench_dir::on_a_disk()?;
    let hub = bench_dir::start_hub(dir.path(), &config).await?;
    let mut tokens = tokens(&hub, dir.path(), sessions).await?;
    progress(&format!("{sessions} sessions exist"));
    let mut probe = Probe::start(&hub, &tokens.pop().context("the probe has a session")?).await?;
    // The first decisions of a hub fill its caches.
    probe.decide(20).await?;
    let alone = probe.decide(args.decisions).await?;
    tokio::time::sleep(SETTLE).await;
    let before = memory::resident(hub.pid())?;
    let mut idle = VecDeque::new();
    let mut idle_memory = Vec::new();
    for connections in [held.min(FIRST_IDLE), held.min(MAX_IDLE)] {
        while idle.len() < connections {
            let token = tokens.get(idle.len() / args.per_session).context("enough sessions")?;
            idle.push_back(used_connection(hub.url(), token).await?);
        }
        tokio::time::sleep(SETTLE).await;
        idle_memory.push(memory::resident(hub.pid())?);
    }
    // The first connections also grow what all of them share.
    let connection_memory = match idle_memory.as_slice() {
        [first, all] => (all - first) / (held.min(MAX_IDLE) - held.min(FIRST_IDLE)) as f64,
        _ => f64::NAN,
    };
    let mut agents = JoinSet::new();
    while agents.len() < held {
        let count = AT_ONCE.min(held - agents.len());
        for _ in 0..count {
            let number = agents.len();
            let token = tokens.get(number / args.per_session).context("enough sessions")?;
            let connection = match idle.pop_front() {
                Some(connection) => connection,
                None => KeptConnection::open(hub.url(), token).await?,
            };
            agents.spawn(hold(connection, number));
        }
        for _ in 0..count {
            let published = probe.next_approval().await;
            if published.is_err()
                && let Some(ended) = agents.try_join_next()
            {
                // The agent's own error says more.
                ended??;
            }
            published?;
        }
        if agents.len().is_multiple_of(1_000) {
            progress(&format!("{} permits are open", agents.len()));
        }
    }
    tokio::time::sleep(SETTLE).await;
    let memory = (memory::resident(hub.pid())? - before) / held as f64;
    let among_open = probe.decide(args.decisions).await?;
    let pending = list_times(&hub, "loopback.pending", args.lists).await?;
    let list = list_times(&hub, "claudecode.list", args.lists).await?;
    if let Some(ended) = agents.try_join_next() {
        ended??;
    }
    Ok(Measured { alone, among_open, memory, connection_memory, pending, list })
}

/// Lets this process have as many connections as the permits need. The hub raises its own limit.
fn raise_open_files(permits: usize) -> anyhow::Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)?;
    let needed = permits as u64 + 500;
    let enough = limit.maximum.is_none_or(|most| most >= needed);
    ensure!(enough, "{permits} open permits need a limit of {needed} open files (ulimit -Hn)");
    Ok(())
}

/// The tokens of this many agents.
async fn tokens(hub: &HubProcess, dir: &Path, agents: usize) -> anyhow::Result<Vec<String>> {
    let places = Semaphore::new(SESSIONS_AT_ONCE);
    let creations = (0..agents).map(async |agent| {
        let _place = places.acquire().await?;
        outside_agent::token(hub, dir, agent).await
    });
    futures::future::try_join_all(creations).await
}

/// A connection that has sent a request and is idle now.
async fn used_connection(url: &str, token: &str) -> anyhow::Result<KeptConnection> {
    let mut connection = KeptConnection::open(url, token).await?;
    let refused = connection.call("no.such.method", json!({})).await;
    let is_expected = refused.as_ref().is_err_and(|error| error.to_string().contains("does not exist"));
    ensure!(is_expected, "unexpected answer to an unknown method: {refused:?}");
    Ok(connection)
}

/// Requests a permit that nobody answers. Returns only with an error.
async fn hold(mut connection: KeptConnection, number: usize) -> anyhow::Result<()> {
    let answer = connection.call("loopback.permit", permit(&format!("toolu_held_{number}"))).await?;
    anyhow::bail!("an open permit was answered: {answer}")
}

fn permit(tool_use_id: &str) -> Value {
    json!({"tool_name": "Bash", "input": {"command": "ls"}, "tool_use_id": tool_use_id})
}

/// The agent whose permits are answered, its decider, and the stream of new approvals.
struct Probe {
    agent: Option<KeptConnection>,
    decider: KeptConnection,
    approvals: mpsc::UnboundedReceiver<Value>,
    next: usize,
}

impl Probe {
    async fn start(hub: &HubProcess, token: &str) -> anyhow::Result<Self> {
        let mut listener = Listener::open(hub.url(), "/events", &hub.token()?, None).await?;
        let (published, approvals) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            // Ends with the hub or with the probe.
            while let Ok(Some(event)) = listener.next().await {
                if let Some(approval) = requested_approval(&event.data)
                    && published.send(approval).is_err()
                {
                    break;
                }
            }
        });
        let agent = Some(KeptConnection::open(hub.url(), token).await?);
        let decider = KeptConnection::open(hub.url(), &hub.token()?).await?;
        Ok(Self { agent, decider, approvals, next: 0 })
    }

    async fn next_approval(&mut self) -> anyhow::Result<Value> {
        let next = tokio::time::timeout(LIMIT, self.approvals.recv()).await;
        next.context("a permit was not published")?.context("the stream of events ended")
    }

    /// Requests and answers this many permits. Returns the time of each answer.
    async fn decide(&mut self, decisions: usize) -> anyhow::Result<Vec<Duration>> {
        let mut times = Vec::new();
        for _ in 0..decisions {
            let tool_use_id = format!("toolu_probe_{}", self.next);
            self.next += 1;
            let mut agent = self.agent.take().context("the agent waits for no other answer")?;
            let request = permit(&tool_use_id);
            let answered = tokio::spawn(async move {
                let answer = agent.call("loopback.permit", request).await?;
                anyhow::Ok((agent, answer, Instant::now()))
            });
            let approval = self.next_approval().await?;
            ensure!(approval["tool_use_id"] == tool_use_id, "another permit was published: {approval}");
            let sent = Instant::now();
            let allow = json!({"approval_id": approval["id"], "approve": true});
            tokio::time::timeout(LIMIT, self.decider.call("loopback.respond", allow)).await??;
            let (agent, answer, at) = tokio::time::timeout(LIMIT, answered).await???;
            ensure!(answer["behavior"] == "allow", "not allowed: {answer}");
            self.agent = Some(agent);
            times.push(at.saturating_duration_since(sent));
        }
        Ok(times)
    }
}
