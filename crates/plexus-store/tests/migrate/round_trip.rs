//! After there and back, everything is as it was. In between, the database has all of it.

use std::time::Instant;

use plexus_protocol::SessionId;
use plexus_protocol::audit::AuditHead;
use plexus_store::migrate::Observer;
use plexus_store::{
    Arbor as _, AuditCheck, Change, Ledger as _, OpenFilter, SqlStore, Store as _, StoreFiles,
};

use crate::common::{self, NOW, says};
use crate::machine::{Machine, To, dump, open, run};
use crate::state::{ODD, fill};

/// What a hub reads of a store.
#[derive(Debug, PartialEq)]
struct Seen {
    sessions: Vec<String>,
    approvals: Vec<String>,
    open_runs: Vec<String>,
    rules: String,
    feed: Vec<u64>,
    audit: AuditHead,
    found: usize,
}

async fn seen(store: &SqlStore) -> Seen {
    let audit = store.audit_head().await.unwrap();
    let checked = store.check_audit(AuditHead::start(), u64::MAX).await.unwrap();
    assert_eq!(checked, AuditCheck::Fits(audit.clone()));
    let feed = store.feed_of_all(0, 1000).await.unwrap();
    let mut sessions = store.sessions().await.unwrap();
    for session in &mut sessions {
        session.host = None;
    }
    let mut approvals = store.open_approvals(OpenFilter::All).await.unwrap();
    for row in &mut approvals {
        row.approval.host = None;
    }
    Seen {
        sessions: sessions.iter().map(|row| format!("{row:?}")).collect(),
        approvals: approvals.iter().map(|row| format!("{row:?}")).collect(),
        open_runs: store.open_runs().await.unwrap().iter().map(|row| format!("{row:?}")).collect(),
        rules: format!("{:?}", store.rules().await.unwrap()),
        feed: feed.iter().map(|row| row.number).collect(),
        audit,
        found: store.search("größe 文件", None, None, 100).await.unwrap().len(),
    }
}

#[test]
fn a_state_is_equal_after_a_move_to_postgresql_and_back() {
    let Some(machine) = Machine::new("a_state_is_equal_after_a_move_to_postgresql_and_back") else { return };
    let before = machine.dump();
    assert!(!before.contains(": 0\n"), "a table has no rows:\n{before}");
    let files = machine.files();
    let in_file = run(async { seen(&common::open(&files.sqlite())).await });
    assert_eq!((in_file.found, in_file.open_runs.len()), (2, 4));
    let triggers = "SELECT tgname, tgenabled FROM pg_trigger ORDER BY tgname, oid";
    drop(machine.join());
    machine.sql("DELETE FROM hosts");
    std::fs::remove_file(files.commit_count()).unwrap();
    let enabled = machine.sql(triggers);

    let moved = machine.migrate(To::Postgres).unwrap();
    assert_eq!(moved.old, machine.path("plexus.db.moved").display().to_string());
    assert!(!files.sqlite().exists() && !files.note().exists());
    assert_eq!(dump(&machine.path("plexus.db.moved")), before, "the old file is kept");
    assert_eq!(machine.sql(triggers), enabled);
    assert_eq!(files.joined().unwrap().unwrap().host, "laptop");
    assert_eq!(machine.sql("SELECT DISTINCT host FROM sessions"), "laptop");
    assert_eq!(machine.sql("SELECT count(*) FROM nodes WHERE NOT indexed"), "0");
    let in_database = run(async { seen(&machine.join()).await });
    assert_eq!(in_database, in_file);

    let rows = machine.migrate(To::Sqlite).unwrap().rows;
    assert_eq!(rows, moved.rows);
    assert!(files.sqlite().exists() && files.joined().unwrap().is_none());
    assert_eq!(machine.dump(), before);
    assert_eq!(run(async { seen(&common::open(&files.sqlite())).await }), in_file);
    let names = machine.sql("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'plexus%'");
    assert!(names.starts_with("plexus_moved_"), "{names}");

    // The database can be used again, and the old file and schema stay.
    machine.migrate(To::Postgres).unwrap();
    assert_eq!(run(async { seen(&machine.join()).await }), in_file);
    assert!(machine.path("plexus.db.moved-2").exists() && machine.path("plexus.db.moved").exists());
}

#[test]
fn a_moved_state_goes_on_with_the_next_numbers() {
    let Some(machine) = Machine::new("a_moved_state_goes_on_with_the_next_numbers") else { return };
    let grown = |store: &SqlStore, name: &str| {
        run(async {
            let before = seen(store).await;
            fill(store, name).await;
            let after = seen(store).await;
            assert!(after.audit.number > before.audit.number);
            let new: Vec<u64> =
                after.feed.iter().copied().filter(|number| !before.feed.contains(number)).collect();
            assert!(new.iter().all(|number| before.feed.iter().all(|old| old < number)), "{new:?}");
            assert!(after.feed.windows(2).all(|two| two[0] + 1 == two[1]), "{:?}", after.feed);
            after
        })
    };
    machine.migrate(To::Postgres).unwrap();
    let in_database = grown(&machine.join(), "three");
    machine.migrate(To::Sqlite).unwrap();
    let store = common::open(&machine.files().sqlite());
    assert_eq!(run(seen(&store)), in_database);
    grown(&store, "four");
    drop(store);
    let before = machine.dump();
    machine.migrate(To::Postgres).unwrap();
    machine.migrate(To::Sqlite).unwrap();
    assert_eq!(machine.dump(), before);
}

