//! Decisions per second of several hubs. Agents outside the hubs request permits on each of them. One listener, on the first hub, sees the approvals of all
//! hosts, as an open console does. Deciders answer them on the host of the agent, or all on the first one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use plexus_testkit::rpc::Listener;
use serde_json::Value;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;

use super::machines::Machines;
use crate::decisions::over_http::{answer, request};
use crate::hub_client::next_approval;
use crate::kept_connection::KeptConnection;
use crate::outside_agent;
use crate::processor_time::Stopwatch;

/// Where approvals are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnsweredOn {
    /// The host of the agent.
    OwnHost,
    /// The first host, whichever has the agent.
    FirstHost,
}

/// A measurement.
pub(super) struct Measured {
    /// Decisions per second.
    pub(super) rate: f64,
    /// The milliseconds of processor time per decision, in all processes together.
    pub(super) processor_ms: f64,
}

/// Measures this many clients, which are spread over the hubs.
pub(super) async fn measure(
    machines: &Machines,
    answered_on: AnsweredOn,
    clients: usize,
    decisions: usize,
) -> anyhow::Result<Measured> {
    let first = &machines.all.first().context("a hub")?.hub;
    let mut deciders = JoinSet::new();
    let (mut tokens, mut requested) = (Vec::new(), HashMap::new());
    for machine in &machines.all {
        let hub = &machine.hub;
        let answering = if answered_on == AnsweredOn::OwnHost { hub } else { first };
        let (of_host, to_decide) = mpsc::unbounded_channel();
        requested.insert(machine.name.clone(), of_host);
        let to_decide = Arc::new(Mutex::new(to_decide));
        for _ in 0..clients.div_ceil(machines.all.len()) {
            // Names are unique among all hosts.
            let client = tokens.len();
            tokens.push((hub.url(), outside_agent::token(hub, machine.dir.path(), client).await?));
            let connection = KeptConnection::open(answering.url(), &answering.token()?).await?;
            deciders.spawn(answer(connection, Arc::clone(&to_decide)));
        }
    }
    let listener = Listener::open(first.url(), "/events", &first.token()?, None).await?;
    deciders.spawn(listen(listener, requested));
    let processor = Stopwatch::start()?;
    let started = Instant::now();
    let mut agents = JoinSet::new();
    let each = decisions / tokens.len();
    for (url, token) in tokens {
        let connection = KeptConnection::open(url, &token).await?;
        agents.spawn(request(connection, each));
    }
    let mut made = 0;
    while !agents.is_empty() {
        tokio::select! {
            Some(done) = agents.join_next() => made += done??,
            // They end only if they fail.
            Some(failed) = deciders.join_next() => failed??,
        }
    }
    let rate = made as f64 / started.elapsed().as_secs_f64();
    Ok(Measured { rate, processor_ms: processor.ms_per(made)? })
}

/// Passes the ids of new approvals to the deciders of their hosts.
async fn listen(
    mut listener: Listener,
    requested: HashMap<String, mpsc::UnboundedSender<Value>>,
) -> anyhow::Result<()> {
    loop {
        let mut approval = next_approval(&mut listener).await?;
        let host = approval["host"].as_str().and_then(|host| requested.get(host)).context("a host")?;
        host.send(approval["id"].take())?;
    }
}
