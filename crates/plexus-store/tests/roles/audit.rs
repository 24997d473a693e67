//! The audit log, which all hosts share.

use plexus_protocol::audit::AuditHead;
use plexus_store::{AuditCheck, AuditFilter, AuditFrom, Store as _};

use crate::Hosts;
use crate::common::NOW;

/// Appends an audit entry about a session that continues the log.
fn audit(session: &str) -> String {
    audit_with(
        &format!(
            r#"{{"at":{NOW},"kind":"gate","status":"allow","by":{{"kind":"hub"}},"session_id":"{session}"}}"#
        ),
        1,
        session,
    )
}

fn audit_with(entry: &str, step: i64, session: &str) -> String {
    format!(
        "INSERT INTO audit (number, hash, at, kind, who, session, entry) SELECT n, encode(sha256(convert_to(hash || E'\\n' || n || E'\\n' || entry, 'UTF8')), 'hex'), \
         {NOW}, 'gate', 'hub', '{session}', entry FROM (SELECT number + {step} AS n, hash, '{entry}'::TEXT AS entry FROM audit_tail) e RETURNING number"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_writes_the_audit_log_for_itself_and_breaks_nothing() {
    let test = "a_runner_writes_the_audit_log_for_itself_and_breaks_nothing";
    let Some(hosts) = Hosts::new(test).await else { return };
    let own = audit("{worker}");
    hosts.refuses("write about another host", &audit("{boss}"), &own);
    let entry = &r#"{"at":5,"kind":"gate","status":"allow","by":{"kind":"hub"},"session_id":"{worker}"}"#
        .replace("\"at\":5", &format!("\"at\":{NOW}"));
    hosts.refuses("leave a gap", &audit_with(entry, 2, "{worker}"), &own);
    hosts.refuses("write a number twice", &audit_with(entry, 0, "{worker}"), &own);
    hosts.refuses("write another hash", &own.replace("encode(", "repeat('0', 64) || encode("), &own);
    for (what, from, to) in [
        ("another time than the column", "\"at\":", "\"at\":1"),
        ("another kind", "\"gate\"", "\"decision\""),
        ("another decider", "\"hub\"", "\"operator\""),
        ("another session", "{worker}", "{boss}"),
        ("a decider that cannot be read", "{\"kind\":\"hub\"}", "{\"kind\":\"hub\",\"kind\":\"hub\"}"),
        ("a kind that cannot be read", "\"kind\":\"gate\"", "\"kind\":\"gate\",\"kind\":\"gate\""),
        ("no JSON", "{\"at\"", "\"at\""),
    ] {
        hosts.refuses(what, &audit_with(&entry.replace(from, to), 1, "{worker}"), &own);
    }
    for other in [NOW - 3600, NOW + 3600] {
        let late = own.replace(&NOW.to_string(), &other.to_string());
        hosts.refuses("write an entry of another time", &late, &own);
    }
    hosts.refuses("change an entry", "UPDATE audit SET entry = '' RETURNING 1", "SELECT 1 FROM audit");
    hosts.refuses("delete an entry", "DELETE FROM audit RETURNING 1", "SELECT 1 FROM audit");
    hosts.refuses(
        "hide that entries are missing",
        "UPDATE audit_head SET number = 1 RETURNING 1",
        "SELECT number FROM audit_head",
    );
    hosts.refuses(
        "read entries of another host",
        "SELECT 1 FROM audit WHERE session = '{boss}'",
        "SELECT 1 FROM audit WHERE session = '{worker}'",
    );

    // An entry that cannot be read as a whole hides no other.
    let strange = audit_with(&entry.replace("\"status\"", "\"right\":\"none\",\"status\""), 1, "{worker}");
    hosts
        .server
        .psql_as(
            &hosts.role(),
            &hosts.database,
            &hosts.named(&format!("SET search_path = plexus; {strange}")),
        )
        .unwrap();
    let listed = hosts.one.audit(AuditFilter::default(), AuditFrom::After(0), 1000).await.unwrap();
    assert_eq!(listed.last().unwrap().entry.status, "unreadable");
    assert!(listed.len() > 2 && listed[0].entry.status == "made", "{listed:?}");

    // What the runner has written is marked, and the log is whole.
    hosts
        .server
        .psql_as(&hosts.role(), &hosts.database, &hosts.named(&format!("SET search_path = plexus; {own}")))
        .unwrap();
    let marked = "SELECT count(*) = 0 FROM plexus.audit a LEFT JOIN plexus.sessions s ON s.id = a.session WHERE a.host IS NOT NULL AND s.host <> a.host";
    assert_eq!(hosts.server.psql(&hosts.database, marked).unwrap(), "t");
    assert_ne!(
        hosts.server.psql(&hosts.database, "SELECT count(*) FROM plexus.audit WHERE host = 'two'").unwrap(),
        "0"
    );
    let head = AuditHead::start();
    let checked = hosts.one.check_audit(head, u64::MAX).await.unwrap();
    assert!(matches!(checked, AuditCheck::Fits(_)), "{checked:?}");
}
