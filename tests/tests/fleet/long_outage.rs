//! A hub that was cut off from the database for so long that the records of the other hubs' commits are deleted. When it is back, it examines everything
//! that it waits for.

use anyhow::Context as _;
use plexus_e2e::chaos::fleet::{Link, State};
use plexus_e2e::{World, events, script, until};
use plexus_testkit::postgres::Postgres;
use serde_json::json;

use super::Fleet;
use super::trees::{Parent, more_is_asked};

/// Two hubs. The link of the second one can be cut.
pub(super) struct CutOff {
    pub(super) fleet: Fleet,
    server: &'static Postgres,
    database: String,
    pub(super) link: Link,
}

impl CutOff {
    pub(super) async fn start(test: &str) -> anyhow::Result<Option<Self>> {
        let Some(mut fleet) = Fleet::start(test, &["one"]).await? else { return Ok(None) };
        let server = Postgres::shared().context("PostgreSQL")?;
        let path = fleet.url.split('?').next().unwrap_or_default();
        let database = path.rsplit('/').next().unwrap_or_default().to_owned();
        let link = Link::start(server.socket())?;
        fleet.url = link.url(&database);
        let two = fleet.setup("two").world(test).await?.context("the scripted agent")?;
        fleet.hosts.push(two);
        Ok(Some(Self { fleet, server, database, link }))
    }

    pub(super) fn hosts(&self) -> (&World, &World) {
        (&self.fleet.hosts[0], &self.fleet.hosts[1])
    }

    /// Executes a statement as the owner of the database.
    pub(super) fn sql(&self, statement: &str) -> anyhow::Result<String> {
        self.server.psql(&self.database, statement)
    }

    /// Deletes the records of all commits, and reconnects the second hub.
    fn reconnect(&self) -> anyhow::Result<()> {
        self.sql("DELETE FROM plexus.commits")?;
        self.link.set(State::Sound);
        Ok(())
    }
}

#[tokio::test]
async fn a_denial_during_a_long_outage_reaches_the_agent_afterwards() -> anyhow::Result<()> {
    let test = "a_denial_during_a_long_outage_reaches_the_agent_afterwards";
    let Some(cut_off) = CutOff::start(test).await? else { return Ok(()) };
    let (one, two) = cut_off.hosts();
    let prompt = script(&json!([{"tool": "Bash", "input": {"command": "touch made"}}, {"say": "done"}]));
    let session = two.create("worker", json!({"prompt": prompt})).await?;
    let (_, approval) = one.asked(&session).await?;
    cut_off.link.set(State::Cut);
    one.respond(&approval, json!({"approve": false, "message": "not now"})).await?;
    cut_off.reconnect()?;
    let poll = one.ended(&session).await?;
    assert!(events(&poll, "tool_result")[0]["output"].to_string().contains("not now"), "{poll:#}");
    assert!(!two.file("made").exists());
    Ok(())
}

#[tokio::test]
async fn a_budget_raised_during_a_long_outage_releases_held_calls_afterwards() -> anyhow::Result<()> {
    let test = "a_budget_raised_during_a_long_outage_releases_held_calls_afterwards";
    let Some(cut_off) = CutOff::start(test).await? else { return Ok(()) };
    let (one, two) = cut_off.hosts();
    one.call("policy.add", json!({"rules": [{"rule": "Bash(touch *)", "effect": "allow"}]})).await?;
    let parent = Parent::create(one, json!({"budget": {"tool_calls": 1}})).await?;
    let child = parent.child_on("two", one, "worker", &["touch first", "touch second"]).await?;
    // Its call waits for the approval of a session on the other host.
    let is_held = |event: &serde_json::Value| event["subtype"] == "held";
    two.poll_until(&child, |poll| events(poll, "system").iter().any(is_held)).await?;
    assert!(one.file("first").exists() && !one.file("second").exists());

    cut_off.link.set(State::Cut);
    let raised = json!({"session_id": parent.id, "budget": {"tool_calls": 2}});
    one.call("claudecode.set_budget", raised).await?;
    cut_off.reconnect()?;
    until("the held call runs", || one.file("second").exists()).await?;
    assert_eq!(one.ended(&child).await?["status"], "complete");
    Ok(())
}

#[tokio::test]
async fn a_budget_approval_of_a_long_outage_gets_its_deadlines_afterwards() -> anyhow::Result<()> {
    let test = "a_budget_approval_of_a_long_outage_gets_its_deadlines_afterwards";
    let Some(cut_off) = CutOff::start(test).await? else { return Ok(()) };
    let (one, two) = cut_off.hosts();
    one.call("policy.add", json!({"rules": [{"rule": "Bash", "effect": "allow"}]})).await?;
    let parent = Parent::create(two, json!({"budget": {"tool_calls": 1}})).await?;
    let waits = "touch started; while [ ! -e go ]; do sleep 0.02; done";
    let child = parent.child_on("one", two, "worker", &[waits, "touch second"]).await?;
    until("the first call runs", || two.file("started").exists()).await?;

    // The hub of the child requests more budget for the session of the other host, which cannot know it.
    cut_off.link.set(State::Cut);
    std::fs::write(two.file("go"), "")?;
    let asked = more_is_asked(one, |_| true).await?;
    assert_eq!(asked["session_id"], json!(parent.id), "{asked:#}");
    assert!(asked["expires_at"].is_null(), "{asked:#}");
    cut_off.reconnect()?;
    more_is_asked(one, |approval| approval["expires_at"].is_u64()).await?;
    one.call("claudecode.stop", json!({"session_id": child})).await?;
    Ok(())
}
