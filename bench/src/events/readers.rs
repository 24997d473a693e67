//! The programs that read the recording. The same fake CLI writes it for all of them: the scripted agent, which logs when it starts to
//! write. The measurement ends when the reader has the `result`. All processes use the monotonic clock of the system.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use plexus_store::Durability;
use plexus_testkit::binaries;
use plexus_testkit::rpc::{Listener, Rpc};
use serde_json::{Value, json};

use crate::bench_dir::{self, LOG, setting};
use crate::events::bare_store;
use crate::hub_client::{self, now_ns};
use crate::peers::Sdk;
use crate::processor_time::Stopwatch;

/// The time limit for reading the recording once.
const LIMIT: Duration = Duration::from_secs(300);

/// The events of a line of the recording.
const RECORDED: [&str; 3] = [r#""type":"content""#, r#""type":"tool_use""#, r#""type":"tool_result""#];

/// A program that reads the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Reader {
    Plexus(Durability),
    Sdk(Sdk),
    /// SQLite alone: it parses the lines and inserts them, in one thread.
    BareStore,
}

impl fmt::Display for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plexus(durability) => write!(f, "Plexus, {}", setting(*durability)),
            Self::Sdk(sdk) => sdk.fmt(f),
            Self::BareStore => f.write_str("SQLite alone"),
        }
    }
}

/// A measurement.
pub(super) struct Measured {
    /// Lines of the recording per second.
    pub(super) rate: f64,
    /// The milliseconds of processor time per line, in all processes together.
    pub(super) processor_ms: f64,
}

impl Reader {
    /// Measures how fast it reads the recording.
    pub(super) async fn measure(self, recording: &Path, lines: usize) -> anyhow::Result<Measured> {
        let dir = bench_dir::on_a_disk()?;
        let prompt = json!({"steps": [{"replay": recording}]}).to_string();
        let reading = async {
            match self {
                Self::Plexus(durability) => listen(dir.path(), durability, &prompt).await,
                Self::Sdk(sdk) => read_with(sdk, dir.path(), &prompt).await,
                Self::BareStore => store(dir.path().to_owned(), recording.to_owned()).await,
            }
        };
        let Read { count, start_ns, end_ns, processor_ms } =
            tokio::time::timeout(LIMIT, reading).await.with_context(|| format!("{self}: too slow"))??;
        ensure!(count == lines, "{self}: {count} events instead of {lines}");
        let taken = end_ns.checked_sub(start_ns).context("the reader ended before the CLI started")?;
        Ok(Measured { rate: lines as f64 / Duration::from_nanos(taken).as_secs_f64(), processor_ms })
    }
}

/// What a reader has read.
struct Read {
    /// The number of lines of the recording.
    count: usize,
    /// The monotonic clock at which the fake CLI started to write, or the reader to read.
    start_ns: u64,
    /// The monotonic clock at the end.
    end_ns: u64,
    /// The processor time per line from the start to the end, in milliseconds. It is measured only for Plexus.
    processor_ms: f64,
}

/// The monotonic clock at which the fake CLI started to write.
fn start_ns(dir: &Path) -> anyhow::Result<u64> {
    let log = std::fs::read_to_string(dir.join(LOG)).context("the log of the fake CLI")?;
    let entry: Value = serde_json::from_str(log.lines().next().context("the fake CLI did not start")?)?;
    entry["at_ns"].as_u64().context("no time in the log of the fake CLI")
}

/// Reads the turn as an SSE listener of a hub.
async fn listen(dir: &Path, durability: Durability, prompt: &str) -> anyhow::Result<Read> {
    let hub = bench_dir::start_hub(dir, &format!("durability = \"{}\"\n", setting(durability))).await?;
    let rpc = Rpc::new(hub.url(), &hub.token()?);
    let create = json!({"name": "reader", "working_dir": dir.join("work")});
    let session = hub_client::create(&rpc, create).await?;
    let path = format!("/sessions/{session}/events");
    let mut listener = Listener::open(hub.url(), &path, &hub.token()?, None).await?;
    let processor = Stopwatch::start()?;
    rpc.call("claudecode.chat_async", json!({"session_id": session, "prompt": prompt})).await?;
    let (mut count, mut number) = (0, 0);
    loop {
        let event = listener.next().await?.context("the stream ended")?;
        let id = event.id.context("every event has an id")?;
        ensure!(id == format!("1-{number}"), "event {id} arrived after {number} events");
        number += 1;
        count += usize::from(RECORDED.iter().any(|kind| event.data.contains(kind)));
        ensure!(!event.data.contains(r#""type":"error""#), "the turn failed: {}", event.data);
        if event.data.contains(r#""type":"complete""#) {
            let (end_ns, processor_ms) = (now_ns(), processor.ms_per(count)?);
            return Ok(Read { count, start_ns: start_ns(dir)?, end_ns, processor_ms });
        }
    }
}

/// Reads the turn with an SDK.
async fn read_with(sdk: Sdk, dir: &Path, prompt: &str) -> anyhow::Result<Read> {
    for folder in ["home", "work"] {
        std::fs::create_dir(dir.join(folder))?;
    }
    let argument = json!({
        "claude": binaries::scripted_agent()?, "cwd": dir.join("work"), "prompt": prompt,
        "env": {"SCRIPTED_AGENT_LOG": dir.join(LOG)},
    });
    // Scripted agents use no model.
    let printed = sdk.run("read_events", &argument, &dir.join("home"), "http://127.0.0.1:1").await?;
    let read: Value = serde_json::from_str(printed.trim()).with_context(|| printed.clone())?;
    let count = read["messages"].as_u64().and_then(|count| usize::try_from(count).ok());
    let end_ns = read["end_ns"].as_str().and_then(|end| end.parse().ok());
    let (count, end_ns) = count.zip(end_ns).context("no count or no time")?;
    Ok(Read { count, start_ns: start_ns(dir)?, end_ns, processor_ms: f64::NAN })
}

/// Reads the recording itself, and stores it.
async fn store(dir: PathBuf, recording: PathBuf) -> anyhow::Result<Read> {
    let start_ns = now_ns();
    let count = tokio::task::spawn_blocking(move || bare_store::parse_and_insert(&dir, &recording)).await??;
    Ok(Read { count, start_ns, end_ns: now_ns(), processor_ms: f64::NAN })
}
