//! A hub process. Each client is an agent outside the hub that requests permits over `/rpc`, and a decider that answers them. One event stream
//! tells the deciders what is requested.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use plexus_store::Durability;
use plexus_testkit::rpc::Listener;
use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;

use crate::bench_dir::{self, setting};
use crate::decisions::Measured;
use crate::hub_client::next_approval;
use crate::kept_connection::KeptConnection;
use crate::outside_agent;
use crate::processor_time::Stopwatch;

/// Measures this many clients.
pub(super) async fn measure(
    durability: Durability,
    clients: usize,
    decisions: usize,
) -> anyhow::Result<Measured> {
    let dir = bench_dir::on_a_disk()?;
    let config = format!("durability = \"{}\"\n", setting(durability));
    let hub = bench_dir::start_hub(dir.path(), &config).await?;
    let mut tokens = Vec::new();
    for client in 0..clients {
        tokens.push(outside_agent::token(&hub, dir.path(), client).await?);
    }
    let listener = Listener::open(hub.url(), "/events", &hub.token()?, None).await?;
    let (requested, to_decide) = mpsc::unbounded_channel();
    let to_decide = Arc::new(Mutex::new(to_decide));
    let listening = tokio::spawn(listen(listener, requested));
    let mut deciders = JoinSet::new();
    for _ in 0..clients {
        let connection = KeptConnection::open(hub.url(), &hub.token()?).await?;
        deciders.spawn(answer(connection, Arc::clone(&to_decide)));
    }
    let processor = Stopwatch::start()?;
    let started = Instant::now();
    let mut agents = JoinSet::new();
    for token in tokens {
        let connection = KeptConnection::open(hub.url(), &token).await?;
        agents.spawn(request(connection, decisions / clients));
    }
    let mut made = 0;
    while let Some(done) = agents.join_next().await {
        made += done??;
    }
    let rate = made as f64 / started.elapsed().as_secs_f64();
    let processor_ms = processor.ms_per(made)?;
    listening.abort();
    deciders.abort_all();
    Ok(Measured { rate, processor_ms })
}

/// Reads the ids of new approvals.
async fn listen(mut listener: Listener, requested: mpsc::UnboundedSender<Value>) -> anyhow::Result<()> {
    loop {
        requested.send(next_approval(&mut listener).await?["id"].take())?;
    }
}

pub(crate) async fn answer(
    mut connection: KeptConnection,
    requested: Arc<Mutex<mpsc::UnboundedReceiver<Value>>>,
) -> anyhow::Result<()> {
    loop {
        let id = requested.lock().await.recv().await.context("the listener ended")?;
        let answered =
            connection.call("loopback.respond", json!({"approval_id": id, "approve": true})).await?;
        ensure!(answered["type"] == "ok", "not accepted: {answered}");
    }
}

pub(crate) async fn request(mut connection: KeptConnection, permits: usize) -> anyhow::Result<usize> {
    for number in 0..permits {
        let permit = json!({"tool_name": "Bash", "input": {"command": "ls"}, "tool_use_id": format!("toolu_{number}")});
        let decision = connection.call("loopback.permit", permit).await?;
        ensure!(decision["behavior"] == "allow", "not allowed: {decision}");
    }
    Ok(permits)
}
