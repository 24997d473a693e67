//! Sessions and everything that belongs to them.

use plexus_protocol::ApprovalStatus;
use plexus_store::{Ledger as _, Store as _};

use crate::Hosts;
use crate::common::{NOW, allows};

/// Refused for a session of another host, allowed for an own one.
const WRITES: &[(&str, &str)] = &[
    (
        "allow",
        "UPDATE approvals SET status = 'allowed', decision = '{}', resolved_at = 1 WHERE id = '{approval}'",
    ),
    (
        "deny",
        "UPDATE approvals SET status = 'denied', decision = '{}', resolved_at = 1 WHERE id = '{approval}'",
    ),
    (
        "withdraw",
        "UPDATE approvals SET status = 'withdrawn', decision = '{}', resolved_at = 1 WHERE id = '{approval}'",
    ),
    ("delete an approval", "DELETE FROM approvals WHERE id = '{approval}'"),
    ("write an event", r#"INSERT INTO events VALUES ('{session}', 1, 77, '{"type":"content"}', 1)"#),
    ("delete events", "DELETE FROM events WHERE session = '{session}'"),
    ("start a turn", "INSERT INTO turns (session, turn, prompt, started_at) VALUES ('{session}', 9, '', 1)"),
    ("end a turn", "UPDATE turns SET cost_usd = 0 WHERE session = '{session}'"),
    (
        "start a run",
        "INSERT INTO runs (session, run, state, token_hash, created_at) VALUES ('{session}', 9, 'starting', 'mine', 1)",
    ),
    ("end a run", "UPDATE runs SET state = 'ended', ended_at = 1 WHERE session = '{session}'"),
    (
        "write a call",
        "INSERT INTO calls (session, run, turn, tool_use_id, tool_name, digest, request_id, verdict, at) \
         VALUES ('{session}', 1, 1, 't', 'Bash', '', '', '{}', 1)",
    ),
    ("rename a session", "UPDATE sessions SET name = 'x' WHERE id = '{session}'"),
    ("configure a session", "UPDATE sessions SET config = config || ' ' WHERE id = '{session}'"),
    ("delete a session", "UPDATE sessions SET deleted_at = 1 WHERE id = '{session}'"),
    (
        "change a conversation",
        "UPDATE nodes SET content = 'null' WHERE tree = (SELECT tree FROM sessions WHERE id = '{session}')",
    ),
    (
        "add to a conversation",
        "INSERT INTO nodes (id, tree, depth, role, preview, content, created_at) \
         SELECT '0000000d-0000-4000-8000-000000000000', tree, 1, 'user', '', 'null', 1 FROM sessions WHERE id = '{session}'",
    ),
    (
        "notify",
        r#"INSERT INTO feed (addressee, kind, session, data, at) VALUES ('operator', 'notice', '{session}', '{"type":"x"}', 1)"#,
    ),
    (
        "create a rule",
        "INSERT INTO rules (session, entry, authority, made_by, created_at) VALUES ('{session}', '{}', 'operator', '{}', 1)",
    ),
    ("wait for a budget", "INSERT INTO budget_waits VALUES ('{session}', '{approval}')"),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_resolves_and_writes_nothing_of_another_host() {
    let test = "a_runner_resolves_and_writes_nothing_of_another_host";
    let Some(hosts) = Hosts::new(test).await else { return };
    for (what, sql) in WRITES {
        let of = |who: &str| {
            let sql = sql.replace("{session}", &format!("{{{who}}}"));
            sql.replace("{approval}", &format!("{{asked-by-{who}}}")) + " RETURNING 1"
        };
        hosts.refuses(what, &of("boss"), &of("worker"));
    }
    let rule = "INSERT INTO rules (session, entry, authority, made_by, created_at) VALUES (NULL, '{}', 'operator', '{}', 1) RETURNING 1";
    hosts.refuses("create a rule for all", rule, "SELECT count(*) FROM rules");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_creates_sessions_of_its_own_host_below_parents_that_asked_for_them() {
    let test = "a_runner_creates_sessions_of_its_own_host_below_parents_that_asked_for_them";
    let Some(hosts) = Hosts::new(test).await else { return };
    let create = |host: &str, parent: &str, tree: &str| {
        format!(
            "INSERT INTO trees (id, created_at, ordinal, nodes) SELECT '0000000b-0000-4000-8000-000000000000', 1, max(ordinal) + 1, 1 FROM tree_numbers; \
             INSERT INTO nodes (id, tree, depth, role, preview, content, created_at) VALUES ('0000000c-0000-4000-8000-000000000000', '0000000b-0000-4000-8000-000000000000', 0, 'root', '', 'null', 1); \
             INSERT INTO sessions (id, name, answers_to, config, tree, head, beginning, created_at, host) \
             SELECT '00000000-0000-4000-8000-000000000000', 'new', '{parent}', config, {tree}, '0000000c-0000-4000-8000-000000000000', '0000000c-0000-4000-8000-000000000000', 1, '{host}' FROM sessions WHERE id = '{{worker}}' RETURNING 1"
        )
    };
    let operator = r#"{"kind":"operator"}"#;
    let allowed = create("two", operator, "'0000000b-0000-4000-8000-000000000000'");
    hosts.refuses(
        "create a session of another host",
        &create("one", operator, "'0000000b-0000-4000-8000-000000000000'"),
        &allowed,
    );
    hosts.refuses(
        "create a session in a conversation of another host",
        &create("two", operator, "(SELECT tree FROM sessions WHERE id = '{boss}')"),
        &allowed,
    );
    // The command of `boss` has a reply now.
    hosts.server.psql(&hosts.database, "UPDATE plexus.commands SET reply = '{}'").unwrap();
    let below = |parent: &str| {
        create(
            "two",
            &format!(r#"{{"kind":"session","id":"{parent}"}}"#),
            "'0000000b-0000-4000-8000-000000000000'",
        )
    };
    hosts.refuses(
        "create a session below one that has not asked for it",
        &below("{boss}"),
        &below("{worker}"),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_names_no_approval_and_no_conversation_of_another_host() {
    let test = "a_runner_names_no_approval_and_no_conversation_of_another_host";
    let Some(hosts) = Hosts::new(test).await else { return };
    let ask = |session: &str, named: &str| {
        format!(
            "INSERT INTO approvals (id, number, session, run, turn, tool_use_id, asked_of, channel, question) SELECT '0000000a-0000-4000-8000-000000000000', 0, '{session}', 1, 1, 't', 'operator', 'control', \
             '{{\"id\":\"0000000a-0000-4000-8000-000000000000\",\"session_id\":\"{named}\",\"tool_use_id\":\"t\",\"kind\":\"tool\",\"asked_of\":{{\"kind\":\"operator\"}}}}' RETURNING 1"
        )
    };
    hosts.refuses("ask for another session", &ask("{boss}", "{boss}"), &ask("{worker}", "{worker}"));
    hosts.refuses(
        "ask in the name of another session",
        &ask("{worker}", "{boss}"),
        &ask("{worker}", "{worker}"),
    );
    let other_head = "(SELECT head FROM sessions WHERE id = '{boss}')";
    let own_head = "(SELECT head FROM sessions WHERE id = '{worker}')";
    let head = |head: &str| format!("UPDATE sessions SET head = {head} WHERE id = '{{worker}}' RETURNING 1");
    hosts.refuses("continue a conversation of another host", &head(other_head), &head(own_head));
    let turn =
        |head: &str| format!("UPDATE turns SET head = {head} WHERE session = '{{worker}}' RETURNING 1");
    hosts.refuses("end a turn in a conversation of another host", &turn(other_head), &turn(own_head));
    let node = |above: &str| {
        format!(
            "INSERT INTO nodes (id, tree, parent, depth, role, preview, content, created_at) \
             SELECT '0000000d-0000-4000-8000-000000000000', tree, {above}, 1, 'user', '', '\"x\"', 1 FROM sessions WHERE id = '{{worker}}' RETURNING 1"
        )
    };
    hosts.refuses("add a message below one of another host", &node(other_head), &node(own_head));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_notifies_about_its_own_approvals_only() {
    let test = "a_runner_notifies_about_its_own_approvals_only";
    let Some(hosts) = Hosts::new(test).await else { return };
    let stream = |approval: &str| {
        format!(
            "INSERT INTO permit_streams VALUES ('e', '{{worker}}', 1, '{approval}', '1', NULL, 1) RETURNING 1"
        )
    };
    hosts.refuses(
        "wait for an answer to another host",
        &stream("{asked-by-boss}"),
        &stream("{asked-by-worker}"),
    );
    let mention = |session: &str, approval: &str| {
        format!(
            "INSERT INTO feed (addressee, kind, session, approval, turn, data, at) VALUES ('operator', 'resolved', '{session}', '{approval}', 1, '{{}}', 1) RETURNING 1"
        )
    };
    let own = mention("{worker}", "{asked-by-worker}");
    hosts.refuses(
        "say that an approval of another host is resolved",
        &mention("{boss}", "{asked-by-boss}"),
        &own,
    );
    hosts.refuses("name an approval of another host", &mention("{worker}", "{asked-by-boss}"), &own);
    let notify = |whom: &str| {
        format!(
            "INSERT INTO feed (addressee, kind, session, data, at) VALUES ('{whom}', 'notice', '{{worker}}', '{{}}', 1) RETURNING 1"
        )
    };
    hosts.refuses("notify an agent that is not above", &notify("session:{boss}"), &notify("operator"));
    let passed_over = |number: &str| {
        format!(
            "INSERT INTO asked_before SELECT 'operator', {number}, '{{asked-by-worker}}', TRUE FROM feed WHERE approval = '{{asked-by-worker}}' RETURNING 1"
        )
    };
    hosts.refuses(
        "take the number of a later request",
        &passed_over("number + 1000"),
        &passed_over("number"),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_of_a_runner_is_resolved_by_its_own_hub() {
    let test = "an_approval_of_a_runner_is_resolved_by_its_own_hub";
    let Some(hosts) = Hosts::new(test).await else { return };
    hosts.two.commit(NOW, vec![allows(hosts.worker.approval)]).await.unwrap();
    let row = hosts.one.approval(hosts.worker.approval).await.unwrap().unwrap();
    assert_eq!(row.approval.status, ApprovalStatus::Allowed);
    // A hub accepts the tokens of its own agents only: a runner could store one for an agent with any configuration.
    assert!(hosts.two.run_of_token("token-of-worker").await.unwrap().is_some());
    assert!(hosts.one.run_of_token("token-of-worker").await.unwrap().is_none());
    let refused = hosts.two.commit(NOW, vec![allows(hosts.boss.approval)]).await;
    assert!(refused.is_err(), "{refused:?}");
}
