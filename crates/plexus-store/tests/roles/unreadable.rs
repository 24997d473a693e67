//! Rows of a runner that other hubs do not expect. They hide no rows of other hosts, and give none of them another number.

use plexus_protocol::{AskedOf, Decider, SessionId};
use plexus_store::{Change, HostState, Ledger as _, OpenFilter, Store as _, StoreError};
use serde_json::Value;

use super::common::{NOW, ask, question};
use super::{Hosts, host_name};

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
        hosts.stores(sql);
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
    hosts.stores(UNREADABLE[1]);
    let rules = hosts.one.rules().await.unwrap();
    let [rule] = &rules.rules[..] else { panic!("{rules:?}") };
    // The policy denies all calls because of a rule without an entry.
    assert_eq!((rule.rule.session, &rule.rule.entry), (Some(hosts.child), &Value::Null));
}

/// A hub of a later version could have stored it. A hub that left it out would allow what it denies.
#[tokio::test(flavor = "multi_thread")]
async fn a_rule_for_all_sessions_that_cannot_be_read_is_not_left_out() {
    let test = "a_rule_for_all_sessions_that_cannot_be_read_is_not_left_out";
    let Some(hosts) = Hosts::new(test).await else { return };
    hosts.one.rules().await.unwrap();
    let rule =
        "INSERT INTO plexus.rules (entry, authority, made_by, created_at) VALUES ('{}', 'strange', '{}', 1)";
    hosts.server.psql(&hosts.database, rule).unwrap();
    let rules = hosts.one.rules().await;
    assert!(matches!(rules, Err(StoreError::Unusable(_))), "{:?}", rules.err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_stores_only_json_as_a_configuration() {
    let test = "a_runner_stores_only_json_as_a_configuration";
    let Some(hosts) = Hosts::new(test).await else { return };
    let set =
        |config: &str| format!("UPDATE sessions SET config = '{config}' WHERE id = '{{worker}}' RETURNING 1");
    hosts.refuses("store a configuration that is no JSON", &set("no json"), &set("{}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_stores_only_names_and_ids_of_sessions_that_can_be_read() {
    let test = "a_runner_stores_only_names_and_ids_of_sessions_that_can_be_read";
    let Some(hosts) = Hosts::new(test).await else { return };
    let rename =
        |name: &str| format!("UPDATE sessions SET name = '{name}' WHERE id = '{{worker}}' RETURNING 1");
    for bad in ["", "a/b", "a\nb", &"a".repeat(65)] {
        hosts.refuses("give a session a name that is none", &rename(bad), &rename("other"));
    }
    let insert = |id: &str| {
        format!(
            "INSERT INTO sessions (id, name, answers_to, config, tree, head, beginning, created_at, host) \
             SELECT '{id}', 'more', answers_to, config, tree, head, beginning, created_at, host FROM sessions \
             WHERE id = '{{worker}}' RETURNING 1"
        )
    };
    let good = "01900000-0000-7000-8000-000000000001";
    for bad in [format!("{{{good}}}"), good.replace('-', ""), good.replace("7000", "7A00")] {
        hosts.refuses(
            "create a session whose id is not written like all others",
            &insert(&bad),
            &insert(good),
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_stores_no_value_that_others_cannot_count_on_or_hold_in_memory() {
    let test = "a_runner_stores_no_value_that_others_cannot_count_on_or_hold_in_memory";
    let Some(hosts) = Hosts::new(test).await else { return };
    let event = |seq: &str, at: &str, text: &str| {
        format!(
            "INSERT INTO events (session, turn, seq, event, at) VALUES ('{{worker}}', 1, {seq}, {text}, {at}) RETURNING 1"
        )
    };
    let allowed = event("77", "1", "'{}'");
    hosts.refuses("take the last number", &event("9223372036854775807", "1", "'{}'"), &allowed);
    hosts.refuses("write before time began", &event("77", "-1", "'{}'"), &allowed);
    hosts.refuses("store a huge event", &event("77", "1", "repeat('x', 70000000)"), &allowed);
    let commit = |bytes: u32| {
        format!(
            "WITH next AS (UPDATE writer SET number = number + 1 RETURNING number) \
             INSERT INTO commits SELECT number, 'two', repeat('x', {bytes}), 1 FROM next RETURNING 1"
        )
    };
    hosts.refuses("record a huge commit", &commit(900_000_000), &commit(1000));
    let run = |number: i32| {
        format!(
            "INSERT INTO runs (session, run, state, created_at) VALUES ('{{worker}}', {number}, 'starting', 1) RETURNING 1"
        )
    };
    hosts.refuses("number a run", &run(-5), &run(5));
    let nodes = |count: i32| {
        format!(
            "UPDATE trees SET nodes = {count} WHERE id = (SELECT tree FROM sessions WHERE id = '{{worker}}') RETURNING 1"
        )
    };
    hosts.refuses("count nodes", &nodes(-4), &nodes(4));
    let budget = |own: &str| {
        format!(
            "INSERT INTO budgets (session, kind, granted, own, below, used) VALUES ('{{worker}}', 'turns', 1, {own}, 0, 0) RETURNING 1"
        )
    };
    hosts.refuses("reserve what nobody can add", &budget("9223372036854775807"), &budget("1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_names_the_parent_of_a_session_only_as_hubs_do() {
    let test = "a_runner_names_the_parent_of_a_session_only_as_hubs_do";
    let Some(hosts) = Hosts::new(test).await else { return };
    let insert = |parent: &str| {
        format!(
            "INSERT INTO sessions (id, name, answers_to, config, tree, head, beginning, created_at, host) \
             SELECT '01900000-0000-7000-8000-000000000001', 'more', '{parent}', config, tree, head, beginning, created_at, host \
             FROM sessions WHERE id = '{{worker}}' RETURNING 1"
        )
    };
    let good = r#"{"kind":"parent","id":"agent-x"}"#;
    for bad in [
        r#"{"kind": "parent","id":"agent-x"}"#,
        r#"{"id":"agent-x","kind":"parent"}"#,
        r#"{"kind":"parent","id":"agent\u002dx"}"#,
        r#"{"kind":"parent","id":"agent-x","id":"agent-x"}"#,
    ] {
        hosts.refuses(bad, &insert(bad), &insert(good));
    }
}

/// A runner can still store rows that other hubs cannot read. They are missing for these, and stop nothing.
#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_runner_that_cannot_be_read_are_missing_and_do_not_keep_it_from_being_lost() {
    let test = "rows_of_a_runner_that_cannot_be_read_are_missing_and_do_not_keep_it_from_being_lost";
    let Some(hosts) = Hosts::new(test).await else { return };
    for sql in UNREADABLE.into_iter().chain(["UPDATE runs SET state = 'strange' WHERE session = '{worker}'"])
    {
        hosts.stores(sql);
    }
    let store = &hosts.one;
    assert!(store.session(hosts.worker.session).await.unwrap().is_none());
    assert!(store.approval(hosts.worker.approval).await.unwrap().is_none());
    let lost = Change::SetHostState { host: host_name("two"), state: HostState::Lost, by: Decider::Operator };
    store.commit(NOW, vec![lost]).await.unwrap();
    let hosts_now = store.fleet().unwrap().hosts().await.unwrap();
    assert!(hosts_now.iter().any(|row| row.name == host_name("two") && row.state == HostState::Lost));
    // What can be read has ended.
    assert!(store.open_runs().await.unwrap().iter().all(|run| run.key.session == hosts.boss.session));
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_of_a_runner_that_cannot_be_read_hide_no_later_ones_of_the_feed() {
    let test = "entries_of_a_runner_that_cannot_be_read_hide_no_later_ones_of_the_feed";
    let Some(hosts) = Hosts::new(test).await else { return };
    let head = hosts.one.feed_head().await.unwrap();
    let entry = "INSERT INTO feed (addressee, kind, session, turn, data, at) SELECT 'operator', 'asked', '{worker}', 1, '{}', 1 \
        FROM generate_series(1, 7)";
    hosts.stores(entry);
    ask(&hosts.one, question(hosts.boss.session, 1, "toolu_later")).await;
    let operator = AskedOf::Operator.key();
    for limit in 1..=8 {
        let all = hosts.one.feed_of_all(head, limit).await.unwrap();
        let operators = hosts.one.feed(&operator, head, limit).await.unwrap();
        assert_eq!((all.len(), operators.len()), (1, 1), "{limit}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_a_runner_adds_to_the_feed_leaves_its_number_to_no_other_hub() {
    let test = "an_entry_that_a_runner_adds_to_the_feed_leaves_its_number_to_no_other_hub";
    let Some(hosts) = Hosts::new(test).await else { return };
    let asks = async |call: &str| {
        let approval = ask(&hosts.one, question(hosts.boss.session, 1, call)).await;
        hosts.one.approval(approval).await.unwrap().unwrap().number
    };
    let before = asks("toolu_before").await;
    // Not by a hub: it takes no lock, and records no transaction.
    let entry = "INSERT INTO feed (addressee, kind, session, turn, data, at) VALUES ('operator', 'notice', '{worker}', 1, '{}', 1)";
    hosts.stores(entry);
    let after = asks("toolu_after").await;
    assert_eq!(after, before + 2);
    let feed = hosts.one.feed_of_all(before, 100).await.unwrap();
    assert!(feed.iter().any(|entry| entry.number == after), "{feed:?}");
}
