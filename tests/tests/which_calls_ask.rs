//! Which calls need approval: permission modes, named policies, plans, and the reason that an approval gives. Each test
//! runs on both pinned CLIs, over the control channel and over the relay.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use plexus_e2e::{Channel, Setup, World, events, over, script, text};
use plexus_testkit::model::Step;
use plexus_testkit::rpc::CallError;
use serde_json::{Value, json};

over!(channels:
    an_approved_plan_continues_in_the_chosen_mode,
    an_approved_plan_continues_in_default_mode_unless_a_mode_is_chosen,
    a_denied_plan_is_revised_and_submitted_again,
    a_mode_that_the_child_changes_itself_is_reported,
    the_mode_changes_between_turns,
    the_mode_changes_while_an_approval_is_open,
    a_mode_set_before_or_during_the_start_applies_to_the_first_prompt,
    the_policy_ask_all_requires_approval_even_for_reading,
    an_approval_gives_its_reason_and_an_allow_writes_no_settings,
);
// Only the control channel has suggestions.
over!(clis: the_suggestions_of_claude_code_are_accepted_with_an_answer);

/// A command that needs approval in every mode. (`acceptEdits` would run `touch` without approval.)
fn bash(world: &World, makes: &str) -> Step {
    let command = format!("sh -c 'echo made > {}'", world.file(makes).display());
    Step::tool("Bash", json!({"command": command, "description": "a step"}))
}

fn write(world: &World, name: &str) -> Step {
    Step::tool("Write", json!({"file_path": world.file(name), "content": "written\n"}))
}

/// Writes a plan to the file that Claude Code names, and submits it. Newer versions show that file, older ones the
/// text in the call.
fn plan(words: &str) -> [Step; 2] {
    let content = words.to_owned();
    let written = Step::from_fn(move |request| {
        Step::tool("Write", json!({"file_path": plan_file(request), "content": content}))
    });
    [written, Step::tool("ExitPlanMode", json!({"plan": words}))]
}

/// The plan file that the instructions in a model request name.
fn plan_file(request: &Value) -> String {
    let said = request.to_string();
    let Some(at) = said.find("/.claude/plans/") else { return "/no/plan/file/was/named".to_owned() };
    let from = said[..at].rfind([' ', '"', '`', '\n']).map_or(0, |before| before + 1);
    let to = said[at..].find(".md").map_or(at, |end| at + end + ".md".len());
    said[from..to].to_owned()
}

async fn mode_of(world: &World, session: &str) -> anyhow::Result<String> {
    let got = world.call("claudecode.get", json!({"session_id": session})).await?;
    Ok(text(&got["session"]["permission_mode"]))
}

async fn set_mode(world: &World, session: &str, mode: &str) -> anyhow::Result<()> {
    let params = json!({"session_id": session, "mode": mode});
    let done = world.call("claudecode.set_permission_mode", params).await?;
    assert_eq!(done["type"], "ok", "{done}");
    Ok(())
}

/// Waits for the next approval and checks its tool.
async fn approval_for(world: &World, session: &str, tool: &str) -> anyhow::Result<Value> {
    let (poll, approval) = world.asked(session).await?;
    assert_eq!(approval["tool_name"], tool, "{poll:#}");
    Ok(approval)
}

/// Waits for the end of a turn, which must be complete.
async fn completed(world: &World, session: &str) -> anyhow::Result<Value> {
    let poll = world.ended(session).await?;
    assert_eq!(poll["status"], "complete", "{poll:#}");
    Ok(poll)
}

/// The tools whose calls needed approval in the latest turn.
fn tools_with_approvals(poll: &Value) -> Vec<String> {
    let calls = events(poll, "tool_use");
    let of = |id: &Value| calls.iter().find(|call| call["tool_use_id"] == *id).cloned().unwrap_or_default();
    let asked = events(poll, "approval_requested");
    asked.iter().map(|event| text(&of(&event["tool_use_id"])["tool_name"])).collect()
}

