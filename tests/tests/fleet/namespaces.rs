//! Three machines: each hub is in a network namespace of its own, with the real Claude Code, and reaches PostgreSQL through a bridge. No hub can reach another one.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;
use plexus_e2e::{Channel, DoorKind, LIMIT, Setup, World, events, processes_of, text, until};
use plexus_testkit::model::{ScriptedModel, Step, tool_results};
use plexus_testkit::network::{Forward, Network, missing};
use plexus_testkit::postgres::Postgres;
use plexus_testkit::{require_claude, skip};
use serde_json::{Value, json};

use super::lost_host::host_is;

/// The versions of Claude Code on the three machines.
const CLIS: [&str; 3] = ["2.1.325", "2.1.197", "2.1.325"];
const HOSTS: [&str; 3] = ["one", "two", "three"];
/// The name of the child on each of the other hosts.
const CHILDREN: [(&str, &str); 2] = [("second", "two"), ("third", "three")];

/// Three hubs, and what connects them. The fields are dropped in this order.
struct Machines {
    hosts: Vec<World>,
    _database: Forward,
    network: Network,
}

impl Machines {
    async fn start(test: &str) -> anyhow::Result<Option<Self>> {
        if let Some(why) = missing() {
            skip(test, why);
            return Ok(None);
        }
        let Some(server) = Postgres::shared() else {
            skip(test, "PostgreSQL");
            return Ok(None);
        };
        if CLIS.iter().any(|version| require_claude(version, test).is_none()) {
            return Ok(None);
        }
        let network = Network::create(3)?;
        let database = network.forward_to_socket(server.socket()).await?;
        let url = format!("postgres://plexus@{}/{}?sslmode=disable", database.address, server.database()?);
        let mut hosts = Vec::new();
        for ((host, version), machine) in HOSTS.iter().zip(CLIS).zip(network.machines()) {
            let mut setup = Setup::cli(version, Channel::Control, DoorKind::Rpc)
                .with_config(&format!("[store]\nurl = \"{url}\"\nhost = \"{host}\""));
            setup.machine = Some(machine.clone());
            hosts.push(setup.world(test).await?.context("the CLI was found before")?);
        }
        Ok(Some(Self { hosts, _database: database, network }))
    }
}

fn call(tool: &str, input: Value) -> Step {
    Step::tool(format!("mcp__plexus__{tool}"), input)
}

fn bash(command: &str) -> Step {
    Step::tool("Bash", json!({"command": command, "description": "make a file"}))
}

/// Scripts a parent: it creates a child on each of the other hosts, allows what its scope permits, and waits until its children have finished.
fn script_parent(model: &ScriptedModel, work: &Path) {
    let (work, answered) = (work.to_owned(), Mutex::new(HashSet::new()));
    let next = move |request: &Value| {
        let results = tool_results(request);
        let results: Vec<Value> =
            results.iter().filter_map(|result| serde_json::from_str(&result.text).ok()).collect();
        let created = results.iter().filter(|result| result["type"] == "created").count();
        if let Some((name, host)) = CHILDREN.get(created) {
            let params =
                json!({"name": name, "working_dir": work, "host": host, "prompt": format!("CHILD-{name}")});
            return call("claudecode_create", params);
        }
        let all = |field: &'static str| {
            results.iter().flat_map(move |result| result[field].as_array().into_iter().flatten())
        };
        let mut finished: Vec<&Value> = all("finished").map(|turn| &turn["session_id"]).collect();
        finished.sort_unstable_by_key(|id| id.to_string());
        finished.dedup();
        if finished.len() == CHILDREN.len() {
            return Step::text("My children have finished.");
        }
        let mut answered = answered.lock().unwrap_or_else(PoisonError::into_inner);
        let permitted = |approval: &&Value| text(&approval["input"]["command"]).starts_with("touch");
        let mut open = all("approvals").filter(permitted);
        if let Some(approval) = open.find(|approval| answered.insert(text(&approval["id"]))) {
            return call("loopback_respond", json!({"approval_id": approval["id"], "approve": true}));
        }
        match results.iter().rev().find_map(|result| result["cursor"].as_u64()) {
            Some(cursor) => call("loopback_wait", json!({"cursor": cursor, "timeout_ms": 50_000})),
            None => call("loopback_wait", json!({})),
        }
    };
    model.script("SUPERVISE", vec![Step::from_fn(next); 100]);
}

