//! The cost of the policy for a tool call: evaluation with 100 rules compared with one parse of the call's JSON from Claude Code. Both
//! alternate many times, so that they run under the same load.

use std::hint::black_box;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use clap::Args;
use plexus_policy::{Authority, Call, Level, Policy, RuleEffect, RuleEntry, VerdictEffect};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::report::{Report, Row, Threshold, median_of};

/// The largest ratio of an evaluation to a parse.
const GOAL: f64 = 5.0;

/// The number of repetitions per figure, so that the clock is not measured.
const REPETITIONS: u32 = 50;

#[derive(Args)]
pub(crate) struct PolicyArgs {
    /// Number of rules
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(20..))]
    rules: u16,

    /// Number of figures per call and round
    #[arg(long, default_value_t = 200)]
    figures: usize,

    /// Number of rounds
    #[arg(long, default_value_t = 7)]
    rounds: usize,

    /// Measure one round and print its figures as JSON
    #[arg(long, hide = true)]
    print_round: bool,
}

/// The figures of one call in one round, in microseconds.
#[derive(Serialize, Deserialize)]
struct Measured {
    name: String,
    parses: Vec<f64>,
    evaluations: Vec<f64>,
}

pub(crate) fn run(args: &PolicyArgs) -> anyhow::Result<ExitCode> {
    if args.print_round {
        return print_round(args);
    }
    let mut report = Report::new(
        "policy",
        &format!(
            "The evaluation of a call under {} rules, compared with one parse of the call's JSON",
            args.rules
        ),
        "parsing, storing and answering the call. Evaluation and parse alternate many times, so that they run under the same load. Each round is a \
         process of its own, because the time depends on its memory layout.",
    );
    let rounds = (0..args.rounds).map(|_| round_in_a_process(args)).collect::<anyhow::Result<Vec<_>>>()?;
    for (i, Measured { name, .. }) in rounds.first().into_iter().flatten().enumerate() {
        let of_call: Vec<&Measured> = rounds.iter().filter_map(|round| round.get(i)).collect();
        let all =
            |part: fn(&Measured) -> &Vec<f64>| of_call.iter().flat_map(|call| part(call).clone()).collect();
        let (parses, evaluations): (Vec<f64>, Vec<f64>) =
            (all(|call| &call.parses), all(|call| &call.evaluations));
        report.values(format!("parse of {name}"), "µs", &parses).baseline();
        report.values(name.clone(), "µs", &evaluations);
        let ratio = |call: &&Measured| median_of(&call.evaluations) / median_of(&call.parses);
        let ratios: Vec<f64> = of_call.iter().map(ratio).collect();
        report.goal(name.clone(), "×", &ratios, Threshold::AtMost(GOAL));
    }
    let text = slowest(&report);
    report.limit_of("", text);
    report.finish()
}

/// Measures a round in a new process.
fn round_in_a_process(args: &PolicyArgs) -> anyhow::Result<Vec<Measured>> {
    let mut process = Command::new(std::env::current_exe()?);
    process.args(["policy", "--print-round", "--rules", &args.rules.to_string()]);
    process.args(["--figures", &args.figures.to_string()]);
    let output = process.stderr(Stdio::inherit()).output()?;
    anyhow::ensure!(output.status.success(), "a round failed: {}", output.status);
    Ok(serde_json::from_slice(&output.stdout)?)
}

#[expect(clippy::print_stdout, reason = "another process reads it")]
fn print_round(args: &PolicyArgs) -> anyhow::Result<ExitCode> {
    println!("{}", serde_json::to_string(&round(args)?)?);
    Ok(ExitCode::SUCCESS)
}

fn round(args: &PolicyArgs) -> anyhow::Result<Vec<Measured>> {
    let dir = tempfile::tempdir()?;
    let cwd = dir.path().canonicalize()?;
    std::fs::create_dir(cwd.join("src"))?;
    std::fs::write(cwd.join("src/lib.rs"), "")?;
    let policy = Policy::new(vec![level(args.rules.into(), &cwd)?])?;
    let file = cwd.join("src/lib.rs").display().to_string();
    let measure = |(tool, input, expected): (&str, Value, VerdictEffect)| {
        let line = hook_line(tool, &input, &cwd);
        let call = Call { tool_name: tool, input: &input, cwd: &cwd, home: None, now: 0 };
        let verdict = policy.evaluate(&call);
        anyhow::ensure!(
            verdict.effect == expected,
            "{tool} {input} is {:?}: {}",
            verdict.effect,
            verdict.why
        );
        let (mut parses, mut evaluations) = (Vec::new(), Vec::new());
        for _ in 0..args.figures {
            parses.push(timed(|| black_box(serde_json::from_str::<Value>(black_box(&line)).is_ok())));
            evaluations.push(timed(|| black_box(policy.evaluate(black_box(&call)).effect == expected)));
        }
        let name = format!("{tool}, {}: {}", format!("{expected:?}").to_lowercase(), shown(&input, &cwd));
        Ok(Measured { name, parses, evaluations })
    };
    calls(&file).into_iter().map(measure).collect()
}