/// The modes that the child changed to by itself in the latest turn.
fn modes_the_child_changed(poll: &Value) -> Vec<String> {
    let told = events(poll, "system").into_iter().filter(|event| event["subtype"] == "mode_changed");
    told.map(|event| text(&event["data"]["mode"])).collect()
}

fn is_refusal_of(error: &CallError, field: &str) {
    assert_eq!(error.data["field"], field, "{error:?}");
}

async fn an_approved_plan_continues_in_the_chosen_mode(world: World) -> anyhow::Result<()> {
    for (name, how) in [("mode", json!({"permission_mode": "plan"})), ("policy", json!({"policy": "plan"}))] {
        let (edited, ran) = (format!("{name}.txt"), format!("{name}-ran.txt"));
        let then = [write(&world, &edited), bash(&world, &ran), Step::text("Done.")];
        let steps = plan("1. Write it. 2. Run it.").into_iter().chain(then).collect();
        world.model.script(&format!("PLAN-BY-{name}"), steps);
        let session = world.create(name, how).await?;
        assert_eq!(mode_of(&world, &session).await?, "plan");
        world.chat(&session, &format!("PLAN-BY-{name}")).await?;

        let approval = approval_for(&world, &session, "ExitPlanMode").await?;
        assert_eq!(approval["kind"], "plan");
        assert!(text(&approval["input"]["plan"]).contains("1. Write it. 2. Run it."), "{approval:#}");
        assert_eq!(mode_of(&world, &session).await?, "plan");
        assert!(!world.file(&edited).exists());
        world.respond(&approval, json!({"approve": true, "mode": "acceptEdits"})).await?;

        let approval = approval_for(&world, &session, "Bash").await?;
        assert!(world.file(&edited).exists(), "the edit ran without asking");
        assert!(!world.file(&ran).exists(), "the command did not");
        assert_eq!(mode_of(&world, &session).await?, "acceptEdits");
        world.allow(&approval).await?;
        let poll = completed(&world, &session).await?;
        assert_eq!(tools_with_approvals(&poll), ["ExitPlanMode", "Bash"]);
        assert!(world.file(&ran).exists());
        assert_eq!(mode_of(&world, &session).await?, "acceptEdits");
    }
    Ok(())
}

async fn an_approved_plan_continues_in_default_mode_unless_a_mode_is_chosen(
    world: World,
) -> anyhow::Result<()> {
    let then = [write(&world, "asked.txt"), Step::text("Done.")];
    world.model.script("PLAN-PLAINLY", plan("Write it.").into_iter().chain(then).collect());
    let session = world.create("plain", json!({"permission_mode": "plan"})).await?;
    world.chat(&session, "PLAN-PLAINLY").await?;
    let approval = approval_for(&world, &session, "ExitPlanMode").await?;
    world.allow(&approval).await?;
    let approval = approval_for(&world, &session, "Write").await?;
    // A mode may be chosen only with an allow.
    let params = json!({"approval_id": approval["id"], "approve": false, "mode": "acceptEdits"});
    let refused = world.refused("loopback.respond", params).await?;
    assert_eq!(refused.kind.as_deref(), Some("invalid_params"), "{refused:?}");
    is_refusal_of(&refused, "mode");
    assert_eq!(mode_of(&world, &session).await?, "default");
    assert!(!world.file("asked.txt").exists());
    world.allow(&approval).await?;
    completed(&world, &session).await?;
    assert!(world.file("asked.txt").exists());
    Ok(())
}