/// Waits until a session with this name exists. Returns its id.
async fn session_named(world: &World, name: &str) -> anyhow::Result<String> {
    let found = async {
        loop {
            let listed = world.call("claudecode.list", json!({})).await?;
            let mut all = listed["sessions"].as_array().into_iter().flatten();
            if let Some(session) = all.find(|session| session["name"] == name) {
                return anyhow::Ok(text(&session["id"]));
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(LIMIT, found).await.with_context(|| format!("session {name}"))?
}

/// Waits until the operator is asked for this command.
async fn operator_is_asked(world: &World, session: &str, command: &str) -> anyhow::Result<Value> {
    let is_it = |approval: &Value| {
        approval["input"]["command"] == command && approval["asked_of"]["kind"] == "operator"
    };
    let poll = world
        .poll_until(session, |poll| poll["pending_approvals"].as_array().into_iter().flatten().any(is_it))
        .await
        .with_context(|| command.to_owned())?;
    let mut open = poll["pending_approvals"].as_array().into_iter().flatten();
    open.find(|approval| is_it(approval)).cloned().context("it was there")
}

// The connections to the machines are needed while the hubs are dropped, which waits.
#[tokio::test(flavor = "multi_thread")]
async fn a_parent_supervises_children_on_two_other_machines() -> anyhow::Result<()> {
    let test = "a_parent_supervises_children_on_two_other_machines";
    let Some(mut machines) = Machines::start(test).await? else { return Ok(()) };
    let [one, two, three] = &mut machines.hosts[..] else { unreachable!() };
    script_parent(&one.model, &one.work);
    let child = |name: &str| {
        vec![bash(&format!("touch {name}-1")), bash(&format!("mkdir {name}-2")), Step::text("Made.")]
    };
    two.model.script("CHILD-second", child("second"));
    three.model.script("CHILD-third", child("third"));
    let more = json!({"prompt": "SUPERVISE", "hub_tools": true, "approve_scope": ["Bash(touch:*)"]});
    let parent = one.create("parent", more).await?;

    // The parent allows the first call of each child. The second is beyond its scope: the operator is asked, on the first machine.
    let (second, third) = (session_named(one, "second").await?, session_named(one, "third").await?);
    let of_second = operator_is_asked(one, &second, "mkdir second-2").await?;
    operator_is_asked(one, &third, "mkdir third-2").await?;
    assert_eq!((&of_second["host"], &of_second["session_id"]), (&json!("two"), &json!(second)));
    assert!(one.file("second-1").exists() && one.file("third-1").exists());

    // The hub of the second machine is killed. Its agent waits, and the next hub continues with it.
    two.hub.kill9().await?;
    assert!(!processes_of(&second).is_empty());
    two.hub.restart().await?;
    host_is(one, "two", "connected").await?;
    one.allow(&of_second).await?;
    let ended = one.ended(&second).await?;
    assert_eq!(ended["status"], "complete", "{ended:#}");
    assert!(one.file("second-2").exists());
    let by: Vec<Value> =
        events(&ended, "approval_resolved").iter().map(|event| event["by"].clone()).collect();
    assert_eq!(by, [json!({"kind": "session", "id": parent}), json!({"kind": "operator"})], "{ended:#}");

    // The third machine is cut off and declared lost. The parent learns of it and finishes.
    machines.network.machines()[2].unplug()?;
    host_is(one, "three", "unreachable").await?;
    assert!(!processes_of(&third).is_empty(), "its agent waits at the gate");
    one.call("host.lose", json!({"host": "three"})).await?;
    let lost = one.ended(&third).await?;
    assert_eq!(events(&lost, "error")[0]["reason"], "host_lost", "{lost:#}");
    let ended = one.ended(&parent).await?;
    assert_eq!(
        (&ended["status"], &text(&events(&ended, "complete")[0]["result"])[..]),
        (&json!("complete"), "My children have finished."),
        "{ended:#}"
    );

    // When it is back, its hub ends the agent and stops.
    machines.network.machines()[2].plug()?;
    let status = tokio::time::timeout(LIMIT, three.hub.wait()).await.context("the hub stops")??;
    assert_eq!(status.code(), Some(12), "{}", three.hub.stderr());
    until("the agent ends", || processes_of(&third).is_empty()).await?;
    assert!(!one.file("third-2").exists());
    assert_eq!(text(&one.call("audit.verify", json!({})).await?["type"]), "ok");
    Ok(())
}
