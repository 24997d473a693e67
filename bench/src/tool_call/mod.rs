//! The time of a tool call of a real CLI, under each way to gate it. All contenders run at the same time, and the model lets them work in
//! turn, call by call, so that each is measured under the same load. The model also takes the times, so that starting a child does not count.

mod bare_host;
mod call_model;
mod hub_host;

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Args;
use futures::future::try_join_all;
use plexus_claude::TESTED_VERSIONS;
use plexus_store::Durability;
use plexus_testkit::claude;
use serde_json::json;
use tokio::task::JoinSet;

use crate::bench_dir::{self, setting};
use crate::figures::Figures;
use crate::peers::Sdk;
use crate::report::{Report, Threshold, median_of, progress};
use crate::tool_call::bare_host::Asks;
use crate::tool_call::call_model::{CallModel, Held, created_file, prompt};
use crate::tool_call::hub_host::Channel;

/// The pause after each call, in which its contender stores its result.
const SETTLE: Duration = Duration::from_millis(10);

#[derive(Args)]
pub(crate) struct ToolCallArgs {
    /// Tool calls of each child
    #[arg(long, default_value_t = 200)]
    calls: usize,

    /// Children at once
    #[arg(long, default_value_t = 1)]
    children: usize,

    /// Number of rounds, each with new processes
    #[arg(long, default_value_t = 2)]
    rounds: usize,

    /// Version of Claude Code; default: the newest that is tested
    #[arg(long)]
    cli: Option<String>,

    /// Only contenders whose name contains this text; the instant host always runs
    #[arg(long)]
    only: Option<String>,

    /// Additional lines for the `plexus.toml` of the hubs
    #[arg(long, default_value = "")]
    config: String,
}

/// A way to run children.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Contender {
    Ungated,
    Instant,
    /// An instant host that is asked only about calls that need a permission, as the SDKs are.
    InstantPermission,
    Sdk(Sdk),
    Plexus(Channel, Durability),
    /// On the control channel, with `full` durability.
    PlexusWithoutSandbox,
}

const CONTENDERS: &[Contender] = &[
    Contender::Ungated,
    Contender::Instant,
    Contender::InstantPermission,
    Contender::Sdk(Sdk::TypeScript),
    Contender::Sdk(Sdk::Python),
    Contender::Plexus(Channel::Control, Durability::Full),
    Contender::Plexus(Channel::Control, Durability::Normal),
    Contender::Plexus(Channel::Mcp, Durability::Full),
    Contender::Plexus(Channel::Mcp, Durability::Normal),
    Contender::PlexusWithoutSandbox,
];

const FULL: Contender = Contender::Plexus(Channel::Control, Durability::Full);
const NORMAL: Contender = Contender::Plexus(Channel::Control, Durability::Normal);

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ungated => f.write_str("ungated"),
            Self::Instant => f.write_str("instant host"),
            Self::InstantPermission => f.write_str("instant host without a hook"),
            Self::Sdk(sdk) => sdk.fmt(f),
            Self::Plexus(channel, durability) => write!(f, "Plexus, {channel}, {}", setting(*durability)),
            Self::PlexusWithoutSandbox => f.write_str("Plexus without its sandbox, control, full"),
        }
    }
}

impl Contender {
    /// The contenders to compare this one with.
    fn goals(self) -> Vec<(Self, Threshold)> {
        match self {
            Self::Ungated => Vec::new(),
            Self::Instant => vec![(Self::Ungated, Threshold::None)],
            Self::InstantPermission | Self::Sdk(_) | Self::PlexusWithoutSandbox => {
                vec![(Self::Instant, Threshold::None)]
            }
            Self::Plexus(channel, _) => {
                let limit = match channel {
                    Channel::Control => 1.02,
                    Channel::Mcp => 1.04,
                };
                let mut goals = vec![
                    (Self::Instant, Threshold::AtMost(limit)),
                    (Self::Sdk(Sdk::TypeScript), Threshold::AtMost(1.0)),
                    (Self::Sdk(Sdk::Python), Threshold::AtMost(1.0)),
                ];
                if self == FULL {
                    goals.extend([(NORMAL, Threshold::None), (Self::PlexusWithoutSandbox, Threshold::None)]);
                }
                goals
            }
        }
    }
}

/// The children of one contender.
#[derive(Debug, Clone)]
struct Work {
    claude: PathBuf,
    /// A directory with `home`, `work` and `data`.
    dir: PathBuf,
    model_url: String,
    /// The numbers of the children.
    children: Range<usize>,
    /// Additional settings of a hub.
    config: String,
}