async fn a_denied_plan_is_revised_and_submitted_again(world: World) -> anyhow::Result<()> {
    let then = [write(&world, "mended.txt"), Step::text("Done.")];
    let steps = plan("Burn it.").into_iter().chain(plan("Mend it.")).chain(then).collect();
    world.model.script("PLAN-TWICE", steps);
    let session = world.create("twice", json!({"permission_mode": "plan"})).await?;
    world.chat(&session, "PLAN-TWICE").await?;
    let first = approval_for(&world, &session, "ExitPlanMode").await?;
    world.respond(&first, json!({"approve": false, "message": "repair it instead"})).await?;
    let second = approval_for(&world, &session, "ExitPlanMode").await?;
    assert_ne!(first["id"], second["id"]);
    assert!(text(&second["input"]["plan"]).contains("Mend it."), "{second:#}");
    let request = world.model.requests_for("PLAN-TWICE").pop().unwrap_or_default();
    assert!(request["messages"].to_string().contains("repair it instead"), "the model receives the reason");
    assert_eq!(mode_of(&world, &session).await?, "plan");
    world.respond(&second, json!({"approve": true, "mode": "acceptEdits"})).await?;
    let poll = completed(&world, &session).await?;
    assert_eq!(tools_with_approvals(&poll), ["ExitPlanMode", "ExitPlanMode"]);
    assert!(world.file("mended.txt").exists());
    Ok(())
}

async fn a_mode_that_the_child_changes_itself_is_reported(world: World) -> anyhow::Result<()> {
    world.model.script("THINK-FIRST", vec![Step::tool("EnterPlanMode", json!({})), Step::text("Thinking.")]);
    let session = world.create("thinker", json!({"permission_mode": "acceptEdits"})).await?;
    world.chat(&session, "THINK-FIRST").await?;
    let poll = world
        .poll_until(&session, |poll| poll["status"] == "awaiting_permission" || poll["status"] == "complete")
        .await?;
    if let Some(approval) = poll["pending_approvals"].as_array().and_then(|open| open.first()) {
        assert_eq!(approval["tool_name"], "EnterPlanMode", "{poll:#}");
        world.allow(approval).await?;
    }
    let poll = completed(&world, &session).await?;
    assert_eq!(modes_the_child_changed(&poll), ["plan"], "{poll:#}");
    assert_eq!(mode_of(&world, &session).await?, "plan");
    Ok(())
}

async fn the_mode_changes_between_turns(world: World) -> anyhow::Result<()> {
    for turn in ["one", "two", "three"] {
        let steps = vec![write(&world, &format!("{turn}.txt")), Step::text(turn)];
        world.model.script(&format!("TURN-{turn}"), steps);
    }
    let session = world.create("changing", json!({})).await?;
    world.chat(&session, "TURN-one").await?;
    let approval = approval_for(&world, &session, "Write").await?;
    assert_eq!(mode_of(&world, &session).await?, "default");
    world.allow(&approval).await?;
    completed(&world, &session).await?;

    set_mode(&world, &session, "acceptEdits").await?;
    assert_eq!(mode_of(&world, &session).await?, "acceptEdits");
    world.chat(&session, "TURN-two").await?;
    let poll = completed(&world, &session).await?;
    assert!(tools_with_approvals(&poll).is_empty(), "{poll:#}");
    assert!(world.file("two.txt").exists());
    assert_eq!(mode_of(&world, &session).await?, "acceptEdits");

    set_mode(&world, &session, "default").await?;
    assert_eq!(mode_of(&world, &session).await?, "default");
    world.chat(&session, "TURN-three").await?;
    let approval = approval_for(&world, &session, "Write").await?;
    assert!(!world.file("three.txt").exists());
    world.allow(&approval).await?;
    completed(&world, &session).await?;
    assert_eq!(mode_of(&world, &session).await?, "default");
    Ok(())
}

