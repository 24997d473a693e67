//! The rules for Bash apply to every tool that runs a command line. The tests list the tools of the pinned CLIs from three sources
//! (the tools in a model request, in the CLI's start message, and in its bundle). Each tool must have a class in `plexus-policy`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;
use plexus_e2e::{Channel, DoorKind, Setup, World, events, text};
use plexus_policy::{Authority, Call, Level, Policy, RuleEffect, RuleEntry, VerdictEffect, class_of};
use plexus_testkit::model::Step;
use plexus_testkit::require_claude;
use serde_json::{Value, json};

const WHAT_TO_DO: &str = "This version of Claude Code has tools that `class_of` in crates/plexus-policy/src/tools.rs does not \
    know. Find out what each does with its input and add it there: `Shell` if a field `command` runs in the user's shell, \
    `Program` if a field holds a program in another language, `Reads` or `Edits` if it opens the file that a field names, \
    `Fetches`, `Starts`, or `Other` if it does none of these by itself. Then add it to docs/policy.md if rules treat it \
    specially. Not classified:";

/// Names of schema fields that contain something to run.
const RUNS: [&str; 7] = ["command", "cmd", "script", "shell", "code", "argv", "program"];

fn not_classified(tools: &BTreeSet<String>) -> Vec<&String> {
    tools.iter().filter(|tool| !tool.starts_with("mcp__") && class_of(tool).is_none()).collect()
}

/// The verdict about a call under a rule that denies `rm` and a rule that allows everything.
fn under_a_deny_rule(tool_name: &str, input: &Value) -> anyhow::Result<VerdictEffect> {
    let rules =
        vec![RuleEntry::parse("*", RuleEffect::Allow)?, RuleEntry::parse("Bash(rm:*)", RuleEffect::Deny)?];
    let level = Level { name: "root".to_owned(), authority: Authority::Root, rules };
    let call = Call { tool_name, input, cwd: Path::new("/"), home: None, now: 0 };
    Ok(Policy::new(vec![level])?.evaluate(&call).effect)
}

/// A session after one turn in which all tools were offered at once, without tool search.
async fn after_a_turn(world: &World) -> anyhow::Result<String> {
    world.model.script("HELLO", vec![Step::text("done")]);
    let session = world.create("tools", json!({"env": {"ENABLE_TOOL_SEARCH": "false"}})).await?;
    world.chat(&session, "HELLO: there").await?;
    world.ended(&session).await?;
    Ok(session)
}

async fn every_tool_is_classified(world: World) -> anyhow::Result<()> {
    let session = after_a_turn(&world).await?;
    // The tools in the model request, with schemas.
    let mut offered = BTreeMap::new();
    for request in world.model.requests() {
        for tool in request.body["tools"].as_array().into_iter().flatten() {
            offered.insert(text(&tool["name"]), tool["input_schema"].clone());
        }
    }
    assert!(offered.contains_key("Bash") && offered.contains_key("Read"), "{:?}", offered.keys());
    let names: BTreeSet<String> = offered.keys().cloned().collect();
    assert!(not_classified(&names).is_empty(), "{WHAT_TO_DO} {:?}", not_classified(&names));
    for (tool, schema) in &offered {
        let fields: Vec<&String> =
            schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name).collect();
        for field in fields.into_iter().filter(|field| RUNS.contains(&field.to_lowercase().as_str())) {
            let effect = under_a_deny_rule(tool, &json!({field: "rm x"}))?;
            let held = matches!(effect, VerdictEffect::Deny | VerdictEffect::Ask);
            assert!(
                held,
                "a rule that denies `rm` does not hold for `{field}` of {tool}. {WHAT_TO_DO} {tool}"
            );
        }
    }
    // The tools in the CLI's start message.
    let journal = std::fs::read_to_string(world.run_dir(&session, 1).join("journal.jsonl"))?;
    let init = journal.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let reported: BTreeSet<String> = init
        .filter(|line| line["type"] == "system" && line["subtype"] == "init")
        .flat_map(|line| line["tools"].as_array().cloned().unwrap_or_default())
        .map(|tool| text(&tool))
        .collect();
    assert!(reported.contains("Bash"), "the CLI reports its tools: {reported:?}");
    assert!(not_classified(&reported).is_empty(), "{WHAT_TO_DO} {:?}", not_classified(&reported));
    Ok(())
}

#[tokio::test]
async fn every_tool_is_classified_197() -> anyhow::Result<()> {
    run_with("2.1.197", "every_tool_is_classified_197", every_tool_is_classified).await
}

#[tokio::test]
async fn every_tool_is_classified_325() -> anyhow::Result<()> {
    run_with("2.1.325", "every_tool_is_classified_325", every_tool_is_classified).await
}

async fn run_with<F: Future<Output = anyhow::Result<()>>>(
    version: &'static str,
    test: &str,
    body: impl Fn(World) -> F,
) -> anyhow::Result<()> {
    match Setup::cli(version, Channel::Control, DoorKind::Rpc).world(test).await? {
        Some(world) => body(world).await,
        None => Ok(()),
    }
}

/// The matches of `pattern` in a program. It uses `grep` because the bundle has hundreds of megabytes.
fn in_bundle(program: &Path, pattern: &str) -> anyhow::Result<Vec<String>> {
    let found = Command::new("grep")
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("LC_ALL", "C")
        .args(["-aohE", pattern])
        .arg(program)
        .output()?;
    Ok(String::from_utf8_lossy(&found.stdout).lines().map(str::to_owned).collect())
}

