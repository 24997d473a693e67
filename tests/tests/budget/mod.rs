//! Budgets of a session and its descendants: held calls, refused and interrupted turns, and grants from the budget of the
//! parent. No grant is lost or repeated when the hub is killed.

mod hub_kills;
mod shares;

use anyhow::Context as _;
use plexus_e2e::{Setup, World, events, over, processes_of, script, text, until};
use plexus_testkit::model::Step;
use plexus_testkit::rpc::{CallError, Listener};
use serde_json::{Value, json};

async fn scripted() -> anyhow::Result<World> {
    let setup = Setup::scripted().with_config("durability = \"normal\"");
    setup.world("budget").await?.context("the scripted agent is always available")
}

fn kind(error: &CallError) -> &str {
    error.kind.as_deref().unwrap_or_default()
}

/// A prompt with these commands, one after the other.
fn calls(commands: &[&str]) -> String {
    let step = |command: &&str| json!({"tool": "Bash", "input": {"command": command}});
    let mut steps: Vec<Value> = commands.iter().map(step).collect();
    steps.push(json!({"say": "done"}));
    script(&json!(steps))
}

/// The commands that ran, in order.
fn ran(world: &World) -> Vec<String> {
    world.ran().iter().map(|call| text(&call["input"]["command"])).collect()
}

/// One limit of a session's budget: granted, used, left.
async fn budget_of(world: &World, session: &str, limit: &str) -> anyhow::Result<Value> {
    let got = world.call("claudecode.get", json!({"session_id": session})).await?;
    let row = &got["session"]["budget"][limit];
    Ok(json!([row["limit"], row["used"], row["left"]]))
}

/// Waits for the budget approval of a session.
async fn budget_approval(world: &World, session: &str) -> anyhow::Result<Value> {
    let (poll, approval) = world.asked(session).await?;
    assert_eq!((&approval["kind"], &approval["session_id"]), (&json!("budget"), &json!(session)), "{poll:#}");
    assert_eq!(poll["attention"], json!(["budget"]));
    Ok(approval)
}

async fn a_call_beyond_the_budget_is_held_until_more_is_granted(world: World) -> anyhow::Result<()> {
    let touch =
        |name: &str| Step::tool("Bash", json!({"command": format!("touch {name}"), "description": "a step"}));
    world.model.script("FIRST", vec![touch("a"), touch("b"), Step::text("done")]);
    world.model.script("SECOND", vec![touch("c"), Step::text("never said")]);
    world.model.script("THIRD", vec![touch("d"), Step::text("done again")]);
    let session = world.create("worker", json!({"budget": {"tool_calls": 1}})).await?;
    world.chat(&session, "FIRST").await?;
    world.allow(&world.asked(&session).await?.1).await?;
    let more = world
        .poll_until(&session, |poll| {
            // The hub sets the deadline in a separate commit.
            let open = &poll["pending_approvals"][0];
            open["kind"] == "budget" && open["expires_at"].is_u64()
        })
        .await?["pending_approvals"][0]
        .clone();
    assert_eq!(more["input"]["limit"], "tool_calls", "{more:#}");
    assert_eq!(json!([more["input"]["used"], more["input"]["granted"]]), json!([1, 1]));
    assert!(world.file("a").exists() && !world.file("b").exists());
    assert_eq!(budget_of(&world, &session, "tool_calls").await?, json!([1, 1, 0]));
    // With the grant doubled, the call continues at the gate, where it needs approval.
    world.allow(&more).await?;
    let ask = world.poll_until(&session, |poll| poll["pending_approvals"][0]["kind"] == "tool").await?;
    assert!(!world.file("b").exists());
    world.allow(&ask["pending_approvals"][0]).await?;
    let ended = world.ended(&session).await?;
    assert_eq!((&ended["status"], world.file("b").exists()), (&json!("complete"), true), "{ended:#}");
    assert_eq!(budget_of(&world, &session, "tool_calls").await?, json!([2, 2, 0]));

    world.chat(&session, "SECOND").await?;
    let more = budget_approval(&world, &session).await?;
    world.respond(&more, json!({"approve": false, "message": "enough"})).await?;
    let ended = world.ended(&session).await?;
    assert_eq!(ended["status"], "interrupted", "{ended:#}");
    let last = &events(&ended, "error")[0];
    assert_eq!(last["reason"], "budget_exhausted");
    assert!(
        text(&last["message"]).contains("tool_calls") && text(&last["message"]).contains("enough"),
        "{last}"
    );
    assert!(!world.file("c").exists());

    // An interrupt ends the turn and withdraws the budget approval.
    world.model.script("STUCK", vec![touch("c"), Step::text("never said")]);
    world.chat(&session, "STUCK").await?;
    let more = budget_approval(&world, &session).await?;
    world.call("claudecode.interrupt", json!({"session_id": session})).await?;
    assert_eq!(world.ended(&session).await?["status"], "interrupted");
    let got = world.call("loopback.get", json!({"approval_id": more["id"]})).await?;
    assert_eq!(got["approval"]["status"], "withdrawn", "{got:#}");

    let raised =
        world.call("claudecode.set_budget", json!({"session_id": session, "budget": {"tool_calls": 5}}));
    assert_eq!(raised.await?["budget"]["tool_calls"], json!({"limit": 5, "used": 2, "left": 3}));
    world.chat(&session, "THIRD").await?;
    world.allow(&world.asked(&session).await?.1).await?;
    let ended = world.ended(&session).await?;
    assert_eq!((&ended["status"], world.file("d").exists()), (&json!("complete"), true), "{ended:#}");
    assert!(!world.run_dir(&session, 2).exists(), "the same process ran all the time");
    Ok(())
}

