//! What cannot be moved is refused, and nothing is changed.

use plexus_protocol::{Decider, HostName};
use plexus_store::migrate::MigrateError;
use plexus_store::{HostState, Ledger as _, PostgresAddress, Store as _};

use crate::common::{self, NOW};
use crate::machine::{Machine, To, run};

fn host_name(name: &str) -> HostName {
    HostName::try_from(name.to_owned()).unwrap()
}

#[test]
fn a_database_that_contains_a_state_is_no_target() {
    let Some(machine) = Machine::new("a_database_that_contains_a_state_is_no_target") else { return };
    let other = common::postgres(&machine.url(), &common::host("gpu")).unwrap();
    run(common::create(&other, "theirs"));
    let before = machine.dump();
    let refused = machine.migrate(To::Postgres).unwrap_err();
    assert!(refused.to_string().contains("sessions of host gpu"), "{refused}");
    assert_eq!(machine.dump(), before);
    assert!(!machine.files().note().exists() && machine.files().joined().unwrap().is_none());
    assert_eq!(machine.sql("SELECT name FROM hosts"), "gpu");
    assert!(run(other.sessions()).unwrap().len() == 1);
}

#[test]
fn a_database_that_other_hosts_have_joined_is_a_target_while_it_is_empty() {
    let test = "a_database_that_other_hosts_have_joined_is_a_target_while_it_is_empty";
    let Some(machine) = Machine::new(test) else { return };
    let other = common::postgres(&machine.url(), &common::host("gpu")).unwrap();
    machine.migrate(To::Postgres).unwrap();
    let sessions = run(async {
        common::create(&other, "theirs").await;
        other.sessions().await.unwrap()
    });
    assert_eq!(sessions.last().unwrap().host, Some(host_name("gpu")));
    assert!(sessions.iter().any(|session| session.host == Some(host_name("laptop"))));

    // Their sessions cannot move to this machine.
    let refused = machine.migrate(To::Sqlite).unwrap_err();
    assert!(matches!(&refused, MigrateError::OtherHosts(hosts) if hosts == "gpu"), "{refused}");
    assert!(!machine.files().sqlite().exists() && machine.files().joined().unwrap().is_some());
    // Once that host is removed, they can: its sessions are deleted.
    let theirs = sessions.last().unwrap().id;
    drop(other);
    run(async {
        let store = machine.join();
        common::commit(&store, plexus_store::Change::DeleteSession(theirs)).await;
        let (host, by) = (host_name("gpu"), Decider::Operator);
        let removed = plexus_store::Change::SetHostState { host, state: HostState::Removed, by };
        store.commit(NOW, vec![removed]).await.unwrap();
    });
    machine.migrate(To::Sqlite).unwrap();
    let store = common::open(&machine.files().sqlite());
    let deleted = run(store.session(theirs)).unwrap().unwrap();
    assert_eq!(deleted.host, None);
}

#[test]
fn a_state_that_is_there_already_does_not_move() {
    let Some(machine) = Machine::new("a_state_that_is_there_already_does_not_move") else { return };
    assert!(matches!(machine.migrate(To::Sqlite).unwrap_err(), MigrateError::InFile(_)));
    machine.migrate(To::Postgres).unwrap();
    let again = machine.migrate(To::Postgres).unwrap_err();
    assert!(matches!(&again, MigrateError::InDatabase(name) if name.contains(&machine.database)), "{again}");
    let empty = Machine::empty("").unwrap();
    assert!(matches!(empty.migrate(To::Postgres).unwrap_err(), MigrateError::NoFile(_)));
    assert!(matches!(empty.migrate(To::Sqlite).unwrap_err(), MigrateError::UnknownHost(_)));
}

#[test]
fn a_moved_state_is_not_started_with_another_database() {
    let Some(machine) = Machine::new("a_moved_state_is_not_started_with_another_database") else { return };
    machine.migrate(To::Postgres).unwrap();
    let other = machine.server.url(&machine.server.database().unwrap());
    let refused = common::postgres(&other, &machine.host()).err().unwrap();
    assert!(refused.to_string().contains("does not know host `laptop`"), "{refused}");
    drop(machine.join());
}

