//! The cost of supervision for a parent agent, for which every call and every byte counts: few calls, short results, few tools. Also
//! what `loopback.wait` returns to which caller, on which this cost depends.

use std::path::Path;

use anyhow::{Context as _, ensure};
use plexus_e2e::{LIMIT, Setup, World, text, until};
use plexus_testkit::rpc::{CallError, Door as _, McpClient};
use serde_json::{Value, json};
use tokio::time::Instant;

const CHILDREN: usize = 3;
const CALLS: usize = 30;
const APPROVALS: usize = CHILDREN * CALLS;
const PARENTS_TOOLS: [&str; 18] = [
    "claudecode_chat_async",
    "claudecode_create",
    "claudecode_delete",
    "claudecode_event",
    "claudecode_fork",
    "claudecode_get",
    "claudecode_interrupt",
    "claudecode_list",
    "claudecode_poll",
    "claudecode_send",
    "claudecode_set_budget",
    "claudecode_stop",
    "claudecode_update",
    "loopback_escalate",
    "loopback_get",
    "loopback_pending",
    "loopback_respond",
    "loopback_wait",
];

async fn scripted(test: &str) -> anyhow::Result<World> {
    Setup::scripted().world(test).await?.context("the scripted agent is always available")
}

async fn parent(world: &World) -> anyhow::Result<McpClient> {
    Ok(McpClient::connect(world.hub.url(), &world.hub.token()?).await?)
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

/// Supervises children with these scripts until they finish, as a skilled agent would. Each round is one call.
async fn supervise(world: &World, parent: &McpClient, scripts: &[Value]) -> anyhow::Result<()> {
    let deadline = Instant::now() + 2 * LIMIT;
    for (child, script) in scripts.iter().enumerate() {
        let params = json!({"name": format!("child-{child}"), "working_dir": world.work, "prompt": script.to_string()});
        parent.call("claudecode.create", params).await?;
    }
    // A new parent has no earlier events, so it starts with cursor 0.
    let mut news = parent.call("loopback.wait", json!({"cursor": 0})).await?;
    let (mut answered, mut finished) = (0, 0);
    loop {
        ensure!(Instant::now() < deadline, "not in time: {answered} answered; hub: {}", world.hub.stderr());
        let approvals = list(&news["approvals"]);
        answered += approvals.len();
        for turn in list(&news["finished"]) {
            assert_eq!(turn["status"], "complete", "{turn}");
            finished += 1;
        }
        assert_eq!((&news["still_open"], &news["notices"]), (&json!([]), &json!([])), "{news}");
        if finished == scripts.len() {
            assert_eq!(answered, APPROVALS);
            return Ok(());
        }
        let cursor = news["cursor"].take();
        if approvals.is_empty() {
            news = parent.call("loopback.wait", json!({"cursor": cursor})).await?;
            continue;
        }
        let decisions: Vec<Value> = approvals
            .iter()
            .map(|approval| json!({"approval_id": approval["id"], "approve": true}))
            .collect();
        let params = json!({"decisions": decisions, "wait_ms": 30_000, "cursor": cursor});
        let mut result = parent.call("loopback.respond", params).await?;
        assert!(list(&result["results"]).iter().all(|one| one["type"] == "ok"), "{result}");
        news = result["wait"].take();
    }
}

#[expect(clippy::print_stdout, reason = "calls and bytes are what this test shows")]
fn print_cost(what: &str, parent: &McpClient) -> u64 {
    let cost = parent.traffic();
    let per_approval = (cost.sent_bytes + cost.received_bytes) / APPROVALS as u64;
    println!(
        "{what}: {APPROVALS} approvals of {CHILDREN} children: {} calls, {} bytes sent, {} received \
         ({per_approval} an approval)",
        cost.calls, cost.sent_bytes, cost.received_bytes
    );
    cost.calls
}

#[tokio::test]
async fn unsynchronised_children_cost_one_call_per_approval_and_two_per_child() -> anyhow::Result<()> {
    let world = scripted("own pace").await?;
    // The worst case: only one child at a time has an open approval, so that no answers can be combined.
    let scripts: Vec<Value> = (0..CHILDREN)
        .map(|child| {
            let mut steps = Vec::new();
            for call in 0..CALLS {
                if (child, call) != (0, 0) {
                    steps.push(json!({"wait_file": format!("baton-{child}-{call}")}));
                }
                let next = if child + 1 < CHILDREN { (child + 1, call) } else { (0, call + 1) };
                let command = format!("touch baton-{}-{}", next.0, next.1);
                steps.push(json!({"tool": "Bash", "input": {"command": command}}));
            }
            json!(steps)
        })
        .collect();
    let parent = parent(&world).await?;
    supervise(&world, &parent, &scripts).await?;
    let calls = print_cost("at their own pace", &parent);
    assert!(calls <= (APPROVALS + 2 * CHILDREN) as u64, "{calls} calls");
    Ok(())
}

#[tokio::test]
async fn synchronised_children_cost_one_call_per_round() -> anyhow::Result<()> {
    let world = scripted("lockstep").await?;
    let scripts: Vec<Value> = (0..CHILDREN)
        .map(|child| {
            let mut steps = Vec::new();
            for call in 0..CALLS {
                steps.push(json!({"wait_file": format!("round-{call}")}));
                let input = json!({"file_path": format!("{child}-{call}.txt"), "content": "x"});
                steps.push(json!({"tool": "Write", "input": input}));
            }
            json!(steps)
        })
        .collect();
    let (work, log) = (world.work.clone(), world.log.clone());
    let conductor = tokio::spawn(async move { run_rounds(&work, &log).await });
    let parent = parent(&world).await?;
    supervise(&world, &parent, &scripts).await?;
    conductor.await??;
    let calls = print_cost("in lockstep", &parent);
    assert!(calls <= 40, "{calls} calls");
    Ok(())
}

/// Starts a round when all children are ready, and the next when each call of the last one has run.
async fn run_rounds(work: &Path, log: &Path) -> anyhow::Result<()> {
    for round in 0..CALLS {
        until("the round is over", || {
            let ran = std::fs::read_to_string(log).unwrap_or_default();
            ran.lines().count() >= round * CHILDREN
        })
        .await?;
        std::fs::write(work.join(format!("round-{round}")), "")?;
    }
    Ok(())
}

#[tokio::test]
async fn a_wait_without_news_costs_less_than_a_hundred_bytes() -> anyhow::Result<()> {
    let world = scripted("nothing new").await?;
    let parent = parent(&world).await?;
    world.create("asker", json!({"prompt": asks_for("asked.txt").to_string()})).await?;
    let news = parent.call("loopback.wait", json!({"cursor": 0})).await?;
    assert_eq!(list(&news["approvals"]).len(), 1, "{news}");
    let nothing = json!({"cursor": news["cursor"], "timeout_ms": 100});
    let nothing = parent.call("loopback.wait", nothing).await?;
    let bytes = nothing.to_string().len();
    println!("nothing new: {bytes} bytes: {nothing}");
    assert_eq!(nothing["cursor"], news["cursor"]);
    assert!(bytes < 100, "{nothing}");
    // The caller's own answer is not news either.
    let denied = json!({
        "approval_id": news["approvals"][0]["id"], "approve": false, "message": "no",
        "cursor": news["cursor"], "wait_ms": 0,
    });
    let answered = parent.call("loopback.respond", denied).await?;
    assert_eq!(answered["type"], "ok");
    assert!(answered["wait"].to_string().len() < 100, "{answered}");
    Ok(())
}

#[tokio::test]
async fn a_poll_returns_a_parent_only_what_is_new_to_it() -> anyhow::Result<()> {
    let world = scripted("polled").await?;
    let (_, _, boss) = boss(&world, "boss").await?;
    let child = create_below(&world, &boss, "child").await?;
    let next = json!({"session_id": child, "wait_ms": LIMIT.as_millis() as u64});
    let mut shown = Vec::new();
    let approval = loop {
        let mut news = boss.call("claudecode.poll", next.clone()).await?;
        shown.extend(list(&news["events"]));
        if let Some(approval) = news["pending_approvals"].get_mut(0) {
            break approval.take();
        }
    };
    assert_eq!(approval["input"], json!({"file_path": "child.txt", "content": "x"}), "{approval}");
    boss.call("loopback.respond", json!({"approval_id": approval["id"], "approve": true})).await?;
    loop {
        let news = boss.call("claudecode.poll", next.clone()).await?;
        shown.extend(list(&news["events"]));
        if news["status"] == "complete" {
            assert_eq!(
                (&news["pending_approvals"], &news["has_more"]),
                (&Value::Null, &Value::Null),
                "{news}"
            );
            break;
        }
    }
    let types = |events: &[Value]| events.iter().map(|one| text(&one["event"]["type"])).collect::<Vec<_>>();
    let shown = types(&shown);
    assert_eq!(shown, ["start", "tool_use", "tool_result", "content", "complete"]);
    // The agent can still read every event.
    let whole = boss.call("claudecode.poll", json!({"session_id": child, "from_seq": 0})).await?;
    let all = types(&list(&whole["events"]));
    for left_out in ["approval_requested", "approval_resolved"] {
        assert!(all.iter().any(|one| one == left_out), "{all:?}");
    }
    assert_eq!(whole["read_position"], whole["total_events"], "{whole}");
    Ok(())
}

#[tokio::test]
async fn the_tool_list_of_a_parent_is_smaller_than_16_kb() -> anyhow::Result<()> {
    let world = scripted("tools").await?;
    let tools = parent(&world).await?.tools().await?;
    assert_eq!(names(&tools), PARENTS_TOOLS);
    let bytes = json!({"tools": tools}).to_string().len();
    println!("tools/list: {bytes} bytes");
    assert!(bytes <= 16 * 1024, "{bytes} bytes");
    for tool in &tools {
        // A boolean subschema makes older versions of Claude Code drop every tool.
        assert!(!holds_boolean(&tool["inputSchema"]), "{tool}");
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert!(tool["description"].as_str().is_some_and(|words| !words.is_empty()), "{tool}");
    }
    Ok(())
}

fn names(tools: &[Value]) -> Vec<String> {
    let mut names: Vec<String> = tools.iter().map(|tool| text(&tool["name"])).collect();
    names.sort();
    names
}

fn holds_boolean(value: &Value) -> bool {
    match value {
        Value::Bool(_) => true,
        Value::Array(several) => several.iter().any(holds_boolean),
        Value::Object(object) => object.values().any(holds_boolean),
        _ => false,
    }
}

/// A script with one call that needs approval.
fn asks_for(file: &str) -> Value {
    json!([{"tool": "Write", "input": {"file_path": file, "content": "x"}}, {"say": format!("made {file}")}])
}

/// A session with the hub's tools and an open approval of its own, and a client of it.
async fn boss(world: &World, name: &str) -> anyhow::Result<(String, Value, McpClient)> {
    let more = json!({"hub_tools": true, "approve_scope": ["*"], "prompt": asks_for(&format!("{name}.txt")).to_string()});
    let session = world.create(name, more).await?;
    let (_, approval) = world.asked(&session).await?;
    let door = world.door_of(&session).await?;
    Ok((session, approval, door))
}

async fn create_below(world: &World, boss: &McpClient, name: &str) -> anyhow::Result<String> {
    let prompt = asks_for(&format!("{name}.txt")).to_string();
    let params = json!({"name": name, "working_dir": world.work, "prompt": prompt});
    Ok(text(&boss.call("claudecode.create", params).await?["id"]))
}

/// Waits until this many approvals are addressed to the caller. Returns them, sorted by session name.
async fn open(door: &McpClient, count: usize) -> anyhow::Result<(Value, Vec<Value>)> {
    let deadline = Instant::now() + LIMIT;
    let mut all = Vec::new();
    let mut cursor = json!(0);
    while all.len() < count {
        ensure!(Instant::now() < deadline, "only {} are open", all.len());
        let mut news = door.call("loopback.wait", json!({"cursor": cursor, "timeout_ms": 1000})).await?;
        cursor = news["cursor"].take();
        all.extend(list(&news["approvals"]));
    }
    all.sort_by_key(|approval| text(&approval["session_name"]));
    Ok((cursor, all))
}

fn kind(refused: Result<Value, CallError>) -> String {
    refused.map_or_else(|error| error.kind.unwrap_or_default(), |result| format!("not refused: {result}"))
}

#[tokio::test]
async fn a_child_can_request_permits_and_nothing_else() -> anyhow::Result<()> {
    let world = scripted("a child's token").await?;
    let session = world.create("plain", json!({})).await?;
    let configured = world.call("loopback.configure", json!({"session_id": session})).await?;
    let header = text(&configured["mcp_config"]["mcpServers"]["plexus"]["headers"]["Authorization"]);
    let child = McpClient::connect(world.hub.url(), header.trim_start_matches("Bearer ")).await?;
    assert_eq!(names(&child.tools().await?), ["loopback_permit"]);
    for tool in PARENTS_TOOLS {
        let refused = child.call(tool, json!({})).await;
        assert_eq!(kind(refused), "forbidden", "{tool}");
    }
    Ok(())
}

#[tokio::test]
async fn a_child_with_the_hubs_tools_decides_only_for_its_own_children() -> anyhow::Result<()> {
    let world = scripted("hub tools").await?;
    let (boss_id, boss_asks, boss) = boss(&world, "boss").await?;
    let mut tools: Vec<&str> = PARENTS_TOOLS.into();
    tools.push("loopback_permit");
    tools.sort_unstable();
    assert_eq!(names(&boss.tools().await?), tools);
    let stranger = world.create("stranger", json!({"prompt": asks_for("stranger.txt").to_string()})).await?;
    let (_, stranger_asks) = world.asked(&stranger).await?;

    let grandchild = create_below(&world, &boss, "grandchild").await?;
    let (cursor, asked) = open(&boss, 1).await?;
    assert_eq!(asked[0]["session_id"], grandchild);
    assert_eq!(asked[0]["asked_of"], json!({"kind": "session", "id": boss_id}));
    assert_eq!(boss_asks["asked_of"], json!({"kind": "operator"}));

    // It can read its own approval but not a stranger's, and can answer neither.
    for approval in [&boss_asks, &stranger_asks] {
        let params = json!({"approval_id": approval["id"], "approve": true});
        assert_eq!(kind(boss.call("loopback.respond", params).await), "approval_not_found");
    }
    let strangers = json!({"approval_id": stranger_asks["id"]});
    assert_eq!(kind(boss.call("loopback.get", strangers).await), "approval_not_found");
    boss.call("loopback.get", json!({"approval_id": boss_asks["id"]})).await?;
    let decisions = json!([
        {"approval_id": stranger_asks["id"], "approve": true},
        {"approval_id": asked[0]["id"], "approve": true},
    ]);
    let answered = boss.call("loopback.respond", json!({"decisions": decisions})).await?;
    assert_eq!(
        (&answered[0]["type"], &answered[0]["error"]),
        (&json!("error"), &json!("approval_not_found"))
    );
    assert_eq!(answered[1], json!({"type": "ok", "approval_id": asked[0]["id"]}));
    for (method, id) in [("claudecode.get", &stranger), ("claudecode.stop", &boss_id)] {
        assert_eq!(kind(boss.call(method, json!({"session_id": id})).await), "session_not_found", "{method}");
    }
    let visible = list(&boss.call("claudecode.list", json!({})).await?["sessions"]);
    assert_eq!(visible.iter().map(|session| text(&session["id"])).collect::<Vec<_>>(), [boss_id, grandchild]);
    assert_eq!(boss.call("loopback.pending", json!({})).await?["approvals"], json!([]));

    let news = boss.call("loopback.wait", json!({"cursor": cursor})).await?;
    assert_eq!(news["finished"][0]["session_name"], "grandchild", "{news}");
    assert!(world.file("grandchild.txt").exists());
    assert!(!world.file("boss.txt").exists() && !world.file("stranger.txt").exists());
    Ok(())
}

#[tokio::test]
async fn a_wait_returns_new_and_open_approvals_decisions_and_finished_turns() -> anyhow::Result<()> {
    let mut world = scripted("wait").await?;
    let (_, _, boss) = boss(&world, "boss").await?;
    create_below(&world, &boss, "a").await?;
    create_below(&world, &boss, "b").await?;
    let (before, asked) = open(&boss, 2).await?;
    let [a, b] = [&asked[0], &asked[1]];

    // Without a cursor: all open approvals, at once, any number of times.
    for _ in 0..2 {
        let now = boss.call("loopback.wait", json!({})).await?;
        let mut open = list(&now["approvals"]);
        open.sort_by_key(|approval| text(&approval["session_name"]));
        assert_eq!((open, &now["still_open"]), (asked.clone(), &json!([])));
        assert_eq!(now["cursor"], before);
    }

    // With a cursor: newer approvals in full, known open ones as ids.
    create_below(&world, &boss, "c").await?;
    let news = boss.call("loopback.wait", json!({"cursor": before})).await?;
    let new: Vec<String> = list(&news["approvals"]).iter().map(|one| text(&one["session_name"])).collect();
    assert_eq!(new, ["c"], "{news}");
    let mut still_open = [text(&news["still_open"][0]), text(&news["still_open"][1])];
    let mut known = [text(&a["id"]), text(&b["id"])];
    still_open.sort();
    known.sort();
    assert_eq!(still_open, known);

    // The same cursor returns the same result again, even after a kill of the hub.
    world.hub.kill9().await?;
    world.hub.restart().await?;
    let again = boss.call("loopback.wait", json!({"cursor": before})).await?;
    assert_eq!((&again["approvals"], &again["cursor"]), (&news["approvals"], &news["cursor"]));

    // A decision of another caller is news. The caller's own decision is not.
    let operator = plexus_testkit::rpc::Rpc::new(world.hub.url(), &world.hub.token()?);
    let allow = |approval: &Value| json!({"approval_id": approval["id"], "approve": true});
    operator.call("loopback.respond", allow(a)).await?;
    let mut cursor = again["cursor"].clone();
    let (mut notices, mut finished) = (Vec::new(), Vec::new());
    boss.call("loopback.respond", allow(b)).await?;
    while finished.len() < 2 {
        let mut news = boss.call("loopback.wait", json!({"cursor": cursor})).await?;
        cursor = news["cursor"].take();
        notices.extend(list(&news["notices"]));
        finished.extend(list(&news["finished"]));
        assert_eq!(news["still_open"], json!([again["approvals"][0]["id"]]), "{news}");
    }
    let decided = json!({"type": "resolved", "approval_id": a["id"], "status": "allowed"});
    assert_eq!(notices, [decided]);
    finished.sort_by_key(|turn| text(&turn["session_name"]));
    for (turn, name) in finished.iter().zip(["a", "b"]) {
        let told = json!([turn["session_name"], turn["turn"], turn["status"], turn["result"]]);
        assert_eq!(told, json!([name, 1, "complete", format!("made {name}.txt")]));
    }
    Ok(())
}
