//! The events per second that one reader of one child receives. Plexus reads the child's lines from its journal, parses and stores them, and
//! delivers them to an SSE listener. The Claude Agent SDKs read the same lines from the child's stdout and parse them.

mod bare_store;
mod readers;
mod recording;

use std::collections::HashMap;
use std::process::ExitCode;

use clap::Args;
use plexus_store::Durability;

use crate::bench_dir;
use crate::events::readers::{Measured, Reader};
use crate::peers::Sdk;
use crate::report::{Report, Threshold, median_of, progress, shown};

/// The goal of Plexus in events per second.
const GOAL: f64 = 50_000.0;

#[derive(Args)]
pub(crate) struct EventsArgs {
    /// Lines of the recording
    #[arg(long, default_value_t = 100_000)]
    lines: usize,

    /// Number of rounds, each with new processes
    #[arg(long, default_value_t = 3)]
    rounds: usize,

    /// Only readers whose name contains this text
    #[arg(long)]
    only: Option<String>,
}

const READERS: &[Reader] = &[
    Reader::Plexus(Durability::Full),
    Reader::Plexus(Durability::Normal),
    Reader::Sdk(Sdk::TypeScript),
    Reader::Sdk(Sdk::Python),
    Reader::BareStore,
];

/// The SDKs, and how many times faster Plexus must be.
const PEERS: &[(Sdk, f64)] = &[(Sdk::TypeScript, 2.0), (Sdk::Python, 10.0)];

pub(crate) async fn run(args: &EventsArgs) -> anyhow::Result<ExitCode> {
    let only = args.only.as_deref().unwrap_or_default();
    let readers: Vec<Reader> =
        READERS.iter().copied().filter(|reader| reader.to_string().contains(only)).collect();
    let dir = bench_dir::on_a_disk()?;
    let recording = dir.path().join("recording.jsonl");
    let bytes = recording::write(&recording, args.lines)?;
    let mut measured: HashMap<Reader, Vec<Measured>> = HashMap::new();
    for round in 0..args.rounds {
        for turn in 0..readers.len() {
            // Each reader is first in some round.
            let reader = readers[(turn + round) % readers.len()];
            progress(&format!("round {} of {}: {reader}", round + 1, args.rounds));
            measured.entry(reader).or_default().push(reader.measure(&recording, args.lines).await?);
        }
    }
    report(args.lines, bytes, &readers, &measured).finish()
}

fn report(lines: usize, bytes: u64, readers: &[Reader], measured: &HashMap<Reader, Vec<Measured>>) -> Report {
    let average = bytes.checked_div(lines as u64).unwrap_or_default();
    let mut report = Report::new(
        "events",
        &format!(
            "Events per second of one child that writes {lines} lines of {average} bytes on average as fast as it can, until one reader has all of them"
        ),
        "starting the child, and tool calls. The SDKs only parse the lines and store nothing; Plexus writes every line to the journal and every \
         event to the database before it delivers the event to another process.",
    );
    report.versions.extend(Sdk::versions());
    let of = |reader: Reader| -> Vec<f64> {
        measured.get(&reader).into_iter().flatten().map(|round| round.rate).collect()
    };
    for &reader in readers {
        let row = report.values(reader.to_string(), "/s", &of(reader));
        if !matches!(reader, Reader::Plexus(_)) {
            row.baseline();
        }
    }
    for &reader in readers.iter().filter(|reader| matches!(reader, Reader::Plexus(_))) {
        report.goal(reader.to_string(), "/s", &of(reader), Threshold::AtLeast(GOAL));
        let times: Vec<f64> =
            measured.get(&reader).into_iter().flatten().map(|round| round.processor_ms).collect();
        let (time, cores) = (median_of(&times), report.machine.cores);
        let most = cores as f64 * 1000.0 / time;
        let text = format!(
            "{reader}: an event takes {} ms of processor time in agent, keeper, hub and listener together (`/proc/stat`). {cores} busy cores would process \
             {} events per second with that. They are busy for {:.0} % of the time; one thread writes all events to the database.",
            shown(time),
            shown(most),
            median_of(&of(reader)) / most * 100.0,
        );
        report.limit_of(&reader.to_string(), text);
        for &(sdk, factor) in PEERS {
            let ratios: Vec<f64> =
                of(reader).iter().zip(of(Reader::Sdk(sdk))).map(|(own, other)| own / other).collect();
            if !ratios.is_empty() {
                report.goal(
                    format!("{reader}, compared with {sdk}"),
                    "×",
                    &ratios,
                    Threshold::AtLeast(factor),
                );
            }
        }
    }
    if readers.len() == READERS.len() {
        let needed: Vec<String> = PEERS
            .iter()
            .map(|(sdk, factor)| format!("{:.0} ({sdk})", factor * median_of(&of(Reader::Sdk(*sdk)))))
            .collect();
        let text = format!(
            "The SDKs forget an event when they have passed it on. The goals of the comparison with them need {} events per second. A program \
             that only parses the same lines and inserts them into one table of SQLite, without a child, a conversation and a listener, \
             stores {:.0} per second in one thread (`SQLite alone` in the picture).",
            needed.join(" and "),
            median_of(&of(Reader::BareStore)),
        );
        report.limit_of("compared with", text);
    }
    report
}
