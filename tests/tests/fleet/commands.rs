//! Commands between hubs.

use std::time::Duration;

use anyhow::Context as _;
use plexus_e2e::{text, until};
use plexus_testkit::postgres::Postgres;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::time::timeout;

use super::Fleet;

#[tokio::test]
async fn a_command_whose_caller_is_gone_is_not_executed() -> anyhow::Result<()> {
    let test = "a_command_whose_caller_is_gone_is_not_executed";
    let Some(fleet) = Fleet::start(test, &["one", "two"]).await? else { return Ok(()) };
    let [one, two] = &fleet.hosts[..] else { anyhow::bail!("two hosts") };
    let session = two.create("worker", json!({})).await?;
    let pid = Pid::from_raw(two.hub.pid().cast_signed()).context("its pid")?;
    let path = fleet.url.split('?').next().unwrap_or_default();
    let database = path.rsplit('/').next().unwrap_or_default();
    let commands = || {
        let server = Postgres::shared().context("PostgreSQL")?;
        server.psql(database, "SELECT count(*) FROM plexus.commands WHERE taken_in IS NULL")
    };

    kill_process(pid, Signal::STOP)?;
    let set = one.call("claudecode.set_model", json!({"session_id": session, "model": "other"}));
    assert!(timeout(Duration::from_secs(1), set).await.is_err(), "its host does not answer");
    until("the command is withdrawn", || commands().is_ok_and(|count| count == "0")).await?;
    kill_process(pid, Signal::CONT)?;

    let model = |model: &serde_json::Value| text(&model["session"]["model"]);
    assert_ne!(model(&one.call("claudecode.get", json!({"session_id": session})).await?), "other");
    one.call("claudecode.set_model", json!({"session_id": session, "model": "third"})).await?;
    assert_eq!(model(&one.call("claudecode.get", json!({"session_id": session})).await?), "third");
    Ok(())
}
