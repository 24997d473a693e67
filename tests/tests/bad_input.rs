//! Invalid input gets an error that names the problem, and changes nothing. The tests use the scripted agent. Where the door
//! matters, a test runs over both doors.

use anyhow::Context as _;
use plexus_e2e::{DoorKind, Setup, World, events, script, text};
use plexus_testkit::rpc::{CallError, Rpc};
use serde_json::{Value, json};

/// Declares one test of an `async fn(World) -> anyhow::Result<()>` per door.
macro_rules! over_both_doors {
    ($($name:ident),* $(,)?) => {$(
        mod $name {
            #[tokio::test]
            async fn rpc() -> anyhow::Result<()> {
                super::$name(super::world(super::DoorKind::Rpc, "").await?).await
            }

            #[tokio::test]
            async fn mcp() -> anyhow::Result<()> {
                super::$name(super::world(super::DoorKind::Mcp, "").await?).await
            }
        }
    )*};
}

over_both_doors!(
    unknown_ids_are_not_found,
    an_invalid_field_is_named,
    a_name_is_unique_and_free_again_after_delete,
    an_unusable_working_dir_is_refused,
    input_over_the_limit_is_refused_and_large_input_is_accepted,
    a_session_runs_one_turn_at_a_time,
    an_approval_is_decided_once,
    an_expired_approval_is_reported_as_expired,
    a_long_input_is_allowed_only_with_its_digest,
    misleading_characters_are_shown_escaped_and_run_unchanged,
    an_invalid_answer_changes_nothing,
    decisions_in_one_call_succeed_or_fail_separately,
    sessions_are_found_by_name_renamed_and_read,
);

async fn world(door: DoorKind, config: &str) -> anyhow::Result<World> {
    let setup = Setup { door, ..Setup::scripted().with_config(config) };
    setup.world("bad_input").await?.context("the scripted agent is always available")
}

/// One Bash call.
fn bash(command: &str) -> Value {
    json!({"tool": "Bash", "input": {"command": command}})
}

#[track_caller]
fn is(error: &CallError, kind: &str) {
    assert_eq!(error.kind.as_deref(), Some(kind), "{error}");
}

/// Checks the kind of an error, and that its data and its message name the field.
#[track_caller]
fn names(error: &CallError, kind: &str, field: &str) {
    is(error, kind);
    assert_eq!(error.data["field"], field, "{error}");
    assert!(error.message.contains(&format!("`{field}`")), "{error}");
}

const NOBODY: &str = "00000000-0000-4000-8000-000000000000";

async fn unknown_ids_are_not_found(world: World) -> anyhow::Result<()> {
    let session = world.create("present", json!({})).await?;
    for method in ["get", "poll", "stop", "delete"] {
        let method = format!("claudecode.{method}");
        is(&world.refused(&method, json!({"session_id": NOBODY})).await?, "session_not_found");
        let by_name = world.refused(&method, json!({"name": "absent"})).await?;
        is(&by_name, "session_not_found");
        assert!(by_name.message.contains("`absent`"), "{by_name}");
    }
    let chat = json!({"name": "absent", "prompt": "hello"});
    is(&world.refused("claudecode.chat_async", chat).await?, "session_not_found");
    is(&world.refused("loopback.pending", json!({"name": "absent"})).await?, "session_not_found");
    let answer = json!({"approval_id": NOBODY, "approve": true});
    is(&world.refused("loopback.respond", answer).await?, "approval_not_found");
    is(&world.refused("loopback.get", json!({"approval_id": NOBODY})).await?, "approval_not_found");
    is(&world.refused("claudecode.fly", json!({})).await?, "method_not_found");
    let turn = json!({"session_id": session, "turn": 1});
    is(&world.refused("claudecode.poll", turn).await?, "turn_not_found");
    let event = json!({"session_id": session, "seq": 0});
    is(&world.refused("claudecode.event", event).await?, "event_not_found");
    Ok(())
}

