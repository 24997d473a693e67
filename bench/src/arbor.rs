//! A long conversation compared with one of a tenth of its length: appending to it, reading it page by page, and reading one page from its
//! middle. Reading all of it may take time in proportion. One page and one more node must take about the same time.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use plexus_protocol::arbor::Role;
use plexus_protocol::{NodeId, SessionName};
use plexus_store::{Arbor as _, Change, Durability, Ledger as _, NodeRow, SqliteStore, samples};
use serde_json::json;

/// The number of nodes in a page.
const PAGE: u64 = 1000;
/// The number of nodes per commit. With very many, SQLite's rollback data would be half of the measured time.
const PER_COMMIT: u64 = 50;
/// The largest ratio: for the whole conversation in proportion to its length, and for a page or one more node at ten times the depth.
const GOAL: f64 = 2.0;

#[derive(Args)]
pub(crate) struct ArborArgs {
    /// Length of the longer conversation
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(20_000..))]
    nodes: u64,
}

/// The times for one conversation.
struct Taken {
    node: Duration,
    whole: Duration,
    page: Duration,
}

#[expect(clippy::print_stdout, reason = "a benchmark prints its results")]
pub(crate) async fn run(args: &ArborArgs) -> anyhow::Result<ExitCode> {
    let dir = tempfile::tempdir()?;
    let store = SqliteStore::open(&dir.path().join("db"), Durability::Normal)?;
    let short = measured(&store, "short", args.nodes / 10).await?;
    let long = measured(&store, "long", args.nodes).await?;
    let in_proportion = long.whole.as_secs_f64() / short.whole.as_secs_f64() / 10.0;
    let deeper = long.page.as_secs_f64() / short.page.as_secs_f64();
    let growing = long.node.as_secs_f64() / short.node.as_secs_f64();
    println!("a conversation of {} nodes, compared with one of {}", args.nodes, args.nodes / 10);
    println!(
        "  add a node: {:?}, compared with {:?}: {growing:.2} × (goal: at most {GOAL})",
        long.node, short.node
    );
    println!(
        "  read all of it: {:?}, compared with {:?}: {in_proportion:.2} × in proportion (goal: at most \
         {GOAL})",
        long.whole, short.whole
    );
    println!(
        "  read a page from the middle: {:?}, compared with {:?}: {deeper:.2} × (goal: at most {GOAL})",
        long.page, short.page
    );
    let good = [in_proportion, deeper, growing].iter().all(|times| *times <= GOAL);
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn measured(store: &SqliteStore, name: &str, nodes: u64) -> anyhow::Result<Taken> {
    let begun = Instant::now();
    let head = grown(store, name, nodes).await?;
    let node = begun.elapsed().div_f64(nodes as f64);
    let begun = Instant::now();
    let mut read = 0;
    while read <= nodes {
        let page = store.path(head, read, PAGE).await?;
        anyhow::ensure!(!page.is_empty(), "the path ends at {read}");
        read += page.len() as u64;
    }
    let whole = begun.elapsed();
    let begun = Instant::now();
    for i in 0..100 {
        anyhow::ensure!(store.path(head, nodes / 2 + i, 10).await?.len() == 10);
    }
    Ok(Taken { node, whole, page: begun.elapsed() / 100 })
}

/// Creates a session with this many nodes. Returns its head.
async fn grown(store: &SqliteStore, name: &str, nodes: u64) -> anyhow::Result<NodeId> {
    let new = samples::session(SessionName::try_from(name.to_owned()).map_err(anyhow::Error::msg)?);
    let (session, tree, mut head) = (new.id, new.tree, new.head);
    store.commit(0, vec![Change::CreateSession(Box::new(new))]).await?;
    for part in 0..nodes / PER_COMMIT {
        let mut changes = Vec::new();
        for i in 0..PER_COMMIT {
            let content = json!([{"type": "text", "text": format!("What is said as number {}.", part * PER_COMMIT + i)}]);
            let (id, parent) = (NodeId::random(), head);
            let node = NodeRow { id, tree, parent, role: Role::Assistant, content, turn: 1, uuid: None };
            head = id;
            changes.push(Change::AddNode(session, Arc::new(node)));
        }
        store.commit(0, changes).await?;
    }
    Ok(head)
}