fn quoted(text: &str) -> impl Iterator<Item = String> {
    text.split('"').skip(1).step_by(2).map(str::to_owned)
}

/// Tools behind feature flags are not offered here, but the bundle names them.
#[test]
fn every_tool_that_the_bundle_of_197_names_is_classified() -> anyhow::Result<()> {
    let Some(claude) = require_claude("2.1.197", "every_tool_that_the_bundle_of_197_names_is_classified")
    else {
        return Ok(());
    };
    // `name:vT,searchHint:` in a tool's definition, and `vT="Monitor"` somewhere before it.
    let defined = in_bundle(
        &claude,
        r"[{,]name:[A-Za-z0-9_$]+,(aliases:\[[^]]*\],)?(ruleContentField|searchHint|maxResultSizeChars):",
    )?;
    let variables: BTreeSet<&str> =
        defined.iter().filter_map(|found| found.split("name:").nth(1)?.split(',').next()).collect();
    let named = in_bundle(&claude, r#"[ ,;][A-Za-z0-9_$]{1,5}="[A-Za-z_]{2,40}""#)?;
    let tools: BTreeSet<String> = named
        .iter()
        .filter(|found| found[1..].split('=').next().is_some_and(|variable| variables.contains(variable)))
        .flat_map(|found| quoted(found))
        .filter(|name| name.starts_with(|c: char| c.is_ascii_uppercase()))
        .collect();
    for known in ["Bash", "Monitor", "PowerShell", "REPL", "Workflow", "Skill", "LSP"] {
        assert!(tools.contains(known), "the bundle is read as it should be: {tools:?}");
    }
    assert!(not_classified(&tools).is_empty(), "{WHAT_TO_DO} {:?}", not_classified(&tools));
    Ok(())
}

#[test]
fn every_tool_that_the_bundle_of_325_names_is_classified() -> anyhow::Result<()> {
    let Some(claude) = require_claude("2.1.325", "every_tool_that_the_bundle_of_325_names_is_classified")
    else {
        return Ok(());
    };
    // The bundle has one list of all built-in tools, and the aliases.
    let list = in_bundle(&claude, r#"=\["Agent","Artifact",[^]]*\],[A-Za-z0-9_$]+=\{Task:"Agent",[^}]*\}"#)?;
    let list = list.first().context("the list of tools in the bundle; look for its new form")?;
    let (listed, same) = list.split_once("],").context("a list, then a map")?;
    let mut tools: BTreeSet<String> = quoted(listed).collect();
    let names =
        same.split(['{', ',']).filter_map(|pair| pair.split_once(':')).map(|(name, _)| name.to_owned());
    tools.extend(names);
    for known in ["Bash", "Monitor", "PowerShell", "Workflow", "KillShell"] {
        assert!(tools.contains(known), "the bundle is read as it should be: {tools:?}");
    }
    assert!(not_classified(&tools).is_empty(), "{WHAT_TO_DO} {:?}", not_classified(&tools));
    Ok(())
}

fn monitor(command: &str) -> Step {
    Step::tool(
        "Monitor",
        json!({"command": command, "description": "watch", "timeout_ms": 60_000, "persistent": false}),
    )
}

/// With `Monitor`, too, a denied command does not run, one with an ask rule needs approval, and others run as usual.
async fn the_rules_for_bash_apply_to_monitor(world: World) -> anyhow::Result<()> {
    let rules = json!([
        {"rule": "Bash(touch denied.txt)", "effect": "deny"},
        {"rule": "Bash(touch asked.txt)", "effect": "ask"},
        {"rule": "Bash(touch refused.txt)", "effect": "ask"},
        {"rule": "Monitor", "effect": "allow"},
    ]);
    let steps = ["denied", "refused", "asked", "allowed"].map(|name| monitor(&format!("touch {name}.txt")));
    world.model.script("WATCH", steps.into_iter().chain([Step::text("done")]).collect());
    let env = json!({"ENABLE_TOOL_SEARCH": "false"});
    let session = world.create("watcher", json!({"rules": rules, "env": env})).await?;
    world.chat(&session, "WATCH: go").await?;
    for (name, approve) in [("refused", false), ("asked", true)] {
        let command = format!("touch {name}.txt");
        let asked = |poll: &Value| poll["pending_approvals"][0]["input"]["command"] == command.as_str();
        let ended = |poll: &Value| poll["status"] == "complete" || poll["status"] == "failed";
        let poll = world.poll_until(&session, |poll| asked(poll) || ended(poll)).await?;
        let approval = &poll["pending_approvals"][0];
        assert_eq!(approval["tool_name"], "Monitor", "{poll:#}");
        world.respond(approval, json!({"approve": approve})).await?;
    }
    plexus_e2e::until("the allowed command runs", || {
        world.file("asked.txt").exists() && world.file("allowed.txt").exists()
    })
    .await?;
    let ended = world.ended(&session).await?;
    let results = events(&ended, "tool_result");
    let said = results.iter().filter(|result| result.to_string().contains("denied by rule")).count();
    assert_eq!(said, 1, "{ended:#}");
    assert!(!world.file("denied.txt").exists() && !world.file("refused.txt").exists());
    Ok(())
}

#[tokio::test]
async fn the_rules_for_bash_apply_to_monitor_325() -> anyhow::Result<()> {
    run_with("2.1.325", "the_rules_for_bash_apply_to_monitor_325", the_rules_for_bash_apply_to_monitor).await
}