async fn an_invalid_field_is_named(world: World) -> anyhow::Result<()> {
    let create = |more: Value| {
        let mut params = json!({"name": "a", "working_dir": world.work});
        params
            .as_object_mut()
            .into_iter()
            .for_each(|all| all.extend(more.as_object().cloned().unwrap_or_default()));
        ("claudecode.create", params)
    };
    let long = "x".repeat(65);
    let cases = [
        (create(json!({"name": 7})), "invalid_params", "name"),
        (create(json!({"name": ""})), "invalid_params", "name"),
        (create(json!({"name": "a b"})), "invalid_params", "name"),
        (create(json!({"name": long})), "invalid_params", "name"),
        (create(json!({"working_dir": 7})), "invalid_params", "working_dir"),
        (create(json!({"channel": "smoke"})), "invalid_params", "channel"),
        (create(json!({"env": {"A": 1}})), "invalid_params", "env.A"),
        (create(json!({"env": {"A=B": "1"}})), "invalid_params", "env"),
        (create(json!({"env": {"PLEXUS_TOKEN": "x"}})), "invalid_params", "env"),
        (create(json!({"env": {"CLAUDE_CODE_SHELL": "/bin/zsh"}})), "invalid_params", "env"),
        (create(json!({"env": {"CLAUDE_CODE_SHELL_PREFIX": "/bin/zsh"}})), "invalid_params", "env"),
        (create(json!({"hub_tools": "yes"})), "invalid_params", "hub_tools"),
        (create(json!({"approval_timeout_secs": -1})), "invalid_params", "approval_timeout_secs"),
        (create(json!({"approval_timeout_secs": 0})), "invalid_params", "approval_timeout_secs"),
        (create(json!({"permission_mode": "bypassPermissions"})), "invalid_params", "permission_mode"),
        (create(json!({"prompt": " "})), "invalid_params", "prompt"),
        (create(json!({"colour": "red"})), "unknown_field", "colour"),
        (create(json!({"isolation": "container"})), "invalid_params", "isolation"),
        (
            create(json!({"isolation": {"type": "worktree", "colour": 1}})),
            "unknown_field",
            "isolation.colour",
        ),
        (
            create(json!({"isolation": {"type": "worktree", "copy": [1]}})),
            "invalid_params",
            "isolation.copy[0]",
        ),
        (("claudecode.create", json!({"name": "a"})), "invalid_params", "working_dir"),
        (("claudecode.list", json!({"all": true})), "unknown_field", "all"),
        (("claudecode.get", json!({})), "invalid_params", "session_id"),
        (("claudecode.get", json!({"session_id": "a"})), "invalid_params", "session_id"),
        (("claudecode.poll", json!({"name": "a", "form_seq": 0})), "unknown_field", "form_seq"),
        (("claudecode.poll", json!({"name": "a", "from_seq": -1})), "invalid_params", "from_seq"),
        (("loopback.respond", json!({"approval_id": NOBODY})), "invalid_params", "approve"),
        (("loopback.respond", json!({"approve": true})), "invalid_params", "approval_id"),
        (("loopback.respond", json!({"approval_id": 7, "approve": true})), "invalid_params", "approval_id"),
        (
            ("loopback.respond", json!({"decisions": [{"approval_id": NOBODY, "approve": "yes"}]})),
            "invalid_params",
            "decisions[0].approve",
        ),
        (("loopback.respond", json!({"decisions": []})), "invalid_params", "decisions"),
        (("loopback.wait", json!({"cursor": "last"})), "invalid_params", "cursor"),
    ];
    for ((method, params), kind, field) in cases {
        names(&world.refused(method, params).await?, kind, field);
    }
    let both = world.refused("claudecode.get", json!({"session_id": NOBODY, "name": "a"})).await?;
    is(&both, "invalid_params");
    assert_eq!(world.call("claudecode.list", json!({})).await?["sessions"], json!([]), "nothing was created");
    Ok(())
}

#[tokio::test]
async fn each_failure_has_its_json_rpc_code() -> anyhow::Result<()> {
    let world = world(DoorKind::Rpc, "").await?;
    let rpc = Rpc::new(world.hub.url(), &world.hub.token()?);
    for (method, params, code) in [
        ("claudecode.fly", json!({}), -32601),
        ("claudecode.get", json!({"nmae": "a"}), -32602),
        ("claudecode.get", json!({"name": 7}), -32602),
        ("claudecode.get", json!([1]), -32602),
        ("claudecode.get", json!({"name": "a"}), -32000),
    ] {
        let error = rpc.call(method, params).await.err().context("refused")?;
        assert_eq!(error.code, code, "{error}");
        assert_eq!(error.data["message"], error.message.as_str(), "{error}");
    }
    Ok(())
}