#[test]
fn a_number_that_was_given_is_not_given_again_after_a_move() {
    let Some(machine) = Machine::new("a_number_that_was_given_is_not_given_again_after_a_move") else {
        return;
    };
    // The last ones are gone, as after the end of a retention time.
    let connection = open(&machine.files().sqlite());
    connection.execute_batch("DELETE FROM rules; DELETE FROM feed WHERE number > 3").unwrap();
    connection.execute_batch("UPDATE sqlite_sequence SET seq = 70 WHERE name = 'rules'").unwrap();
    let counted =
        "SELECT group_concat(name || ' ' || seq) FROM (SELECT * FROM sqlite_sequence ORDER BY name)";
    let before: String = connection.query_row(counted, [], |row| row.get(0)).unwrap();
    drop(connection);
    machine.migrate(To::Postgres).unwrap();
    assert_eq!(machine.sql("SELECT nextval(pg_get_serial_sequence('rules', 'number'))"), "71");
    assert_ne!(machine.sql("SELECT number FROM feed_head"), "3");
    machine.migrate(To::Sqlite).unwrap();
    let connection = open(&machine.files().sqlite());
    let after: String = connection.query_row(counted, [], |row| row.get(0)).unwrap();
    assert_eq!(after.replace("rules 71", "rules 70"), before);
}

#[test]
fn an_empty_state_moves() {
    let Some(machine) = Machine::empty("an_empty_state_moves") else { return };
    drop(common::open(&machine.files().sqlite()));
    assert_eq!(machine.migrate(To::Postgres).unwrap().rows, Some(0));
    let session = run(async { fill(&machine.join(), "one").await });
    machine.migrate(To::Sqlite).unwrap();
    let store = common::open(&machine.files().sqlite());
    assert_eq!(run(async { store.turn(session, 1).await.unwrap().unwrap().prompt }), format!("{ODD} of one"));
}

#[test]
fn a_file_of_an_earlier_version_moves() {
    let Some(machine) = Machine::of_earlier_version("a_file_of_an_earlier_version_moves") else { return };
    let copy = machine.copy();
    drop(common::open(&copy.files().sqlite()));
    machine.migrate(To::Postgres).unwrap();
    machine.migrate(To::Sqlite).unwrap();
    assert_eq!(machine.dump(), copy.dump());
}

/// Remembers the reports.
struct Reports(Vec<(u64, u64)>);

impl Observer for Reports {
    fn progress(&mut self, done: u64, total: u64) {
        self.0.push((done, total));
    }
}

#[test]
fn many_rows_move_quickly_and_the_progress_is_reported() {
    let Some(machine) = Machine::new("many_rows_move_quickly_and_the_progress_is_reported") else { return };
    let store = common::open(&machine.files().sqlite());
    let session = run(async { common::session_named(&store, "one").await.unwrap().id });
    let events = 120_000;
    run(add_events(&store, session, events));
    drop(store);
    let before = machine.dump();
    for to in [To::Postgres, To::Sqlite] {
        let mut reports = Reports(Vec::new());
        let started = Instant::now();
        let rows = machine.migrate_with(to, &mut reports).unwrap().rows.unwrap();
        let rate = rows as f64 / started.elapsed().as_secs_f64();
        println!("{to:?}: {rows} rows, {rate:.0} per second");
        assert!(rows > events && rate > 3000.0, "{to:?}: {rate} rows per second");
        let Reports(reports) = reports;
        assert!(reports.len() > 100 && reports.windows(2).all(|two| two[0].0 < two[1].0));
        let (done, total) = reports.last().unwrap();
        assert_eq!(done, total);
    }
    assert!(machine.dump() == before);
}

async fn add_events(store: &SqlStore, session: SessionId, events: u64) {
    for part in 0..events / 1000 {
        let text =
            |i: u64| format!("event {part} {i} with a text of the usual length {}", "word ".repeat(30));
        let changes: Vec<Change> = (0..1000).map(|i| says(session, 1, &text(i))).collect();
        store.commit(NOW, changes).await.unwrap();
    }
}

#[test]
fn the_data_directory_says_where_the_state_is() {
    let Some(machine) = Machine::new("the_data_directory_says_where_the_state_is") else { return };
    machine.migrate(To::Postgres).unwrap();
    let joined = StoreFiles::of(machine.dir.path()).joined().unwrap().unwrap();
    let database = joined.database.unwrap();
    assert!(
        database.contains(&machine.database) && database.starts_with("postgres://plexus@/"),
        "{database}"
    );
}
