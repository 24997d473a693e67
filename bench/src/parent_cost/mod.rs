//! The cost of supervision for a parent agent: the bytes and tokens that it reads while a child makes many tool calls, compared with the
//! child's own stream-json output in the same run.

mod child;
mod supervise;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Args;
use plexus_claude::TESTED_VERSIONS;
use plexus_testkit::claude;

use crate::bench_dir;
use crate::parent_cost::child::Child;
use crate::parent_cost::supervise::{Supervised, Way, supervise};
use crate::report::{Report, Threshold, progress};

/// The time limit for one child.
const LIMIT: Duration = Duration::from_secs(300);

/// The ways to supervise, and the largest share of the stream-json output in percent.
const WAYS: &[(Way, Threshold)] = &[
    (Way::Wait, Threshold::AtMost(5.0)),
    (Way::Poll { max_bytes: 200 }, Threshold::AtMost(10.0)),
    (Way::Poll { max_bytes: 8192 }, Threshold::None),
];

#[derive(Args)]
pub(crate) struct ParentCostArgs {
    /// Tool calls of the child
    #[arg(long, default_value_t = 100)]
    calls: usize,

    /// Number of runs of each way
    #[arg(long, default_value_t = 1)]
    rounds: usize,

    /// Version of Claude Code; default: the newest that is tested
    #[arg(long)]
    cli: Option<String>,
}

/// A measure of a text.
#[derive(Debug, Clone, Copy)]
enum Unit {
    Bytes,
    Tokens,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Tokens => "tokens",
        }
    }

    fn size(self, text: &str) -> f64 {
        let size = match self {
            Self::Bytes => text.len(),
            Self::Tokens => bpe_openai::o200k_base().count(text),
        };
        size as f64
    }
}

/// The cost of one run.
struct Cost {
    supervised: Supervised,
    /// The child's stream-json output.
    output: String,
}

pub(crate) async fn run(args: &ParentCostArgs) -> anyhow::Result<ExitCode> {
    let newest = TESTED_VERSIONS.last().copied().unwrap_or_default();
    let version = args.cli.as_deref().unwrap_or(newest);
    let program = claude(version).with_context(|| format!("Claude Code {version} is not in the cache"))?;
    let mut costs: Vec<Vec<Cost>> = WAYS.iter().map(|_| Vec::new()).collect();
    for round in 0..args.rounds {
        for ((way, _), costs) in WAYS.iter().zip(&mut costs) {
            progress(&format!("round {} of {}: {way}", round + 1, args.rounds));
            let measured = tokio::time::timeout(LIMIT, measure(&program, args.calls, *way)).await;
            costs.push(measured.with_context(|| format!("{way}: the child is too slow"))??);
        }
    }
    report(args.calls, version, &costs).finish()
}

async fn measure(claude: &Path, calls: usize, way: Way) -> anyhow::Result<Cost> {
    let dir = bench_dir::on_a_disk()?;
    let child = Child::prepare(claude.to_owned(), dir.path(), calls).await?;
    let supervised = supervise(&child, way).await?;
    let output = child.stream_json(&supervised.session)?;
    let results = output.matches(r#""type":"tool_result""#).count();
    ensure!(results == calls, "{results} of {calls} calls have a result");
    Ok(Cost { supervised, output })
}

fn report(calls: usize, version: &str, costs: &[Vec<Cost>]) -> Report {
    let approvals = costs.iter().flatten().map(|cost| cost.supervised.approvals).max().unwrap_or_default();
    let mut report = Report::new(
        "parent-cost",
        &format!(
            "What a parent agent reads while Claude Code {version} makes {calls} tool calls (read a file of 9 KB, edit it, run tests that print 2 KB) with {approvals} approvals"
        ),
        "the list of the hub's tools, the JSON-RPC and MCP envelopes, the parent's own thinking, and approvals that escalate. The share \
         depends on the sizes of files and outputs: it is larger if they are smaller. The output is the raw stream-json, with its envelopes and with the copies of files that Claude Code adds to \
         results. It has no callbacks of the gate, because a host without Plexus has none. Tokens are those of OpenAI's o200k_base: Claude's tokenizer \
         is not public.",
    );
    report.versions.push(("Claude Code".to_owned(), version.to_owned()));
    for ((way, limit), costs) in WAYS.iter().zip(costs) {
        let calls: Vec<f64> = costs.iter().map(|cost| cost.supervised.calls as f64).collect();
        report.values(format!("{way}: calls of the parent"), "calls", &calls);
        for unit in [Unit::Bytes, Unit::Tokens] {
            let of = |text: fn(&Cost) -> &str| -> Vec<f64> {
                costs.iter().map(|cost| unit.size(text(cost))).collect()
            };
            let (read, output) = (of(|cost| &cost.supervised.read), of(|cost| &cost.output));
            let written = of(|cost| &cost.supervised.written);
            let unit = unit.name();
            report.values(format!("{way}: output of the child"), unit, &output).baseline();
            report.values(format!("{way}: read by the parent"), unit, &read);
            report.values(format!("{way}: written by the parent"), unit, &written);
            let shares = read.iter().zip(&output).map(|(read, output)| read / output * 100.0);
            let what = format!("{way}: {unit} read, compared with the output");
            report.goal(what, "%", &shares.collect::<Vec<_>>(), *limit);
        }
    }
    report
}