async fn a_name_is_unique_and_free_again_after_delete(world: World) -> anyhow::Result<()> {
    let first = world.create("one", json!({"prompt": script(&json!([bash("true")]))})).await?;
    let again = json!({"name": "one", "working_dir": world.work});
    is(&world.refused("claudecode.create", again).await?, "name_taken");
    world.create("two", json!({})).await?;
    let rename = json!({"name": "two", "new_name": "one"});
    is(&world.refused("claudecode.rename", rename).await?, "name_taken");

    let (_, approval) = world.asked(&first).await?;
    let deleted = world.call("claudecode.delete", json!({"name": "one"})).await?;
    assert_eq!(deleted, json!({"type": "ok", "session_id": first}));
    is(&world.refused("claudecode.get", json!({"session_id": first})).await?, "session_not_found");
    assert!(plexus_e2e::processes_of(&first).is_empty(), "its process has ended");
    let second = world.create("one", json!({})).await?;
    assert_ne!(first, second);
    let listed = world.call("claudecode.list", json!({})).await?;
    assert_eq!(listed["sessions"].as_array().map(Vec::len), Some(2), "{listed}");

    // The approval of the deleted session can still be read.
    let kept = world.call("loopback.get", json!({"approval_id": approval["id"]})).await?;
    assert_eq!(kept["approval"]["status"], "withdrawn", "{kept}");
    assert_eq!(
        (&kept["approval"]["session_id"], &kept["approval"]["session_name"]),
        (&json!(first), &json!("one"))
    );
    assert!(world.ran().is_empty());
    Ok(())
}

async fn an_unusable_working_dir_is_refused(world: World) -> anyhow::Result<()> {
    let data = world.hub.data_dir();
    let link = world.work.join("link");
    std::os::unix::fs::symlink(data, &link)?;
    std::fs::write(world.file("a-file"), "")?;
    let within = data.join("sessions/x");
    std::fs::create_dir_all(&within)?;
    for bad in [
        "".into(),
        "relative/path".into(),
        ".".into(),
        world.file("missing"),
        world.file("a-file"),
        data.to_owned(),
        within,
        link,
    ] {
        let params = json!({"name": "nowhere", "working_dir": bad});
        names(&world.refused("claudecode.create", params).await?, "bad_working_dir", "working_dir");
    }
    world.create("nowhere", json!({})).await?;
    Ok(())
}

async fn input_over_the_limit_is_refused_and_large_input_is_accepted(world: World) -> anyhow::Result<()> {
    const MIB: usize = 1024 * 1024;
    let session = world.create("talked-to", json!({})).await?;
    let prompt = |bytes: usize| format!("{}{}", script(&json!([{"say": "read it"}])), " ".repeat(bytes));
    for params in [
        json!({"session_id": session, "prompt": prompt(16 * MIB)}),
        json!({"session_id": session, "prompt": "x", "padding": " ".repeat(16 * MIB)}),
        json!({"session_id": session, "prompt": prompt(30 * MIB)}),
    ] {
        let refused = world.refused("claudecode.chat_async", params).await?;
        assert!(refused.to_string().contains("too_large"), "{refused}");
    }
    let poll = world.call("claudecode.poll", json!({"session_id": session})).await?;
    assert_eq!((&poll["status"], &poll["turn"]), (&json!("idle"), &json!(0)));
    world.chat(&session, &prompt(15 * MIB)).await?;
    let poll = world.ended(&session).await?;
    assert_eq!(events(&poll, "complete")[0]["result"], "read it", "{poll:#}");
    Ok(())
}

async fn a_session_runs_one_turn_at_a_time(world: World) -> anyhow::Result<()> {
    let first = script(&json!([{"wait_file": "go-on"}, {"say": "first"}]));
    let session = world.create("busy", json!({"prompt": first})).await?;
    let second = script(&json!([{"say": "second"}]));
    let refused =
        world.refused("claudecode.chat_async", json!({"session_id": session, "prompt": second})).await?;
    is(&refused, "turn_in_progress");
    assert_eq!(refused.data["turn"], 1, "{refused}");
    std::fs::write(world.file("go-on"), "")?;
    assert_eq!(events(&world.ended(&session).await?, "complete")[0]["result"], "first");
    assert_eq!(world.chat(&session, &second).await?, 2);
    assert_eq!(events(&world.ended(&session).await?, "complete")[0]["result"], "second");
    Ok(())
}

