//! Rows of a runner that other hubs cannot read. They hide no rows of other hosts.

use plexus_protocol::SessionId;
use plexus_store::{Ledger as _, OpenFilter, Store as _};
use serde_json::Value;

use super::Hosts;

/// What the runner stores. Valid JSON of the wrong shape, because the database refuses a configuration that is no JSON.
const UNREADABLE: [&str; 4] = [
    "UPDATE sessions SET config = '{}' WHERE id = '{worker}'",
    "INSERT INTO rules (session, entry, authority, made_by, created_at) VALUES ('{child}', 'no json', 'nobody', '{}', 1)",
    "UPDATE turns SET progress = 'no json' WHERE session = '{worker}'",
    "UPDATE approvals SET question = replace(question, '\"created_at\"', '\"strange\"') WHERE id = '{asked-by-worker}'",
];

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_runner_that_cannot_be_read_hide_no_others() {
    let test = "rows_of_a_runner_that_cannot_be_read_hide_no_others";
    let Some(hosts) = Hosts::new(test).await else { return };
    for sql in UNREADABLE {
        let sql = format!("SET search_path = plexus_host, plexus; {}", hosts.named(sql));
        hosts.server.psql_as(&hosts.role(), &hosts.database, &sql).unwrap();
    }
    let store = &hosts.one;
    let boss = hosts.boss.session;
    let known = |ids: Vec<SessionId>| assert!(ids.contains(&boss) && !ids.contains(&hosts.worker.session));
    known(store.sessions().await.unwrap().iter().map(|row| row.id).collect());
    known(store.sessions_with_state().await.unwrap().iter().map(|session| session.row.id).collect());
    known(store.newest_sessions(10).await.unwrap().iter().map(|row| row.id).collect());
    let open = store.open_approvals(OpenFilter::All).await.unwrap();
    let open: Vec<_> = open.iter().map(|row| row.approval.id).collect();
    assert_eq!(open, [hosts.boss.approval]);
    let feed = store.feed_of_all(0, 100).await.unwrap();
    let shown = store.feed_approvals(None, 0, feed.last().unwrap().number).await.unwrap();
    assert!(shown.iter().all(|row| row.approval.id == hosts.boss.approval) && !shown.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_of_a_runner_that_cannot_be_read_denies_all_calls_of_its_session() {
    let test = "a_rule_of_a_runner_that_cannot_be_read_denies_all_calls_of_its_session";
    let Some(hosts) = Hosts::new(test).await else { return };
    let sql = format!("SET search_path = plexus_host, plexus; {}", hosts.named(UNREADABLE[1]));
    hosts.server.psql_as(&hosts.role(), &hosts.database, &sql).unwrap();
    let rules = hosts.one.rules().await.unwrap();
    let [rule] = &rules.rules[..] else { panic!("{rules:?}") };
    // The policy denies all calls because of a rule without an entry.
    assert_eq!((rule.rule.session, &rule.rule.entry), (Some(hosts.child), &Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_stores_only_json_as_a_configuration() {
    let test = "a_runner_stores_only_json_as_a_configuration";
    let Some(hosts) = Hosts::new(test).await else { return };
    let set =
        |config: &str| format!("UPDATE sessions SET config = '{config}' WHERE id = '{{worker}}' RETURNING 1");
    hosts.refuses("store a configuration that is no JSON", &set("no json"), &set("{}"));
}