async fn the_mode_changes_while_an_approval_is_open(world: World) -> anyhow::Result<()> {
    let steps = vec![
        bash(&world, "first.txt"),
        write(&world, "unasked.txt"),
        bash(&world, "second.txt"),
        write(&world, "asked.txt"),
        Step::text("Done."),
    ];
    world.model.script("IN-MID-TURN", steps);
    let session = world.create("midturn", json!({})).await?;
    world.chat(&session, "IN-MID-TURN").await?;
    let approval = approval_for(&world, &session, "Bash").await?;
    set_mode(&world, &session, "acceptEdits").await?;
    assert_eq!(mode_of(&world, &session).await?, "acceptEdits");
    assert!(!world.file("first.txt").exists(), "the mode does not answer the open approval");
    world.allow(&approval).await?;
    let approval = approval_for(&world, &session, "Bash").await?;
    assert!(world.file("unasked.txt").exists());
    set_mode(&world, &session, "default").await?;
    assert_eq!(mode_of(&world, &session).await?, "default");
    world.allow(&approval).await?;
    let approval = approval_for(&world, &session, "Write").await?;
    assert!(!world.file("asked.txt").exists());
    world.allow(&approval).await?;
    let poll = completed(&world, &session).await?;
    assert_eq!(tools_with_approvals(&poll), ["Bash", "Bash", "Write"]);
    // The child changed none of these modes by itself.
    assert!(modes_the_child_changed(&poll).is_empty(), "{poll:#}");
    Ok(())
}

async fn a_mode_set_before_or_during_the_start_applies_to_the_first_prompt(
    world: World,
) -> anyhow::Result<()> {
    let before = world.create("before", json!({})).await?;
    set_mode(&world, &before, "acceptEdits").await?;
    assert_eq!(mode_of(&world, &before).await?, "acceptEdits");
    world.model.script("SET-BEFORE", vec![write(&world, "before.txt"), Step::text("Done.")]);
    world.chat(&before, "SET-BEFORE").await?;
    let poll = completed(&world, &before).await?;
    assert!(tools_with_approvals(&poll).is_empty(), "{poll:#}");

    // The process is starting in the first mode when the second one is set.
    for (name, from, to) in [("tighter", "acceptEdits", "default"), ("looser", "default", "acceptEdits")] {
        world
            .model
            .script(&format!("SET-{name}"), vec![write(&world, &format!("{name}.txt")), Step::text("Done.")]);
        let session = world.create(name, json!({"permission_mode": from})).await?;
        world.chat(&session, &format!("SET-{name}")).await?;
        set_mode(&world, &session, to).await?;
        assert_eq!(mode_of(&world, &session).await?, to);
        if to == "default" {
            let approval = approval_for(&world, &session, "Write").await?;
            assert!(!world.file("tighter.txt").exists());
            world.allow(&approval).await?;
        }
        let poll = completed(&world, &session).await?;
        assert_eq!(tools_with_approvals(&poll).len(), usize::from(to == "default"), "{poll:#}");
        assert_eq!(mode_of(&world, &session).await?, to);
    }
    Ok(())
}

async fn the_policy_ask_all_requires_approval_even_for_reading(world: World) -> anyhow::Result<()> {
    std::fs::write(world.file("secret.txt"), "the-secret-word\n")?;
    let read = Step::tool("Read", json!({"file_path": world.file("secret.txt")}));
    world.model.script("READ-IT", vec![read.clone(), read, Step::text("Done.")]);
    let session = world.create("watched", json!({"policy": "ask_all"})).await?;
    world.chat(&session, "READ-IT").await?;
    let approval = approval_for(&world, &session, "Read").await?;
    world.respond(&approval, json!({"approve": false})).await?;
    let approval = approval_for(&world, &session, "Read").await?;
    let so_far = Value::Array(world.model.requests_for("READ-IT")).to_string();
    assert!(!so_far.contains("the-secret-word"), "it was read before it was allowed");
    world.allow(&approval).await?;
    completed(&world, &session).await?;
    let last = world.model.requests_for("READ-IT").pop().unwrap_or_default();
    assert!(last.to_string().contains("the-secret-word"));
    Ok(())
}

/// Every file in a directory, at any depth.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            found.extend(files(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}