async fn an_approval_is_decided_once(world: World) -> anyhow::Result<()> {
    let session = world.create("once", json!({"prompt": script(&json!([bash("echo ran")]))})).await?;
    let (_, approval) = world.asked(&session).await?;
    // A message with an allow would reach the agent as an additional message.
    let answer = |n: i32| match n % 2 {
        0 => json!({"approve": true}),
        _ => json!({"approve": false, "message": n.to_string()}),
    };
    let answers = (0..8).map(|n| world.respond(&approval, answer(n)));
    let answers = futures::future::try_join_all(answers).await?;
    let (won, lost): (Vec<&Value>, Vec<&Value>) = answers.iter().partition(|answer| answer["type"] == "ok");
    assert_eq!((won.len(), lost.len()), (1, 7), "{answers:?}");
    let counts =
        world.call("loopback.get", json!({"approval_id": approval["id"]})).await?["approval"].clone();
    for told in lost {
        assert_eq!(told["type"], "already_resolved");
        assert_eq!((&told["status"], &told["decision"]), (&counts["status"], &counts["decision"]));
        assert_eq!(told["decision"]["by"], json!({"kind": "operator"}));
    }
    let poll = world.ended(&session).await?;
    assert_eq!(events(&poll, "approval_resolved").len(), 1);
    assert_eq!(world.ran().len(), usize::from(counts["status"] == "allowed"));
    // A much later answer gets the same result.
    let late = world.respond(&approval, json!({"approve": true})).await?;
    assert_eq!((&late["type"], &late["status"]), (&json!("already_resolved"), &counts["status"]));
    Ok(())
}

async fn an_expired_approval_is_reported_as_expired(world: World) -> anyhow::Result<()> {
    let prompt = script(&json!([bash("touch late.txt"), {"say": "gave up"}]));
    let session = world.create("hasty", json!({"prompt": prompt, "approval_timeout_secs": 3})).await?;
    let (_, approval) = world.asked(&session).await?;
    assert_eq!(approval["expires_at"].as_u64(), approval["created_at"].as_u64().map(|at| at + 3));
    let poll = world.ended(&session).await?;
    assert_eq!(poll["status"], "complete", "{poll:#}");
    let resolved = &events(&poll, "approval_resolved")[0];
    assert_eq!((&resolved["status"], &resolved["by"]), (&json!("expired"), &json!({"kind": "hub"})));
    let result = &events(&poll, "tool_result")[0];
    assert_eq!(result["is_error"], true);
    assert!(text(&result["output"]).contains("may try it again"), "{result}");
    let late = world.respond(&approval, json!({"approve": true})).await?;
    assert_eq!((&late["type"], &late["status"]), (&json!("already_resolved"), &json!("expired")), "{late}");
    assert_eq!(late["decision"]["right"], "expiry");
    assert!(!world.file("late.txt").exists() && world.ran().is_empty());
    Ok(())
}

async fn a_long_input_is_allowed_only_with_its_digest(world: World) -> anyhow::Result<()> {
    let command = format!("touch read.txt # {}", "x".repeat(20 * 1024));
    let session = world.create("long", json!({"prompt": script(&json!([bash(&command)]))})).await?;
    let (poll, approval) = world.asked(&session).await?;
    let pending = world.call("loopback.pending", json!({})).await?["approvals"][0].clone();
    let waited = world.call("loopback.wait", json!({})).await?["approvals"][0].clone();
    for shown in [&approval, &pending, &waited] {
        assert_eq!(shown["truncated"], true);
        assert!(shown["digest"].is_null(), "{shown}");
        assert_eq!(text(&shown["input"]["command"]), command[..8 * 1024]);
    }
    assert!(poll["events"].to_string().len() < 2 * 8 * 1024 + 4096, "events are cut, too");

    let answer = |digest: Value| json!({"approval_id": approval["id"], "approve": true, "digest": digest});
    is(&world.refused("loopback.respond", answer(Value::Null)).await?, "input_not_seen");
    is(&world.refused("loopback.respond", answer("guessed".into())).await?, "input_not_seen");
    assert!(world.ran().is_empty());

    let whole = world.call("loopback.get", json!({"approval_id": approval["id"]})).await?["approval"].clone();
    assert_eq!(whole["input"]["command"], command.as_str());
    assert_eq!(world.call("loopback.respond", answer(whole["digest"].clone())).await?["type"], "ok");
    assert_eq!(world.ended(&session).await?["status"], "complete");
    assert_eq!(world.ran()[0]["input"]["command"], command.as_str(), "it ran whole");
    assert!(world.file("read.txt").exists());
    Ok(())
}

