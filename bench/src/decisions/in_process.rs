//! The approval book, without a hub around it.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use plexus_book::{Book, Commits, Meter, Resolved, now};
use plexus_protocol::{ApprovalStatus, SessionName};
use plexus_store::{Change, Committed, Durability, Ledger, RunKey, RunState, SqlStore, StoreError, samples};
use tokio::task::JoinSet;

use crate::bench_dir;
use crate::decisions::Measured;
use crate::processor_time::Stopwatch;

/// Measures nothing.
struct NoMeter;

impl Meter for NoMeter {
    fn committed(&self, _after: Duration, _outcome: &Result<Committed, StoreError>) {}

    fn hold(&self) -> Box<dyn Any + Send> {
        Box::new(())
    }
}

/// Measures this many clients, each with a session of its own.
pub(super) async fn measure(
    durability: Durability,
    clients: usize,
    decisions: usize,
) -> anyhow::Result<Measured> {
    let dir = bench_dir::on_a_disk()?;
    let store = Arc::new(SqlStore::sqlite(&dir.path().join("plexus.db"), durability)?);
    let commits = Arc::new(Commits::new(Arc::clone(&store) as Arc<dyn Ledger>, Arc::new(NoMeter)));
    let book = Arc::new(Book::new(Arc::clone(&commits)));
    let observer = Arc::downgrade(&book);
    let publisher = Arc::downgrade(&commits);
    store.observe(Box::new(move |committed| {
        if let (Some(book), Some(commits)) = (observer.upgrade(), publisher.upgrade()) {
            committed.approvals.iter().for_each(|row| book.note_deadline(row));
            commits.publish(committed);
        }
    }));
    let mut sessions = Vec::new();
    for client in 0..clients {
        let name = SessionName::try_from(format!("client-{client}")).map_err(anyhow::Error::msg)?;
        let new = samples::session(name.clone());
        let key = RunKey { session: new.id, run: 1 };
        let turn = Change::StartTurn { session: new.id, turn: 1, prompt: String::new(), woken_to: None };
        let run = Change::StartRun { key, state: RunState::Starting, token_hash: None };
        commits.commit(vec![Change::CreateSession(Box::new(new)), run, turn]).await?;
        sessions.push((key, name));
    }
    let processor = Stopwatch::start()?;
    let started = Instant::now();
    let mut clients = JoinSet::new();
    for (key, name) in sessions.iter().cloned() {
        let share = decisions / sessions.len();
        clients.spawn(decide(Arc::clone(&book), Arc::clone(&commits), key, name, share));
    }
    let mut made = 0;
    while let Some(done) = clients.join_next().await {
        made += done??;
    }
    let rate = made as f64 / started.elapsed().as_secs_f64();
    Ok(Measured { rate, processor_ms: processor.ms_per(made)? })
}

async fn decide(
    book: Arc<Book>,
    commits: Arc<Commits>,
    key: RunKey,
    name: SessionName,
    decisions: usize,
) -> anyhow::Result<usize> {
    for number in 0..decisions {
        let new = samples::approval(key, name.clone(), &format!("toolu_{number}"), now());
        let id = new.approval.id;
        commits.commit(vec![Change::Ask(Box::new(new))]).await?;
        let resolve = book.resolve(id, ApprovalStatus::Allowed, samples::allow(), Vec::new());
        let (released, resolved) = tokio::join!(book.answer_of(id), resolve);
        ensure!(matches!(resolved?, Resolved::Now(_)), "another answer came first");
        let released = released.context("the approval exists")?;
        ensure!(released.approval.status == ApprovalStatus::Allowed, "not allowed");
    }
    Ok(decisions)
}