/// How the evaluation that takes longest differs from the others.
fn slowest(report: &Report) -> String {
    let mut evaluations: Vec<&Row> = report.rows.iter().filter(|row| !row.baseline).collect();
    evaluations.sort_by(|a, b| b.p50.total_cmp(&a.p50));
    let [slowest, next, ..] = evaluations.as_slice() else { return String::new() };
    format!(
        "The evaluation of \"{}\" takes {} µs and that of the next slowest call {} µs; the parses differ less (in the plot). The rules for commands, files and \
         hosts apply to each text in the input of an MCP tool.",
        slowest.name,
        format_args!("{:.1}", slowest.p50),
        format_args!("{:.1}", next.p50),
    )
}

/// Typical rules of a person: allowed commands, denied commands, files, hosts, tools.
fn level(count: usize, cwd: &Path) -> anyhow::Result<Level> {
    let mut rules = vec![
        (RuleEffect::Allow, "Bash(npm run test:*)".to_owned()),
        (RuleEffect::Allow, "Bash(tail:*)".to_owned()),
        (RuleEffect::Allow, "Bash(git commit:*)".to_owned()),
        (RuleEffect::Allow, "Bash(cat)".to_owned()),
        (RuleEffect::Allow, "Edit(src/**)".to_owned()),
        (RuleEffect::Deny, "Bash(rm:*)".to_owned()),
        (RuleEffect::Deny, "Read(.env)".to_owned()),
        (RuleEffect::Ask, "Bash(git push:*)".to_owned()),
    ];
    for number in rules.len()..count {
        rules.push(match number % 7 {
            0 => (RuleEffect::Allow, format!("Bash(tool-{number} run *)")),
            1 => (RuleEffect::Deny, format!("Bash(bad-{number}:*)")),
            2 => (RuleEffect::Allow, format!("Edit(lib-{number}/**/*.rs)")),
            3 => (RuleEffect::Deny, format!("Read(secret-{number}/**)")),
            4 => (RuleEffect::Allow, format!("WebFetch(domain:host-{number}.example.com)")),
            5 => (RuleEffect::Ask, format!("mcp__server{number}__*")),
            _ => (RuleEffect::Ask, format!("Bash(deploy-{number} *)")),
        });
    }
    let entries = rules.iter().map(|(effect, rule)| Ok(RuleEntry::parse(rule, *effect)?.anchored(cwd, None)));
    Ok(Level {
        name: "root".to_owned(),
        authority: Authority::Root,
        rules: entries.collect::<anyhow::Result<_>>()?,
    })
}

/// Calls of every kind, simple and complex.
fn calls(file: &str) -> Vec<(&'static str, Value, VerdictEffect)> {
    let bash =
        |command: &str| json!({ "command": command, "description": "What this is for, in some words" });
    let commit =
        "git commit -m \"$(cat <<'EOF'\nFix the reader (again)\n\nIt's read in one pass now.\nEOF\n)\"";
    let edit = json!({ "file_path": file, "old_string": "fn a() {}\n", "new_string": "fn b() {}\n", "replace_all": false });
    vec![
        ("Bash", bash("npm run test"), VerdictEffect::Allow),
        ("Bash", bash("npm run test -- --watch=false 2>&1 | tail -20"), VerdictEffect::Allow),
        ("Bash", bash(commit), VerdictEffect::Allow),
        (
            "Bash",
            bash("for f in src/*.rs; do grep -n foo \"$f\" && echo ok; done"),
            VerdictEffect::Unmentioned,
        ),
        ("Bash", bash("ls src && timeout 5 rm -rf build"), VerdictEffect::Deny),
        ("Edit", edit, VerdictEffect::Allow),
        ("Read", json!({ "file_path": file }), VerdictEffect::Unmentioned),
        ("mcp__github__create_issue", json!({ "title": "a", "body": "b" }), VerdictEffect::Unmentioned),
    ]
}

/// The gate callback for a call.
fn hook_line(tool: &str, input: &Value, cwd: &Path) -> String {
    let id = "7d9f4a52-8d35-4d0e-9f0a-3a1f0f5f7f11";
    json!({
        "type": "control_request", "request_id": id,
        "request": {
            "subtype": "hook_callback", "callback_id": "gate", "tool_use_id": "toolu_01ABCDEFGHJKMNPQRSTVWXYZ",
            "input": {
                "session_id": id, "transcript_path": format!("/home/somebody/.claude/projects/-work-project/{id}.jsonl"), "cwd": cwd,
                "permission_mode": "default", "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": input,
                "tool_use_id": "toolu_01ABCDEFGHJKMNPQRSTVWXYZ",
            },
        },
    })
    .to_string()
}

/// The time of one repetition in microseconds.
fn timed(mut work: impl FnMut() -> bool) -> f64 {
    let start = Instant::now();
    for _ in 0..REPETITIONS {
        work();
    }
    start.elapsed().as_secs_f64() * 1_000_000.0 / f64::from(REPETITIONS)
}

/// The start of a call, the same in every run.
fn shown(input: &Value, cwd: &Path) -> String {
    let text =
        ["command", "file_path", "title"].iter().find_map(|field| input[*field].as_str()).unwrap_or_default();
    let text = text.strip_prefix(&format!("{}/", cwd.display())).unwrap_or(text);
    // A bar would end a cell of the table in docs/benchmarks.md.
    let text = text.replace('\n', "⏎").replace('|', "¦");
    let start: String = text.chars().take(28).collect();
    if start == text { text } else { start + "…" }
}