async fn misleading_characters_are_shown_escaped_and_run_unchanged(world: World) -> anyhow::Result<()> {
    let command = "printf '\u{1b}[2K\u{202e}ok\u{200b}' > raw.txt";
    let input = json!({"command": command, "\u{202e}key\u{1b}": "\u{7}"});
    let prompt = script(&json!([{"tool": "Bash", "input": input}]));
    let session = world.create("sly", json!({"prompt": prompt})).await?;
    let (poll, approval) = world.asked(&session).await?;
    let shown = json!({"command": "printf '\\u{1b}[2K\\u{202e}ok\\u{200b}' > raw.txt", "\\u{202e}key\\u{1b}": "\\u{7}"});
    assert_eq!(approval["input"], shown);
    assert_eq!(events(&poll, "tool_use")[0]["input"], shown);
    let whole = world.call("loopback.get", json!({"approval_id": approval["id"]})).await?;
    assert_eq!(whole["approval"]["input"], shown);
    world.allow(&approval).await?;
    assert_eq!(world.ended(&session).await?["status"], "complete");
    assert_eq!(world.ran()[0]["input"], input);
    assert_eq!(std::fs::read_to_string(world.file("raw.txt"))?, "\u{1b}[2K\u{202e}ok\u{200b}");
    Ok(())
}

async fn an_invalid_answer_changes_nothing(world: World) -> anyhow::Result<()> {
    let session = world.create("puzzled", json!({"prompt": script(&json!([bash("true")]))})).await?;
    let (_, approval) = world.asked(&session).await?;
    for (answer, field) in [
        (json!({"approve": false, "updated_input": {"command": "ls"}}), "updated_input"),
        (json!({"approve": false, "answers": {"a": "b"}}), "answers"),
        (json!({"approve": true, "answers": {"a": "b"}}), "answers"),
        (json!({"approve": true, "interrupt": true}), "interrupt"),
        (
            json!({"approve": true, "decisions": [{"approval_id": approval["id"], "approve": true}]}),
            "decisions",
        ),
    ] {
        let mut params = json!({"approval_id": approval["id"]});
        params
            .as_object_mut()
            .into_iter()
            .for_each(|all| all.extend(answer.as_object().cloned().unwrap_or_default()));
        names(&world.refused("loopback.respond", params).await?, "invalid_params", field);
    }
    let pending = world.call("loopback.pending", json!({"session_id": session})).await?;
    assert_eq!(pending["approvals"][0]["status"], "pending", "{pending}");
    assert!(world.ran().is_empty());
    world.allow(&approval).await?;
    assert_eq!(world.ended(&session).await?["status"], "complete");
    Ok(())
}