async fn an_approval_gives_its_reason_and_an_allow_writes_no_settings(world: World) -> anyhow::Result<()> {
    let outside = world.home.join("outside.txt");
    std::fs::write(&outside, "beyond\n")?;
    let task = json!({
        "description": "helper", "prompt": "SUB-TASK: make it", "subagent_type": "general-purpose",
        "run_in_background": false,
    });
    world.model.script(
        "ALLOW-IT",
        vec![
            Step::tool("Read", json!({"file_path": outside})),
            Step::tool(
                "Bash",
                json!({"command": format!("cat {}", outside.display()), "description": "a look"}),
            ),
            write(&world, "allowed.txt"),
            Step::tool("Agent", task),
            Step::text("Done."),
        ],
    );
    world.model.script("SUB-TASK", vec![bash(&world, "sub.txt"), Step::text("Sub done.")]);
    let on_control = world.setup.channel == Channel::Control;
    let session = world.create("allowed", json!({})).await?;
    world.chat(&session, "ALLOW-IT").await?;

    let approval = approval_for(&world, &session, "Read").await?;
    if on_control {
        assert!(!text(&approval["reason"]).is_empty(), "{approval:#}");
        assert!(approval["suggestions"].as_array().is_some_and(|s| !s.is_empty()), "{approval:#}");
    }
    assert!(approval.get("agent_id").is_none(), "{approval:#}");
    world.allow(&approval).await?;
    let approval = approval_for(&world, &session, "Bash").await?;
    if on_control {
        assert_eq!(text(&approval["blocked_path"]), outside.display().to_string(), "{approval:#}");
    }
    world.allow(&approval).await?;
    let approval = approval_for(&world, &session, "Write").await?;
    if on_control {
        let mode = &approval["suggestions"][0];
        assert_eq!(
            (&mode["type"], &mode["mode"]),
            (&json!("setMode"), &json!("acceptEdits")),
            "{approval:#}"
        );
    }
    world.allow(&approval).await?;
    let approval = approval_for(&world, &session, "Bash").await?;
    if on_control {
        assert!(!text(&approval["agent_id"]).is_empty(), "the sub-agent's approval: {approval:#}");
    }
    world.allow(&approval).await?;
    completed(&world, &session).await?;

    assert_eq!(mode_of(&world, &session).await?, "default", "an allow is for one call");
    let settings: Vec<PathBuf> = [files(&world.home), files(&world.work)]
        .concat()
        .into_iter()
        .filter(|file| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("settings")))
        .collect();
    assert!(settings.is_empty(), "{settings:?}");
    assert!(!world.file(".claude").exists(), "{:?}", files(&world.work));
    Ok(())
}

#[tokio::test]
async fn an_unknown_mode_or_policy_is_refused_by_field_name() -> anyhow::Result<()> {
    let Some(world) = Setup::scripted().world("names").await? else { return Ok(()) };
    for (field, value) in [
        ("policy", json!("allow_everything")),
        ("policy", json!(7)),
        ("permission_mode", json!("bypassPermissions")),
        ("permission_mode", json!("dontAsk")),
        ("permission_mode", json!("auto")),
    ] {
        let mut params = json!({"name": "named", "working_dir": world.work});
        params[field] = value.clone();
        let refused = world.refused("claudecode.create", params).await?;
        assert_eq!(refused.kind.as_deref(), Some("invalid_params"), "{value}: {refused:?}");
        is_refusal_of(&refused, field);
    }
    let session = world.create("named", json!({})).await?;
    let bypass = [
        (
            "claudecode.set_permission_mode",
            json!({"session_id": session, "mode": "bypassPermissions"}),
            "mode",
        ),
        (
            "claudecode.update",
            json!({"session_id": session, "permission_mode": "bypassPermissions"}),
            "permission_mode",
        ),
        (
            "claudecode.create",
            json!({"name": "other", "working_dir": world.work, "permission_mode": "bypassPermissions"}),
            "permission_mode",
        ),
    ];
    for (method, params, field) in bypass {
        let refused = world.refused(method, params).await?;
        is_refusal_of(&refused, field);
        let message = refused.to_string();
        assert!(message.contains("allow_all") && message.contains("remember"), "{method}: {message}");
    }
    Ok(())
}

