//! Hosts are added, stopped, admitted again and removed.

use std::sync::Arc;

use plexus_protocol::Decider;
use plexus_store::{Admission, Change, HostState, Ledger as _, RoleError, Store as _, StoreError};

use crate::common::{NOW, host, postgres};
use crate::{Hosts, admit, agent, connected, host_name, owner};

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_is_stopped_can_only_read_the_state_of_hosts() {
    let test = "a_runner_that_is_stopped_can_only_read_the_state_of_hosts";
    let Some(hosts) = Hosts::new(test).await else { return };
    let roles = hosts.one.fleet().unwrap();
    let lost = |state| Change::SetHostState { host: host_name("two"), state, by: Decider::Operator };
    // As `plexus host lost` does: a transaction of the runner may hold the lock of all writers.
    roles.roles().stop(&host_name("two")).await.unwrap();
    hosts.one.commit(NOW, vec![lost(HostState::Lost)]).await.unwrap();
    let role = hosts.role();
    assert_eq!(hosts.prints(&role, "SELECT state FROM hosts WHERE name = 'two'").unwrap(), "lost");
    for sql in [
        "UPDATE hosts SET state = 'in' WHERE name = 'two'",
        "SELECT join_host('two', 'machine-of-two', '9', 'rejoined', '')",
        "INSERT INTO events VALUES ('{worker}', 1, 77, '{}', 1)",
        "SELECT 1 FROM sessions",
        "SELECT 1 FROM writer FOR UPDATE",
        "LOCK TABLE leases IN EXCLUSIVE MODE",
    ] {
        assert!(hosts.prints(&role, sql).is_err(), "{sql}");
    }
    let url = hosts.server.url(&hosts.database).replace("plexus@", &format!("{role}@"));
    match postgres(&url, &host("two")) {
        Err(StoreError::Unusable(why)) => assert!(why.contains("host add --renew two"), "{why}"),
        other => panic!("{:?}", other.err()),
    }

    // Admitted again, its hub starts and the host takes part.
    admit(&hosts.one, "two", Admission::Renewed).await.unwrap();
    let back = postgres(&url, &host("two")).unwrap();
    assert_eq!(hosts.prints("plexus", "SELECT state FROM hosts WHERE name = 'two'").unwrap(), "rejoined");
    back.commit(NOW, vec![lost(HostState::Active)]).await.unwrap();
    agent(&back, "again").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_holds_locks_is_stopped_and_admitted_all_the_same() {
    let test = "a_runner_that_holds_locks_is_stopped_and_admitted_all_the_same";
    let Some(hosts) = Hosts::new(test).await else { return };
    let role = hosts.role();
    let roles = hosts.one.fleet().unwrap().roles();
    hosts.holds(&format!(
        "SELECT number FROM writer FOR UPDATE; GRANT SELECT ON plexus.hosts TO {role}; ALTER ROLE {role} PASSWORD 'x'"
    ));
    roles.stop(&host_name("two")).await.unwrap();
    let lost = Change::SetHostState { host: host_name("two"), state: HostState::Lost, by: Decider::Operator };
    hosts.one.commit(NOW, vec![lost]).await.unwrap();
    // A role that was stopped can still log in.
    hosts.holds(&format!("GRANT SELECT ON plexus.hosts TO {role}; ALTER ROLE {role} PASSWORD 'x'"));
    admit(&hosts.one, "two", Admission::Renewed).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_holds_locks_keeps_no_hub_from_starting() {
    let test = "a_runner_that_holds_locks_keeps_no_hub_from_starting";
    let Some(hosts) = Hosts::new(test).await else { return };
    hosts.holds("SELECT pg_advisory_lock(1347180627) FROM schema_version");
    let three = postgres(&hosts.server.url(&hosts.database), &host("three")).unwrap();
    agent(&three, "started").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_is_added_once_and_removed_with_its_role() {
    let test = "a_host_is_added_once_and_removed_with_its_role";
    let Some((server, database, one)) = owner(test).await else { return };
    let access = admit(&one, "two", Admission::New).await.unwrap();
    assert!(
        access.url.contains(&format!("{database}_two@")) && !access.url.contains(&access.password),
        "{access:?}"
    );
    assert!(access.password.len() >= 32 && !format!("{access:?}").contains(&access.password));
    // The server has only what verifies the password.
    let stored = format!("SELECT rolpassword FROM pg_authid WHERE rolname = '{database}_two'");
    let first = server.psql(&database, &stored).unwrap();
    assert!(first.starts_with("SCRAM-SHA-256$"), "{first}");
    assert!(matches!(admit(&one, "two", Admission::New).await, Err(RoleError::Exists(_))));
    assert!(matches!(admit(&one, "one", Admission::New).await, Err(RoleError::IsOwner(_))));
    assert!(matches!(admit(&one, "one", Admission::Renewed).await, Err(RoleError::NotAdded(_))));
    let renewed = admit(&one, "two", Admission::Renewed).await.unwrap();
    assert!(renewed.password != access.password && renewed.url == access.url);
    assert_ne!(server.psql(&database, &stored).unwrap(), first);

    match postgres(&access.url, &host("three")) {
        Err(StoreError::Unusable(why)) => assert!(why.contains("use --host two"), "{why}"),
        other => panic!("{:?}", other.err()),
    }
    let two = postgres(&access.url, &host("two")).unwrap();
    connected(&two).await;
    assert!(matches!(admit(&two, "three", Admission::New).await, Err(RoleError::NotOwner)));
    drop(two);

    let roles = Arc::clone(one.fleet().unwrap());
    roles.roles().remove(&host_name("two")).await.unwrap();
    assert_eq!(server.psql(&database, &stored).unwrap(), "");
    assert!(postgres(&access.url, &host("two")).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_view_of_a_runner_has_all_columns() {
    let Some((server, database, one)) = owner("the_view_of_a_runner_has_all_columns").await else { return };
    admit(&one, "two", Admission::New).await.unwrap();
    let columns = |schema: &str| {
        let sql = format!(
            "SELECT string_agg(column_name || ' ' || data_type, ', ' ORDER BY ordinal_position) FROM information_schema.columns WHERE table_schema = '{schema}' AND table_name = 'sessions'"
        );
        server.psql(&database, &sql).unwrap()
    };
    assert_eq!(columns("plexus_host"), columns("plexus"));
    // A new table is not readable by accident.
    let open = "SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class WHERE relnamespace = 'plexus'::regnamespace AND relkind = 'r' AND NOT relrowsecurity";
    assert_eq!(server.psql(&database, open).unwrap(), "audit_head feed_head schema_version writer");
}
