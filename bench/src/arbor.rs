//! A long conversation compared with one of a tenth of its length: appending to it, reading it page by page, and reading one page from its
//! middle. Reading all of it may take time in proportion. One page and one more node must take about the same time.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use plexus_protocol::arbor::Role;
use plexus_protocol::{NodeId, SessionName};
use plexus_store::{Arbor as _, Change, Durability, Ledger as _, NodeRow, SqlStore, samples};
use serde_json::json;

use crate::bench_dir;
use crate::figures::Figures;
use crate::report::{Report, Threshold, progress};

/// The commits whose time counts, at the end of a conversation.
const TIMED_COMMITS: usize = 200;
/// How often a whole conversation is read in a round, and how often ten nodes of it.
const WHOLE_READS: usize = 7;
const SHORT_READS: u64 = 500;
/// The number of nodes in a page.
const PAGE: u64 = 1000;
/// The number of nodes per commit. With very many, SQLite's rollback data would be half of the measured time.
const PER_COMMIT: u64 = 50;
/// The largest ratio: for the whole conversation in proportion to its length, and for a page or one more node at ten times the depth.
const GOAL: Threshold = Threshold::AtMost(2.0);

#[derive(Args)]
pub(crate) struct ArborArgs {
    /// Length of the longer conversation
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(20_000..))]
    nodes: u64,

    /// Number of rounds, each with a new store
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

/// A conversation, and the times that were measured with it.
struct Conversation {
    head: NodeId,
    nodes: u64,
    /// Appending a commit of nodes.
    append: Vec<Duration>,
    /// Reading all pages.
    whole: Vec<Duration>,
    /// Reading ten nodes from the middle.
    page: Vec<Duration>,
}

/// An operation: its name, its times, and how many times longer it may take for the longer conversation before the goal counts.
type Operation = (&'static str, fn(&Conversation) -> &Vec<Duration>, f64);

const OPERATIONS: [Operation; 3] = [
    ("append 50 nodes", |conversation| &conversation.append, 1.0),
    ("read all pages", |conversation| &conversation.whole, 10.0),
    ("read 10 nodes from the middle", |conversation| &conversation.page, 1.0),
];

pub(crate) async fn run(args: &ArborArgs) -> anyhow::Result<ExitCode> {
    let (long, short) = (args.nodes, args.nodes / 10);
    let mut report = Report::new(
        "arbor",
        &format!("A conversation of {long} nodes, compared with one of {short}"),
        "the hub (the benchmark calls the store directly, with `normal` durability). All nodes are texts of one short sentence, on one path. Of the commits that \
         append, only the last 200 of each conversation count. Reads alternate between the conversations; the first of each does not count.",
    );
    let mut rounds = Vec::new();
    for round in 0..args.rounds {
        progress(&format!("round {} of {}", round + 1, args.rounds));
        let dir = bench_dir::on_a_disk()?;
        let store = SqlStore::sqlite(&dir.path().join("db"), Durability::Normal)?;
        // The first of a store is slower, so each is first in some round.
        let (mut of_short, mut of_long);
        if round % 2 == 0 {
            of_short = append(&store, "short", short).await?;
            of_long = append(&store, "long", long).await?;
        } else {
            of_long = append(&store, "long", long).await?;
            of_short = append(&store, "short", short).await?;
        }
        read(&store, [&mut of_short, &mut of_long]).await?;
        rounds.push((of_short, of_long));
    }
    for (name, times, _) in OPERATIONS {
        let all = |conversations: Vec<&Conversation>| {
            Figures::of(conversations.into_iter().flat_map(times).copied().collect())
        };
        let of_short = all(rounds.iter().map(|(short, _)| short).collect());
        report.times(format!("{name}, {short} nodes"), &of_short).baseline();
        report.times(format!("{name}, {long} nodes"), &all(rounds.iter().map(|(_, long)| long).collect()));
    }
    for (name, times, proportion) in OPERATIONS {
        let figures = |of: &Conversation| Figures::of(times(of).clone());
        let ratios: Vec<f64> =
            rounds.iter().map(|(short, long)| figures(long).ratio_to(&figures(short)) / proportion).collect();
        let per_node = if proportion > 1.0 { ", time per node" } else { "" };
        report.goal(format!("{name}{per_node}, long compared with short"), "×", &ratios, GOAL);
    }
    report.finish()
}

/// Reads both conversations in turn.
async fn read(store: &SqlStore, mut conversations: [&mut Conversation; 2]) -> anyhow::Result<()> {
    for i in 0..=WHOLE_READS {
        for conversation in &mut conversations {
            let started = Instant::now();
            read_all_pages(store, conversation).await?;
            if i > 0 {
                conversation.whole.push(started.elapsed());
            }
        }
    }
    for i in 0..=SHORT_READS {
        for conversation in &mut conversations {
            let started = Instant::now();
            let nodes = store.path(conversation.head, conversation.nodes / 2 + i, 10).await?;
            anyhow::ensure!(nodes.len() == 10);
            if i > 0 {
                conversation.page.push(started.elapsed());
            }
        }
    }
    Ok(())
}

async fn read_all_pages(store: &SqlStore, conversation: &Conversation) -> anyhow::Result<()> {
    let mut read = 0;
    while read <= conversation.nodes {
        let page = store.path(conversation.head, read, PAGE).await?;
        anyhow::ensure!(!page.is_empty(), "the path ends at {read}");
        read += page.len() as u64;
    }
    Ok(())
}

/// Creates a session with this many nodes.
async fn append(store: &SqlStore, name: &str, nodes: u64) -> anyhow::Result<Conversation> {
    let new = samples::session(SessionName::try_from(name.to_owned()).map_err(anyhow::Error::msg)?);
    let (session, tree, mut head) = (new.id, new.tree, new.head);
    store.commit(0, vec![Change::CreateSession(Box::new(new))]).await?;
    let mut times = Vec::new();
    for part in 0..nodes / PER_COMMIT {
        let mut changes = Vec::new();
        for i in 0..PER_COMMIT {
            let content = json!([{"type": "text", "text": format!("What is said as number {}.", part * PER_COMMIT + i)}]);
            let (id, parent) = (NodeId::random(), head);
            let node = NodeRow { id, tree, parent, role: Role::Assistant, content, turn: 1, uuid: None };
            head = id;
            changes.push(Change::AddNode(session, Arc::new(node)));
        }
        let started = Instant::now();
        store.commit(0, changes).await?;
        times.push(started.elapsed());
    }
    let append = times.split_off(times.len().saturating_sub(TIMED_COMMITS));
    Ok(Conversation { head, nodes, append, whole: Vec::new(), page: Vec::new() })
}