/// Call times of each contender.
type Times = HashMap<Contender, Vec<Duration>>;

pub(crate) async fn run(args: &ToolCallArgs) -> anyhow::Result<ExitCode> {
    let newest = TESTED_VERSIONS.last().copied().unwrap_or_default();
    let version = args.cli.as_deref().unwrap_or(newest);
    let claude = claude(version).with_context(|| format!("Claude Code {version} is not in the cache"))?;
    let is_chosen = |contender: &Contender| {
        // A child needs 250 MB, so with several children some contenders are left out.
        let is_small = args.children == 1
            || !matches!(
                contender,
                Contender::Ungated
                    | Contender::InstantPermission
                    | Contender::Plexus(_, Durability::Normal)
                    | Contender::PlexusWithoutSandbox
            );
        let is_wanted = args.only.as_ref().is_none_or(|only| contender.to_string().contains(only));
        *contender == Contender::Instant || (is_small && is_wanted)
    };
    let contenders: Vec<Contender> = CONTENDERS.iter().copied().filter(is_chosen).collect();
    let mut rounds = Vec::new();
    for round in 0..args.rounds {
        progress(&format!("round {} of {}: starting the children", round + 1, args.rounds));
        rounds.push(measure(&contenders, &claude, args).await?);
    }
    report(args, version, &contenders, &rounds).finish()
}

/// Runs all contenders at the same time. Their children wait at the model except when it is their contender's turn.
async fn measure(contenders: &[Contender], claude: &Path, args: &ToolCallArgs) -> anyhow::Result<Times> {
    let dir = bench_dir::on_a_disk()?;
    let mut model = CallModel::start(args.calls).await?;
    let mut hosts = JoinSet::new();
    let group = |at: usize| at * args.children..(at + 1) * args.children;
    for (at, contender) in contenders.iter().enumerate() {
        let own = dir.path().join(at.to_string());
        for folder in ["home", "work", "data"] {
            std::fs::create_dir_all(own.join(folder))?;
        }
        let work = Work {
            claude: claude.to_owned(),
            dir: own,
            model_url: model.url.clone(),
            children: group(at),
            config: args.config.clone(),
        };
        hosts.spawn(contender.run(work));
    }
    let total = contenders.len() * args.children;
    let mut waiting = HashMap::new();
    let mut times = Times::new();
    for step in 0..=args.calls {
        if step % 50 == 0 {
            progress(&format!("call {step} of {}", args.calls));
        }
        // Before the first step, and after a host has failed, requests are missing.
        while waiting.len() < total {
            let held = next(&mut model, &mut hosts).await?;
            ensure!(held.step == step, "child {} sent request {} instead of {step}", held.child, held.step);
            waiting.insert(held.child, held);
        }
        for turn in 0..contenders.len() {
            // Each contender is first in some step.
            let at = (turn + step) % contenders.len();
            let released = group(at).filter_map(|child| Some((child, waiting.remove(&child)?.release())));
            let (children, released): (Vec<usize>, Vec<_>) = released.unzip();
            let answered: HashMap<usize, Instant> =
                children.into_iter().zip(try_join_all(released).await?).collect();
            if step == args.calls {
                continue;
            }
            for _ in group(at) {
                let held = next(&mut model, &mut hosts).await?;
                let answered = answered.get(&held.child).context("another contender's turn")?;
                times
                    .entry(contenders[at])
                    .or_default()
                    .push(held.arrived.saturating_duration_since(*answered));
                waiting.insert(held.child, held);
            }
            // The contender's work after its call does not delay the next one.
            tokio::time::sleep(SETTLE).await;
        }
    }
    while let Some(ended) = hosts.join_next().await {
        ended??;
    }
    for (at, contender) in contenders.iter().enumerate() {
        for (child, call) in group(at).flat_map(|child| (0..args.calls).map(move |call| (child, call))) {
            let file = dir.path().join(at.to_string()).join("work").join(created_file(child, call));
            ensure!(file.exists(), "{contender}: call {call} of child {child} did not run");
        }
    }
    Ok(times)
}

/// The next request to the model, or the error of a host.
async fn next(model: &mut CallModel, hosts: &mut JoinSet<anyhow::Result<()>>) -> anyhow::Result<Held> {
    loop {
        tokio::select! {
            biased;
            Some(ended) = hosts.join_next() => ended??,
            held = model.next() => return held,
        }
    }
}