/// The rule that Claude Code suggests for a call, written as in `remember`.
fn suggested_rule(approval: &Value) -> Option<String> {
    let suggestions = approval["suggestions"].as_array()?;
    let rules = suggestions.iter().find(|one| one["type"] == "addRules")?;
    let rule = &rules["rules"][0];
    Some(format!("{}({})", rule["toolName"].as_str()?, rule["ruleContent"].as_str()?))
}

async fn the_suggestions_of_claude_code_are_accepted_with_an_answer(world: World) -> anyhow::Result<()> {
    let run = || Step::tool("Bash", json!({"command": "chmod 700 one.txt", "description": "a step"}));
    let steps = vec![write(&world, "one.txt"), write(&world, "two.txt"), run(), run(), Step::text("Done.")];
    world.model.script("ACCEPT-IT", steps);
    let session = world.create("accepts", json!({})).await?;
    world.chat(&session, "ACCEPT-IT").await?;

    // Claude Code suggests the mode `acceptEdits` with the first write.
    let approval = approval_for(&world, &session, "Write").await?;
    let mode = &approval["suggestions"][0];
    assert_eq!(mode["type"], "setMode", "{approval:#}");
    let answer = json!({"approval_id": approval["id"], "approve": true, "mode": mode["mode"]});
    world.call("loopback.respond", answer).await?;
    // The second write needs no approval in that mode; a command does.
    let approval = approval_for(&world, &session, "Bash").await?;
    assert!(world.file("two.txt").exists());
    assert_eq!(mode_of(&world, &session).await?, "acceptEdits");
    let rule = suggested_rule(&approval).with_context(|| format!("a suggested rule: {approval:#}"))?;
    let remember = json!({"approval_id": approval["id"], "approve": true, "remember": {"rule": rule}});
    world.call("loopback.respond", remember).await?;
    let poll = completed(&world, &session).await?;
    assert_eq!(tools_with_approvals(&poll), ["Write", "Bash"], "{poll:#}");
    Ok(())
}

#[tokio::test]
async fn a_child_that_reports_a_looser_mode_is_stopped() -> anyhow::Result<()> {
    let Some(world) = Setup::scripted().world("looser").await? else { return Ok(()) };
    let says = [
        json!({"type": "system", "subtype": "init", "session_id": "s", "permissionMode": "bypassPermissions"}),
        json!({"type": "system", "subtype": "status", "session_id": "s", "permissionMode": "bypassPermissions"}),
        json!({"type": "system", "subtype": "status", "session_id": "s", "permissionMode": "acceptEdits"}),
        json!({"type": "system", "subtype": "status", "session_id": "s", "permissionMode": "auto"}),
    ];
    for (number, line) in says.iter().enumerate() {
        let session = world.create(&format!("looser-{number}"), json!({})).await?;
        let never = json!({"wait_file": world.file("never")});
        world.chat(&session, &script(&json!([{"raw": line.to_string()}, never]))).await?;
        let poll = world.ended(&session).await?;
        assert_eq!(poll["status"], "failed", "{line}: {poll:#}");
        assert_eq!(events(&poll, "error")[0]["reason"], "wrong_mode", "{line}: {poll:#}");
        assert!(plexus_e2e::processes_of(&session).is_empty(), "{line}");
    }
    // The child may change to a stricter mode, and the change is reported.
    let session = world.create("stricter", json!({"permission_mode": "acceptEdits"})).await?;
    let line = json!({"type": "system", "subtype": "status", "session_id": "s", "permissionMode": "plan"});
    world.chat(&session, &script(&json!([{"raw": line.to_string()}, {"say": "planning"}]))).await?;
    let poll = completed(&world, &session).await?;
    assert_eq!(modes_the_child_changed(&poll), ["plan"], "{poll:#}");
    assert_eq!(mode_of(&world, &session).await?, "plan");
    Ok(())
}