/// The cost of a turn is known at its end. Within a turn, the agent's own limit bounds the cost.
async fn the_agent_ends_a_turn_that_exceeds_its_cost_budget(world: World) -> anyhow::Result<()> {
    let touch =
        |name: &str| Step::tool("Bash", json!({"command": format!("touch {name}"), "description": "a step"}));
    world.model.script("COSTLY", vec![touch("a"), touch("b"), touch("c"), Step::text("done")]);
    world.model.script("AGAIN", vec![touch("d"), Step::text("done again")]);
    let given = json!({"policy": "allow_all", "budget": {"cost_usd": 0.000_001}});
    let session = world.create("costly", given).await?;
    world.chat(&session, "COSTLY").await?;
    let ended = world.ended(&session).await?;
    assert_eq!((&ended["status"], world.file("c").exists()), (&json!("interrupted"), false), "{ended:#}");
    let last = &events(&ended, "error")[0];
    assert_eq!(last["reason"], "budget_exhausted");
    assert!(text(&last["message"]).contains("cost_usd"), "{last}");
    let row = budget_of(&world, &session, "cost_usd").await?;
    assert!(row[1].as_f64() > row[0].as_f64() && row[2] == 0, "the overdraft is counted: {row}");
    let again = json!({"session_id": session, "prompt": "AGAIN"});
    assert_eq!(kind(&world.refused("claudecode.chat_async", again.clone()).await?), "budget_exhausted");
    world.call("claudecode.set_budget", json!({"session_id": session, "budget": {"cost_usd": 100}})).await?;
    world.call("claudecode.chat_async", again).await?;
    let ended = world.ended(&session).await?;
    assert_eq!((&ended["status"], world.file("d").exists()), (&json!("complete"), true), "{ended:#}");
    Ok(())
}

/// Claude Code reports the end of the turn, and requests the call of that turn before or after it.
async fn a_call_that_is_requested_at_the_cost_limit_never_runs(world: World) -> anyhow::Result<()> {
    world.model.script("COSTLY", vec![Step::tool("Bash", json!({"command": "touch a"})), Step::text("done")]);
    let session = world.create("costly", json!({"budget": {"cost_usd": 0.000_001}})).await?;
    world.chat(&session, "COSTLY").await?;
    let ended = world.ended(&session).await?;
    assert_eq!(events(&ended, "error")[0]["reason"], "budget_exhausted", "{ended:#}");
    until("the process is gone", || processes_of(&session).is_empty()).await?;
    let pending = world.call("loopback.pending", json!({})).await?;
    assert_eq!(pending["approvals"], json!([]), "no approval of the ended turn is open");
    let found = world.call("claudecode.get", json!({"session_id": session})).await?;
    assert_eq!(found["session"]["turn"], 1, "no second turn: {found:#}");
    assert!(!world.file("a").exists());
    Ok(())
}

over!(channels:
    a_call_beyond_the_budget_is_held_until_more_is_granted,
    a_call_that_is_requested_at_the_cost_limit_never_runs,
    the_agent_ends_a_turn_that_exceeds_its_cost_budget
);

#[tokio::test]
async fn raising_the_budget_releases_a_held_call() -> anyhow::Result<()> {
    let world = scripted().await?;
    let session = world.create("worker", json!({"policy": "allow_all", "budget": {"tool_calls": 1}})).await?;
    let mut stream = Listener::open(world.hub.url(), "/approvals/events", &world.hub.token()?, None).await?;
    world.chat(&session, &calls(&["one", "two"])).await?;
    let more = budget_approval(&world, &session).await?;
    let told: Value = serde_json::from_str(&stream.next().await?.context("an event")?.data)?;
    assert_eq!((&told["type"], &told["approval"]["id"]), (&json!("asked"), &more["id"]), "{told:#}");
    world.call("claudecode.set_budget", json!({"session_id": session, "budget": {"tool_calls": 2}})).await?;
    assert_eq!(world.ended(&session).await?["status"], "complete");
    let got = world.call("loopback.get", json!({"approval_id": more["id"]})).await?;
    assert_eq!(got["approval"]["status"], "withdrawn", "{got:#}");
    let rows = world.call("audit.list", json!({"session_id": session})).await?;
    let set =
        rows["rows"].as_array().into_iter().flatten().filter(|row| row["entry"]["status"] == "set_budget");
    let given: Vec<&Value> = set.map(|row| &row["entry"]["detail"]["budget"]["tool_calls"]).collect();
    assert_eq!(given, [&json!(1), &json!(2)], "with the session, and later");
    Ok(())
}