async fn decisions_in_one_call_succeed_or_fail_separately(world: World) -> anyhow::Result<()> {
    let calls: Vec<Value> = (0..4).map(|n| bash(&format!("touch {n}.txt"))).collect();
    let prompt = script(&json!([{"tools": calls, "parallel": true}]));
    let session = world.create("several", json!({"prompt": prompt})).await?;
    let poll = world
        .poll_until(&session, |poll| poll["pending_approvals"].as_array().is_some_and(|open| open.len() == 4))
        .await?;
    let of = |n: usize| {
        let command = format!("touch {n}.txt");
        let open = poll["pending_approvals"].as_array().into_iter().flatten();
        open.clone().find(|a| a["input"]["command"] == command).map(|a| a["id"].clone()).unwrap_or_default()
    };
    let decisions = json!([
        {"approval_id": of(0), "approve": true},
        {"approval_id": NOBODY, "approve": true},
        {"approval_id": of(1), "approve": false, "updated_input": {}},
        {"approval_id": of(2), "approve": false, "message": "no"},
        {"approval_id": of(0), "approve": false},
        {"approval_id": of(3), "approve": true, "updated_input": {"command": "touch three.txt"}},
    ]);
    let answered = world.call("loopback.respond", json!({"decisions": decisions})).await?;
    let kinds: Vec<(String, String)> =
        answered.as_array().into_iter().flatten().map(|a| (text(&a["type"]), text(&a["error"]))).collect();
    let plain = |kind: &str| (kind.to_owned(), String::new());
    let error = |kind: &str| ("error".to_owned(), kind.to_owned());
    // Two answers to one approval arrive at the same time. Exactly one of them is committed.
    assert!(kinds[0] != kinds[4] && [&kinds[0], &kinds[4]].contains(&&plain("ok")), "{answered:#}");
    let rest: Vec<_> = [1, 2, 3, 5].map(|n| kinds[n].clone()).into();
    let expected = [error("approval_not_found"), error("invalid_params"), plain("ok"), plain("ok")];
    assert_eq!(rest, expected, "{answered:#}");
    let first = kinds[0] == plain("ok");

    let (_, left) = world.asked(&session).await?;
    assert_eq!(left["id"], of(1), "the approval with the failed answer is still open");
    world.allow(&left).await?;
    assert_eq!(world.ended(&session).await?["status"], "complete");
    let made = ["0", "1", "2", "3", "three"].map(|n| world.file(&format!("{n}.txt")).exists());
    assert_eq!(made, [first, true, false, false, true]);
    Ok(())
}

async fn sessions_are_found_by_name_renamed_and_read(world: World) -> anyhow::Result<()> {
    let long = "é".repeat(20 * 1024);
    let prompt = script(&json!([{"say": long}, bash("true")]));
    let more = json!({"prompt": prompt, "metadata": {"ticket": 7}});
    let session = world.create("before", more).await?;
    let (_, approval) = world.asked(&session).await?;
    // The approval may be visible a moment before its event.
    let poll = world.poll_until(&session, |poll| !events(poll, "approval_requested").is_empty()).await?;
    let renamed = world.call("claudecode.rename", json!({"name": "before", "new_name": "after"})).await?;
    assert_eq!(renamed["type"], "ok", "{renamed}");
    is(&world.refused("claudecode.get", json!({"name": "before"})).await?, "session_not_found");
    let got = world.call("claudecode.get", json!({"name": "after"})).await?["session"].clone();
    assert_eq!(
        (&got["id"], &got["status"], &got["turn"]),
        (&json!(session), &json!("awaiting_permission"), &json!(1))
    );
    assert_eq!((&got["pending_approvals"], &got["metadata"]), (&json!(1), &json!({"ticket": 7})));
    let listed = world.call("claudecode.list", json!({})).await?["sessions"][0].clone();
    for (field, value) in listed.as_object().into_iter().flatten() {
        assert_eq!(got[field], *value, "a list shows only fields of `get`: {field}");
    }
    let streams = world.call("claudecode.streams", json!({})).await?;
    let stream = &streams["streams"][0];
    assert_eq!(
        (&stream["session_name"], &stream["status"]),
        (&json!("after"), &json!("awaiting_permission"))
    );
    assert_eq!(stream["total_events"], poll["total_events"]);

    // A truncated event can be read in full.
    let all = poll["events"].as_array().cloned().unwrap_or_default();
    let cut = all.iter().find(|event| event["event"]["type"] == "content").context("a text event")?;
    assert_eq!(cut["truncated"], true);
    assert!(text(&cut["event"]["text"]).len() <= 8 * 1024 && long.starts_with(&text(&cut["event"]["text"])));
    let whole = world.call("claudecode.event", json!({"name": "after", "seq": cut["seq"]})).await?;
    assert_eq!(whole["event"]["text"], long.as_str());

    world.respond(&approval, json!({"approve": false})).await?;
    assert_eq!(world.ended(&session).await?["status"], "complete");
    assert_eq!(world.call("claudecode.streams", json!({})).await?["streams"], json!([]));
    Ok(())
}
