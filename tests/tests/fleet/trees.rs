//! Trees over hosts: a parent on one host decides for its children on another, and stops them.

use anyhow::Context as _;
use plexus_e2e::{LIMIT, World, processes_of, script, text, until};
use plexus_testkit::rpc::Rpc;
use serde_json::{Value, json};

use super::Fleet;

/// A session without a process, and a client with its token.
pub(super) struct Parent {
    pub(super) id: String,
    pub(super) rpc: Rpc,
}

impl Parent {
    pub(super) async fn create(world: &World, more: Value) -> anyhow::Result<Self> {
        let mut params = json!({"name": "lead", "working_dir": world.work, "hub_tools": true});
        for (field, value) in more.as_object().into_iter().flatten() {
            params[field] = value.clone();
        }
        let id = text(&world.call("claudecode.create", params).await?["id"]);
        let given = world.call("loopback.configure", json!({"session_id": id})).await?;
        let header = text(&given["mcp_config"]["mcpServers"]["plexus"]["headers"]["Authorization"]);
        let rpc = Rpc::new(world.hub.url(), header.trim_start_matches("Bearer "));
        Ok(Self { id, rpc })
    }

    /// Creates a child on another host, which runs these commands.
    pub(super) async fn child_on(
        &self,
        host: &str,
        world: &World,
        name: &str,
        commands: &[&str],
    ) -> anyhow::Result<String> {
        let mut steps: Vec<Value> =
            commands.iter().map(|command| json!({"tool": "Bash", "input": {"command": command}})).collect();
        steps.push(json!({"say": "done"}));
        let prompt = script(&Value::Array(steps));
        let params = json!({"name": name, "working_dir": world.work, "host": host, "prompt": prompt});
        let created = self.rpc.call("claudecode.create", params).await.context("create")?;
        Ok(text(&created["id"]))
    }

    /// Waits until it is asked for an approval.
    pub(super) async fn asked(&self, mut cursor: Value) -> anyhow::Result<Value> {
        let asked = async {
            loop {
                let params = json!({"cursor": cursor, "timeout_ms": 10_000});
                let news = self.rpc.call("loopback.wait", params).await?;
                if let Some(approval) = news["approvals"].as_array().and_then(|all| all.first()) {
                    return anyhow::Ok(approval.clone());
                }
                cursor = news["cursor"].clone();
            }
        };
        tokio::time::timeout(LIMIT, asked).await.context("the parent is asked")?
    }
}

#[tokio::test]
async fn a_parent_decides_for_a_child_on_another_host_within_its_scope() -> anyhow::Result<()> {
    let test = "a_parent_decides_for_a_child_on_another_host_within_its_scope";
    let Some(fleet) = Fleet::start(test, &["one", "two"]).await? else { return Ok(()) };
    let [one, _] = &fleet.hosts[..] else { unreachable!() };
    let parent = Parent::create(one, json!({"approve_scope": ["Bash(touch:*)"]})).await?;
    let cursor = parent.rpc.call("loopback.wait", json!({})).await?["cursor"].clone();
    let child = parent.child_on("two", one, "worker", &["touch allowed", "mkdir made"]).await?;

    let approval = parent.asked(cursor).await?;
    assert_eq!((&approval["session_id"], &approval["host"]), (&json!(child), &json!("two")), "{approval:#}");
    let allow = json!({"approval_id": approval["id"], "approve": true});
    parent.rpc.call("loopback.respond", allow).await?;

    // The next call is beyond its scope: the operator is asked, on any host, and the host of the child refuses the parent.
    let (_, beyond) = one.asked(&child).await?;
    assert_eq!(beyond["input"]["command"], "mkdir made", "{beyond:#}");
    assert_eq!(beyond["asked_of"], json!({"kind": "operator"}));
    let allow = json!({"approval_id": beyond["id"], "approve": true});
    let refused = parent.rpc.call("loopback.respond", allow).await.expect_err("beyond its scope");
    assert_eq!(refused.data["type"], "beyond_scope", "{refused}");
    one.allow(&beyond).await?;
    assert_eq!(one.ended(&child).await?["status"], "complete");
    assert!(one.file("allowed").exists() && one.file("made").exists());
    Ok(())
}

#[tokio::test]
async fn a_stop_reaches_the_whole_tree_on_all_hosts() -> anyhow::Result<()> {
    let test = "a_stop_reaches_the_whole_tree_on_all_hosts";
    let Some(fleet) = Fleet::start(test, &["one", "two"]).await? else { return Ok(()) };
    let [one, two] = &fleet.hosts[..] else { unreachable!() };
    let parent = Parent::create(one, json!({})).await?;
    let child = parent.child_on("two", one, "worker", &["touch made"]).await?;
    one.asked(&child).await?;
    assert!(!processes_of(&child).is_empty());
    one.call("claudecode.stop", json!({"session_id": parent.id})).await?;
    assert!(processes_of(&child).is_empty());
    assert_eq!(one.ended(&child).await?["status"], "interrupted");
    assert!(!one.file("made").exists());

    one.call("claudecode.delete", json!({"session_id": parent.id})).await?;
    assert_eq!(two.call("claudecode.list", json!({})).await?["sessions"], json!([]));
    Ok(())
}

/// Waits for an open budget approval that is as wanted.
pub(super) async fn more_is_asked(world: &World, is_wanted: fn(&Value) -> bool) -> anyhow::Result<Value> {
    let asked = async {
        loop {
            let pending = world.call("loopback.pending", json!({})).await?;
            let mut open = pending["approvals"].as_array().into_iter().flatten();
            if let Some(approval) = open.find(|it| it["kind"] == "budget" && is_wanted(it)) {
                return anyhow::Ok(approval.clone());
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(LIMIT, asked).await.context("more budget is asked for")?
}

#[tokio::test]
async fn a_budget_that_is_raised_on_one_host_releases_a_held_call_on_another() -> anyhow::Result<()> {
    let test = "a_budget_that_is_raised_on_one_host_releases_a_held_call_on_another";
    let Some(fleet) = Fleet::start(test, &["one", "two"]).await? else { return Ok(()) };
    let [one, two] = &fleet.hosts[..] else { unreachable!() };
    one.call("policy.add", json!({"rules": [{"rule": "Bash(touch *)", "effect": "allow"}]})).await?;
    let parent = Parent::create(one, json!({"budget": {"tool_calls": 1}})).await?;
    let commands = ["touch first", "touch second", "touch third"];
    let child = parent.child_on("two", one, "worker", &commands).await?;

    // The host of the parent sets the budget.
    let asked = more_is_asked(two, |_| true).await?;
    assert_eq!((&asked["session_id"], &asked["host"]), (&json!(parent.id), &json!("one")), "{asked:#}");
    assert!(one.file("first").exists() && !one.file("second").exists());
    let raised = json!({"session_id": parent.id, "budget": {"tool_calls": 2}});
    one.call("claudecode.set_budget", raised).await?;
    until("the second call runs", || one.file("second").exists()).await?;

    // The host of the child answers the next approval.
    let asked = more_is_asked(two, |_| true).await?;
    assert!(!one.file("third").exists());
    two.respond(&asked, json!({"approve": true, "updated_input": {"more": 1}})).await?;
    assert_eq!(two.ended(&child).await?["status"], "complete");
    assert!(one.file("third").exists());
    let got = one.call("claudecode.get", json!({"session_id": parent.id})).await?;
    let budget = &got["session"]["budget"]["tool_calls"];
    assert_eq!((&budget["limit"], &budget["used"]), (&json!(3), &json!(3)), "{got:#}");
    Ok(())
}