impl Contender {
    /// Starts its children and waits for the end of their turns.
    async fn run(self, work: Work) -> anyhow::Result<()> {
        let done = match self {
            Self::Ungated => bare_host::run(work, Asks::Nothing).await,
            Self::Instant => bare_host::run(work, Asks::EveryCall).await,
            Self::InstantPermission => bare_host::run(work, Asks::Permission).await,
            Self::Sdk(sdk) => {
                let prompts: Vec<String> = work.children.clone().map(prompt).collect();
                let argument =
                    json!({"claude": work.claude, "cwd": work.dir.join("work"), "prompts": prompts});
                sdk.run("host", &argument, &work.dir.join("home"), &work.model_url).await.map(drop)
            }
            Self::Plexus(channel, durability) => hub_host::run(&work, channel, durability).await,
            Self::PlexusWithoutSandbox => {
                let work = Work { config: format!("wall = \"off\"\n{}", work.config), ..work };
                hub_host::run(&work, Channel::Control, Durability::Full).await
            }
        };
        done.with_context(|| self.to_string())
    }
}

fn report(args: &ToolCallArgs, version: &str, contenders: &[Contender], rounds: &[Times]) -> Report {
    let name =
        if args.children == 1 { "tool-call".to_owned() } else { format!("tool-call-{}", args.children) };
    let measures = format!(
        "One Bash call of Claude Code {version} with {}: from the model's answer to the next request",
        if args.children == 1 {
            "one child".to_owned()
        } else {
            format!("{} children at once", args.children)
        }
    );
    let mut report = Report::new(
        &name,
        &measures,
        "starting a child, the model's own time, and work after the next request to the model. The SDKs start Claude Code with their own \
         arguments and decide in `canUseTool`, which Claude Code calls only for calls that its own rules do not allow; the instant host and Plexus see \
         every call. Only Plexus has a keeper and a sandbox. A rule allows the calls, so the channel carries no approval: `mcp` differs only in how \
         Claude Code is started.",
    );
    report.command = report.command.replace(&name, "tool-call");
    report.versions.push(("Claude Code".to_owned(), version.to_owned()));
    report.versions.extend(Sdk::versions());
    for contender in contenders {
        let all = rounds.iter().filter_map(|times| times.get(contender)).flatten().copied().collect();
        let row = report.times(contender.to_string(), &Figures::of(all));
        if !matches!(contender, Contender::Plexus(..) | Contender::PlexusWithoutSandbox) {
            row.baseline();
        }
    }
    for &contender in contenders {
        for (other, limit) in contender.goals() {
            if contenders.contains(&other) {
                let steps = |times: &Times, contender| {
                    times.get(&contender).map_or_else(Vec::new, |times| mean_of_steps(times, args.children))
                };
                // A call takes longer the more calls precede it, so a ratio of the medians of all steps would have more noise.
                let of_round = |times: &Times| {
                    let pairs = steps(times, contender).into_iter().zip(steps(times, other));
                    median_of(&pairs.map(|(own, other)| own / other).collect::<Vec<f64>>())
                };
                let ratios: Vec<f64> = rounds.iter().map(of_round).collect();
                report.goal(format!("{contender}, compared with {other}"), "×", &ratios, limit);
            }
        }
    }
    let elsewhere = || "`cargo xtask bench tool-call`, with one child, measures the parts.".to_owned();
    let text = parts(&report).unwrap_or_else(elsewhere);
    report.limit_of("Plexus", text);
    report
}

/// What the parts of the difference cost, if all of them were measured.
fn parts(report: &Report) -> Option<String> {
    let compared = |one: Contender, other: Contender| {
        let what = format!("{one}, compared with {other}");
        let goal = report.goals.iter().find(|goal| goal.what == what)?;
        let (from, to) = goal.range.unwrap_or((goal.value, goal.value));
        Some(format!("{:.3} × ({from:.3} to {to:.3})", goal.value))
    };
    Some(format!(
        "With the sandbox, a call on the control channel takes {} the time without it; with `full` durability, {} the time with `normal`. `cargo xtask trace` shows the stages \
         of the rest. An instant host that answers `can_use_tool` instead of a hook for every call, as the SDKs do, takes {} the time of the instant host. Plexus has to see \
         every call, so it has the cost of the hook in any comparison with the SDKs.",
        compared(FULL, Contender::PlexusWithoutSandbox)?,
        compared(FULL, NORMAL)?,
        compared(Contender::InstantPermission, Contender::Instant)?,
    ))
}

/// The mean time of each step, in which every child makes one call.
fn mean_of_steps(times: &[Duration], children: usize) -> Vec<f64> {
    let mean = |step: &[Duration]| step.iter().map(Duration::as_secs_f64).sum::<f64>() / step.len() as f64;
    times.chunks(children).map(mean).collect()
}