#[test]
fn a_name_of_another_machine_is_refused() {
    let Some(machine) = Machine::new("a_name_of_another_machine_is_refused") else { return };
    drop(common::postgres(&machine.url(), &common::host("laptop")).unwrap());
    let refused = machine.migrate(To::Postgres).unwrap_err();
    assert!(refused.to_string().contains("--host"), "{refused}");
}

#[test]
fn a_host_that_was_lost_or_has_lost_commits_does_not_move() {
    let Some(machine) = Machine::new("a_host_that_was_lost_or_has_lost_commits_does_not_move") else {
        return;
    };
    machine.migrate(To::Postgres).unwrap();
    machine.sql("UPDATE hosts SET state = 'lost'");
    let lost = machine.migrate(To::Sqlite).unwrap_err();
    assert!(matches!(lost, MigrateError::LostHost(_)), "{lost}");
    machine.sql("UPDATE hosts SET state = 'in'");
    std::fs::write(machine.files().commit_count(), "1000").unwrap();
    let lost = machine.migrate(To::Sqlite).unwrap_err();
    assert!(matches!(lost, MigrateError::LostCommits(_)), "{lost}");
    assert!(!machine.path("plexus.db.new").exists());
    std::fs::write(machine.files().commit_count(), "0").unwrap();
    machine.migrate(To::Sqlite).unwrap();
}

#[test]
fn a_role_that_does_not_own_the_tables_is_refused() {
    let Some(machine) = Machine::new("a_role_that_does_not_own_the_tables_is_refused") else { return };
    drop(common::postgres(&machine.url(), &common::host("gpu")).unwrap());
    machine.sql(
        "CREATE ROLE guest LOGIN; GRANT USAGE ON SCHEMA plexus TO guest; GRANT ALL ON ALL TABLES IN SCHEMA plexus TO guest",
    );
    let url = machine.url().replace("plexus@", "guest@");
    let (files, host) = (machine.files(), machine.host());
    let address = PostgresAddress::parse(&url).unwrap();
    let migration = plexus_store::migrate::Migration { files: &files, address: &address, host: &host };
    let mut observer = crate::machine::StopAt(None);
    let refused = plexus_store::migrate::to_postgres(&migration, &mut observer).unwrap_err();
    assert!(matches!(&refused, MigrateError::NotOwner(role) if role == "guest"), "{refused}");
    machine.sql("DROP OWNED BY guest; DROP ROLE guest");
}

#[test]
fn a_table_or_a_column_that_only_one_database_has_is_refused() {
    let test = "a_table_or_a_column_that_only_one_database_has_is_refused";
    let Some(machine) = Machine::new(test) else { return };
    drop(common::postgres(&machine.url(), &common::host("gpu")).unwrap());
    for (add, remove) in [
        ("ALTER TABLE events ADD COLUMN forgotten TEXT", "ALTER TABLE events DROP COLUMN forgotten"),
        ("CREATE TABLE forgotten (id TEXT)", "DROP TABLE forgotten"),
    ] {
        machine.sql(add);
        let refused = machine.migrate(To::Postgres).unwrap_err();
        assert!(refused.to_string().contains("forgotten"), "{refused}");
        machine.sql(remove);
    }
    let connection = crate::machine::open(&machine.files().sqlite());
    connection.execute_batch("ALTER TABLE turns ADD COLUMN forgotten TEXT").unwrap();
    let refused = machine.migrate(To::Postgres).unwrap_err();
    assert!(refused.to_string().contains("forgotten"), "{refused}");
    connection.execute_batch("ALTER TABLE turns DROP COLUMN forgotten").unwrap();
    drop(connection);
    machine.migrate(To::Postgres).unwrap();
}