#[tokio::test]
async fn a_budget_approval_is_answered_by_no_rule_and_no_other_field() -> anyhow::Result<()> {
    let world = scripted().await?;
    let rules = json!([{"rule": "budget", "effect": "allow"}, {"rule": "Bash", "effect": "allow"}]);
    let session = world.create("worker", json!({"rules": rules, "budget": {"tool_calls": 1}})).await?;
    world.chat(&session, &calls(&["one", "two"])).await?;
    let more = budget_approval(&world, &session).await?;
    let added = world.call("policy.add", json!({"rules": [{"rule": "budget", "effect": "deny"}]})).await?;
    assert_eq!(added["settled"].as_array().map_or(0, Vec::len), 0, "{added}");
    for (field, value) in [
        ("remember", json!({"rule": "Bash"})),
        ("answers", json!({"a": "b"})),
        ("mode", json!("plan")),
        ("updated_input", json!({"more": 0})),
        ("updated_input", json!({"most": 1})),
        ("updated_input", json!({"more": 1.5})),
    ] {
        let answer = json!({"approval_id": more["id"], "approve": true, (field): value});
        let refused = world.refused("loopback.respond", answer).await?;
        assert_eq!((kind(&refused), &refused.data["field"]), ("invalid_params", &json!(field)), "{refused}");
    }
    assert_eq!(world.call("loopback.pending", json!({})).await?["approvals"][0]["id"], more["id"]);
    world.respond(&more, json!({"approve": true, "updated_input": {"more": 4}})).await?;
    assert_eq!(world.ended(&session).await?["status"], "complete");
    assert_eq!(budget_of(&world, &session, "tool_calls").await?, json!([5, 2, 3]));
    Ok(())
}

#[tokio::test]
async fn a_turn_without_wall_time_requests_more_and_is_interrupted_when_denied() -> anyhow::Result<()> {
    let world = scripted().await?;
    let session = world.create("slow", json!({"policy": "allow_all", "budget": {"wall_secs": 1}})).await?;
    world.chat(&session, &script(&json!([{"wait_file": world.file("never")}, {"say": "done"}]))).await?;
    let more = budget_approval(&world, &session).await?;
    assert_eq!(more["input"]["limit"], "wall_secs");
    let (wall, children) = (budget_of(&world, &session, "wall_secs").await?, json!([1, 0]));
    assert!(wall[1].as_f64() >= Some(1.0) && json!([wall[0], wall[2]]) == children, "{wall}");
    world.respond(&more, json!({"approve": true, "updated_input": {"more": 1}})).await?;
    let again = world
        .poll_until(&session, |poll| {
            let open = &poll["pending_approvals"][0];
            open["kind"] == "budget" && open["id"] != more["id"]
        })
        .await?["pending_approvals"][0]
        .clone();
    world.respond(&again, json!({"approve": false})).await?;
    let ended = world.ended(&session).await?;
    assert_eq!(ended["status"], "interrupted", "{ended:#}");
    assert!(text(&events(&ended, "error")[0]["message"]).contains("wall_secs"), "{ended:#}");
    let told = events(&ended, "system");
    assert!(told.iter().any(|event| event["subtype"] == "budget"), "it is reported at 80 %: {ended:#}");
    let refused =
        world.refused("claudecode.chat_async", json!({"session_id": session, "prompt": "more"})).await?;
    assert_eq!((kind(&refused), &refused.data["limit"]), ("budget_exhausted", &json!("wall_secs")));
    Ok(())
}

#[tokio::test]
async fn an_invalid_budget_is_refused_by_field_name() -> anyhow::Result<()> {
    let world = scripted().await?;
    let create = |budget: Value| json!({"name": "a", "working_dir": world.work, "budget": budget});
    for (budget, field) in [
        (json!({"tool_calls": 0}), "budget.tool_calls"),
        (json!({"cost_usd": -1}), "budget.cost_usd"),
        (json!({"wall_secs": 10_000_000_000_u64}), "budget.wall_secs"),
    ] {
        let refused = world.refused("claudecode.create", create(budget)).await?;
        assert_eq!((kind(&refused), &refused.data["field"]), ("invalid_params", &json!(field)), "{refused}");
    }
    for (budget, word) in
        [(json!({"usd": 1}), "usd"), (json!({"turns": "many"}), "many"), (json!(7), "budget")]
    {
        let refused = world.refused("claudecode.create", create(budget)).await?;
        assert!(refused.message.contains(word), "{refused}");
    }
    let session = world.create("a", json!({})).await?;
    let refused =
        world.refused("claudecode.set_budget", json!({"session_id": session, "budget": {}})).await?;
    assert_eq!((kind(&refused), &refused.data["field"]), ("invalid_params", &json!("budget")));
    Ok(())
}
