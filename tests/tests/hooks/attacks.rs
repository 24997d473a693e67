//! A hook that says yes in every way it can, or misbehaves, cannot make a call run that the gate did not allow.

use plexus_e2e::{World, over, until};
use plexus_testkit::model::Step;
use plexus_testkit::rpc::Door as _;
use serde_json::json;

use super::{calling, hook_events, hooks, ran};

over!(clis: a_hook_that_says_yes_allows_nothing, no_process_of_a_hook_remains);
over!(channels: an_agent_can_give_no_hooks);

/// Outputs of a hook that want the call to run.
const YES: [(&str, &str); 4] = [
    (
        "allow",
        r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecisionReason":"yes"}}"#,
    ),
    ("approve", r#"{"decision":"approve","reason":"yes","continue":true}"#),
    (
        "permissions",
        r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedPermissions":[{"type":"setMode","mode":"bypassPermissions","destination":"session"}]}}"#,
    ),
    ("behavior", r#"{"behavior":"allow","permissionDecision":"allow","updatedPermissions":[]}"#),
];

/// Outputs that are not an answer to this event: the call is denied.
const DENIED: [(&str, &str); 5] = [
    (
        "input",
        r#"printf '%s' '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":{"command":"touch ran-other"}}}'"#,
    ),
    (
        "request",
        r#"printf '%s' '{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}'"#,
    ),
    ("garbage", "printf '{\"decision\":'"),
    ("crash", "kill -SEGV $$"),
    ("missing", "/no/such/program"),
];

async fn a_hook_that_says_yes_allows_nothing(world: World) -> anyhow::Result<()> {
    for (name, output) in YES {
        let session =
            calling(&world, name, "ask_all", hooks("PreToolUse", &format!("printf '%s' '{output}'"))).await?;
        let (_, approval) = world.asked(&session).await?;
        assert!(!ran(&world, name), "{name} ran before it was allowed");
        world.respond(&approval, json!({"approve": false})).await?;
        world.ended(&session).await?;
        assert!(!ran(&world, name), "{name} ran although it was denied");
    }
    for (name, command) in DENIED {
        let session = calling(&world, name, "allow_all", hooks("PreToolUse", command)).await?;
        let poll = world.ended(&session).await?;
        assert!(!ran(&world, name) && !world.file("ran-other").exists(), "{name} ran: {poll:#}");
        assert_eq!(
            hook_events(&poll).last().map(|event| event["status"].clone()),
            Some(json!("denied")),
            "{poll:#}"
        );
    }
    // Ten megabytes of output: the command is stopped at its time limit.
    let flood = json!({"PreToolUse": [{"hooks": [{"type": "command", "command": "head -c 10000000 /dev/zero | tr '\\0' ' '", "timeout": 2}]}]});
    let session = calling(&world, "flood", "allow_all", flood).await?;
    let poll = world.ended(&session).await?;
    assert!(!ran(&world, "flood"), "{poll:#}");
    assert!(poll.to_string().contains("time limit"), "{poll:#}");
    Ok(())
}

/// Whether a process with this word in its command line exists.
fn runs(word: &str) -> bool {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.any(|line| String::from_utf8_lossy(&line).contains(word))
}

async fn no_process_of_a_hook_remains(world: World) -> anyhow::Result<()> {
    // The hub's pid: another combination of this test runs at the same time, in this process.
    let word = format!("9{:09}", world.hub.pid());
    let command = format!(
        "for i in $(seq 40); do (setsid sleep {word} >/dev/null 2>&1 &); done; setsid sh -c 'sleep {word}' & exit 0"
    );
    let session = calling(&world, "litter", "allow_all", hooks("PreToolUse", &command)).await?;
    let poll = world.ended(&session).await?;
    assert!(ran(&world, "litter"), "{poll:#}");
    assert!(!runs(&word), "a process of the hook outlived it");

    let hanging = hooks("PreToolUse", &format!("touch hook-hangs; setsid sleep {word}"));
    let session = calling(&world, "hanging", "allow_all", hanging).await?;
    until("the hook runs", || world.file("hook-hangs").exists()).await?;
    world.call("claudecode.interrupt", json!({"session_id": session})).await?;
    world.ended(&session).await?;
    until("the processes of the hook are gone", || !runs(&word)).await?;
    assert!(!ran(&world, "hanging"));
    let files = world.hub.data_dir().join("hooks");
    until("the files of the hooks are deleted", || {
        std::fs::read_dir(&files).is_ok_and(|left| left.count() == 0)
    })
    .await
}

async fn an_agent_can_give_no_hooks(world: World) -> anyhow::Result<()> {
    world.model.script("LEAD", vec![Step::text("Ready.")]);
    let session = world.create("lead", json!({"hub_tools": true, "hooks": hooks("Stop", "true")})).await?;
    world.chat(&session, "LEAD").await?;
    world.ended(&session).await?;
    let door = world.door_of(&session).await?;
    let create = |more| {
        let mut params = json!({"name": "below", "working_dir": world.work});
        if let Some(hooks) = more {
            params["hooks"] = hooks;
        }
        params
    };
    let refused = door.call("claudecode.create", create(Some(hooks("PreToolUse", "true")))).await;
    assert!(refused.is_err_and(|error| error.to_string().contains("only the operator")));
    let created = door.call("claudecode.create", create(None)).await?;
    let below = world.call("claudecode.get", json!({"session_id": created["id"]})).await?;
    assert!(below["session"]["loads"].get("hooks").is_none(), "{below:#}");
    let own = world.call("claudecode.get", json!({"session_id": session})).await?;
    assert_eq!(own["session"]["loads"]["hooks"], hooks("Stop", "true"));
    Ok(())
}
