//! What listeners cost. First, the delay of each event of one child at its listeners, with one listener and with many. Second, whether many
//! listeners delay the child: the time in which it writes its events, by its own clock, with many listeners and with none. Every listener
//! must receive every event once and in order.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Args;
use plexus_testkit::hub_process::HubProcess;
use plexus_testkit::rpc::{Listener, Rpc};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::bench_dir;
use crate::figures::Figures;
use crate::hub_client::{self, now_ns};
use crate::report::{Report, Threshold, median_of, progress};

#[derive(Args)]
pub(crate) struct FanOutArgs {
    /// Number of listeners
    #[arg(long, default_value_t = 100)]
    listeners: usize,

    /// Number of events whose delay is measured, per round
    #[arg(long, default_value_t = 500)]
    timed_events: usize,

    /// Milliseconds between these events
    #[arg(long, default_value_t = 20)]
    every_ms: u64,

    /// Number of events that the child writes as fast as it can, per round
    #[arg(long, default_value_t = 50_000)]
    events: usize,

    /// Number of alternations
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// Events of a block: with the default pace, two seconds. A stall of the disk affects few blocks.
const BLOCK: usize = 100;
/// The time limit of one turn with all its listeners.
const LIMIT: Duration = Duration::from_secs(120);

pub(crate) async fn run(args: &FanOutArgs) -> anyhow::Result<ExitCode> {
    let many = args.listeners;
    let mut report = Report::new(
        "fan-out",
        &format!("Events of one child, with 1 and with {many} listeners on its event stream"),
        &format!(
            "other children, a network, and the first session of a hub. A delay is the time from the agent's clock, read just before it writes an event, until a \
             listener has received the event, with the journal and a durable commit between them. One event is written every {} ms. \
             The listeners are tasks of one process that shares the machine's cores with the hub, so the last listener's delay \
             includes the work of the others. The last bar of the plot shows how long a bare sync of the same disk takes at the same pace. To exclude stalls of the disk, the goal \
             compares the medians of the 99th percentiles of {BLOCK} events each. The plot shows the 99th percentiles of all events.",
            args.every_ms
        ),
    );
    let dir = bench_dir::on_a_disk()?;
    let hub = bench_dir::start_hub(dir.path(), "durability = \"full\"\n").await?;
    let step = json!({"clock": {"events": args.timed_events, "every_ms": args.every_ms}});
    let clock = Script { step, events: args.timed_events };
    let step = json!({"flood": {"events": args.events, "bytes": 100}});
    let flood = Script { step, events: args.events };
    // In some runs, events of a hub's first session were late by hundreds of milliseconds, which would be compared as one listener's.
    one_turn(&hub, dir.path(), "first", &Script { step: json!({"say": "ready"}), events: 1 }, 1).await?;
    let (mut at_one, mut at_many) = (Vec::new(), Vec::new());
    let (mut alone, mut followed, mut syncs) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..args.rounds {
        progress(&format!("round {} of {}", round + 1, args.rounds));
        let turn = async |name: &str, script: &Script, listeners| {
            let name = format!("{name}-{round}");
            let turn = one_turn(&hub, dir.path(), &name, script, listeners);
            tokio::time::timeout(LIMIT, turn).await.with_context(|| format!("{name} took too long"))?
        };
        at_one.push(turn("one", &clock, 1).await?.delays);
        at_many.push(turn("many", &clock, many).await?.delays);
        syncs.extend(disk_syncs(dir.path(), args.timed_events, Duration::from_millis(args.every_ms)).await?);
        alone.push(turn("alone", &flood, 0).await?.child);
        followed.push(turn("followed", &flood, many).await?.child);
    }
    report.times("delay of an event, 1 listener", &Figures::of(at_one.concat().concat())).baseline();
    report.times(format!("delay of an event, {many} listeners"), &Figures::of(at_many.concat().concat()));
    report
        .times(format!("the child writes {} events, no listener", args.events), &Figures::of(alone.clone()))
        .baseline();
    report.times(
        format!("the child writes {} events, {many} listeners", args.events),
        &Figures::of(followed.clone()),
    );
    report.times("a write and a sync of the same disk, without Plexus", &Figures::of(syncs)).baseline();
    let delays: Vec<f64> = at_many
        .iter()
        .zip(&at_one)
        .map(|(many, one)| median_block_p99(many) / median_block_p99(one))
        .collect();
    report.goal(
        format!("p99 delay of an event, median of blocks, {many} listeners compared with 1"),
        "×",
        &delays,
        Threshold::AtMost(2.0),
    );
    let times: Vec<f64> = followed
        .iter()
        .zip(&alone)
        .map(|(with, without)| with.as_secs_f64() / without.as_secs_f64())
        .collect();
    report.goal(
        format!("the child's time, {many} listeners compared with none"),
        "×",
        &times,
        Threshold::AtMost(1.5),
    );
    report.finish()
}

/// The 99th percentile of a block of events at all listeners; the median of all blocks.
fn median_block_p99(delays: &[Vec<Duration>]) -> f64 {
    let p99 = |block: &[Vec<Duration>]| Figures::of(block.concat()).p99.as_secs_f64();
    median_of(&delays.chunks(BLOCK).map(p99).collect::<Vec<f64>>())
}

/// The times of as many syncs of a file that grows, at the same pace.
async fn disk_syncs(dir: &Path, count: usize, every: Duration) -> anyhow::Result<Vec<Duration>> {
    let path = dir.join("syncs");
    let syncs = tokio::task::spawn_blocking(move || -> anyhow::Result<_> {
        let mut file = std::fs::File::create(path)?;
        let mut times = Vec::new();
        for _ in 0..count {
            std::thread::sleep(every);
            times.push(bench_dir::bare_sync(&mut file)?);
        }
        Ok(times)
    });
    syncs.await?
}

/// A step of the scripted agent, and the number of texts that it writes.
struct Script {
    step: Value,
    events: usize,
}

/// The measurements of one turn.
struct Turn {
    /// The delays of each event with a clock, one per listener.
    delays: Vec<Vec<Duration>>,
    /// The child's own measurement of its turn.
    child: Duration,
}

async fn one_turn(
    hub: &HubProcess,
    dir: &Path,
    name: &str,
    script: &Script,
    listeners: usize,
) -> anyhow::Result<Turn> {
    let rpc = Rpc::new(hub.url(), &hub.token()?);
    let create = json!({"name": name, "working_dir": dir.join("work")});
    let session = hub_client::create(&rpc, create).await?;
    let mut listening = JoinSet::new();
    for _ in 0..listeners {
        let path = format!("/sessions/{session}/events");
        listening.spawn(listen(Listener::open(hub.url(), &path, &hub.token()?, None).await?));
    }
    let prompt = json!({"steps": [script.step]}).to_string();
    rpc.call("claudecode.chat_async", json!({"session_id": session, "prompt": prompt})).await?;
    let mut delays: Vec<Vec<Duration>> = Vec::new();
    while let Some(received) = listening.join_next().await {
        let Received { delays: own, count } = received??;
        ensure!(count > script.events, "a listener received {count} events");
        ensure!(own.is_empty() || own.len() == script.events, "a listener received {} clocks", own.len());
        delays.resize(own.len(), Vec::new());
        for (event, delay) in delays.iter_mut().zip(own) {
            event.push(delay);
        }
    }
    hub_client::until_complete(&rpc, ("session_id", &session)).await?;
    rpc.call("claudecode.stop", json!({"session_id": session})).await?;
    Ok(Turn { delays, child: child_time(hub, &session)? })
}

/// The child's own measurement of its turn.
fn child_time(hub: &HubProcess, session: &str) -> anyhow::Result<Duration> {
    let journal = hub.data_dir().join("sessions").join(session).join("runs/1/journal.jsonl");
    let journal = std::fs::read_to_string(journal)?;
    let result = journal.lines().rev().find(|line| line.contains("duration_ms")).context("a result")?;
    let result: Value = serde_json::from_str(result)?;
    Ok(Duration::from_millis(result["duration_ms"].as_u64().context("a duration")?.max(1)))
}

/// What one listener received.
struct Received {
    delays: Vec<Duration>,
    count: usize,
}

/// Reads a turn to its end. Each event must have the next number.
async fn listen(mut listener: Listener) -> anyhow::Result<Received> {
    let (mut delays, mut count) = (Vec::new(), 0);
    loop {
        let event = listener.next().await?.context("the stream ended")?;
        let at = now_ns();
        let id = event.id.context("every event has an id")?;
        ensure!(id == format!("1-{count}"), "event {id} arrived after {count} events");
        count += 1;
        if let Some(written) = clock_of(&event.data) {
            delays.push(Duration::from_nanos(at.saturating_sub(written)));
        }
        if event.data.contains(r#""type":"complete""#) {
            return Ok(Received { delays, count });
        }
    }
}

/// The clock in the text of an event. A complete JSON parser in each listener would take cores away from the hub.
fn clock_of(data: &str) -> Option<u64> {
    let (_, after) = data.split_once(r#""type":"content""#)?;
    let (_, text) = after.split_once(r#""text":""#)?;
    text.split_once('"')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_of_one_block_does_not_change_the_usual_delay() {
        let ms = |ms: u64| vec![Duration::from_millis(ms)];
        let mut delays: Vec<_> = (0..3 * BLOCK as u64).map(|_| ms(2)).collect();
        delays[10..60].fill(ms(900));
        assert_eq!(median_block_p99(&delays), 0.002);
    }

    #[test]
    fn only_a_text_of_digits_is_a_clock() {
        let event =
            |text: &str| format!(r#"{{"turn":1,"seq":2,"event":{{"type":"content","text":"{text}"}}}}"#);
        assert_eq!(clock_of(&event("123456")), Some(123_456));
        assert_eq!(clock_of(&event("7xxx")), None);
        assert_eq!(clock_of(r#"{"event":{"type":"complete"}}"#), None);
    }
}
