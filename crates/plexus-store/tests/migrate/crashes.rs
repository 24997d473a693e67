//! A migration that is interrupted at any step leaves one store that can be used, and the next run finishes it.

use std::path::PathBuf;
use std::process::Command;

use plexus_store::migrate::{MigrateError, Observer, Step};
use plexus_store::{MigrationNote, Store as _, StoreError};

use crate::machine::{Machine, StopAt, To, dump, run};

const DIR: &str = "PLEXUS_MIGRATE_TEST_DIR";
const URL: &str = "PLEXUS_MIGRATE_TEST_URL";
const STEP: &str = "PLEXUS_MIGRATE_TEST_STEP";

/// The store that is in use, as a hub finds it.
#[derive(Debug, PartialEq)]
enum InUse {
    File,
    Database,
    Neither,
}

fn in_use(machine: &Machine) -> InUse {
    let files = machine.files();
    let (in_file, joined) = (files.sqlite().exists(), files.joined().unwrap().is_some());
    match files.unfinished().unwrap() {
        Some(_) => InUse::Neither,
        None if in_file && !joined => InUse::File,
        None if joined && !in_file => InUse::Database,
        None => panic!("file: {in_file}, database: {joined}"),
    }
}

#[test]
fn a_move_that_is_interrupted_at_any_step_is_finished_by_the_next_run() {
    let test = "a_move_that_is_interrupted_at_any_step_is_finished_by_the_next_run";
    let Some(original) = Machine::new(test) else { return };
    let before = original.dump();
    for step in Step::ALL {
        let machine = original.copy();
        for (to, from) in [(To::Postgres, InUse::File), (To::Sqlite, InUse::Database)] {
            killed_at(&machine, to, step);
            match step {
                Step::Copied => assert_eq!(in_use(&machine), from, "{to:?} {step:?}"),
                _ => assert_eq!(in_use(&machine), InUse::Neither, "{to:?} {step:?}"),
            }
            let rows = machine.migrate(to).unwrap().rows;
            let had_committed = step >= Step::Committed;
            assert_eq!(rows.is_none(), had_committed, "{to:?} {step:?}: {rows:?}");
            match to {
                To::Postgres => {
                    assert_eq!(in_use(&machine), InUse::Database);
                    assert_eq!(dump(&machine.path("plexus.db.moved")), before);
                    assert_eq!(run(machine.join().sessions()).unwrap().len(), 4);
                }
                To::Sqlite => {
                    assert_eq!(in_use(&machine), InUse::File);
                    assert_eq!(machine.dump(), before, "{step:?}");
                }
            }
        }
        let left = std::fs::read_dir(machine.dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut left: Vec<String> = left.map(|name| name.into_string().unwrap()).collect();
        left.retain(|name| !name.ends_with("-shm") && !name.ends_with("-wal"));
        left.sort_unstable();
        assert_eq!(left, ["plexus.db", "plexus.db.moved"], "{step:?}");
    }
}

/// Runs a migration in a process of its own, which is killed at a step.
fn killed_at(machine: &Machine, to: To, step: Step) {
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crashes::child_migrates_until_it_is_killed", "--nocapture", "--test-threads=1"])
        .env_clear()
        .env(DIR, machine.dir.path())
        .env(URL, machine.url())
        .env(STEP, format!("{to:?} {step:?}"))
        .output()
        .unwrap();
    assert!(!status.status.success(), "it was not killed: {status:?}");
}

/// Ends this process at a step, as SIGKILL does.
struct KillAt(Step);

impl Observer for KillAt {
    fn progress(&mut self, _done: u64, _total: u64) {}

    fn reached(&mut self, step: Step) -> Result<(), StoreError> {
        if step == self.0 {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
            loop {
                std::thread::park();
            }
        }
        Ok(())
    }
}

#[test]
fn child_migrates_until_it_is_killed() {
    let Some(dir) = std::env::var_os(DIR).map(PathBuf::from) else { return };
    let (url, step) = (std::env::var(URL).unwrap(), std::env::var(STEP).unwrap());
    let step = Step::ALL.into_iter().find(|known| step.ends_with(&format!("{known:?}"))).unwrap();
    let to = if std::env::var(STEP).unwrap().starts_with("Postgres") { To::Postgres } else { To::Sqlite };
    let result = crate::machine::migrate_in(&dir, &url, to, &mut KillAt(step));
    panic!("not killed: {result:?}");
}

#[test]
fn an_error_before_the_commit_leaves_the_file_in_use() {
    let Some(machine) = Machine::new("an_error_before_the_commit_leaves_the_file_in_use") else { return };
    let before = machine.dump();
    let stopped = machine.migrate_with(To::Postgres, &mut StopAt(Some(Step::Copied)));
    assert!(matches!(stopped, Err(MigrateError::Store(_))));
    assert_eq!((in_use(&machine), machine.dump()), (InUse::File, before));
    assert_eq!(machine.sql("SELECT count(*) FROM sessions"), "0");
}

/// Cuts the connection before the commit.
struct CutBeforeCommit<'a>(&'a Machine);

impl Observer for CutBeforeCommit<'_> {
    fn progress(&mut self, _done: u64, _total: u64) {}

    fn reached(&mut self, step: Step) -> Result<(), StoreError> {
        if step == Step::Noted {
            let others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                WHERE datname = current_database() AND pid <> pg_backend_pid()";
            assert_eq!(self.0.sql(others), "t");
        }
        Ok(())
    }
}

#[test]
fn a_move_whose_commit_has_no_answer_is_repeated() {
    let Some(machine) = Machine::new("a_move_whose_commit_has_no_answer_is_repeated") else { return };
    let before = machine.dump();
    for to in [To::Postgres, To::Sqlite] {
        let lost = machine.migrate_with(to, &mut CutBeforeCommit(&machine)).unwrap_err();
        assert!(matches!(lost, MigrateError::Unknown(_)), "{lost}");
        assert_eq!(in_use(&machine), InUse::Neither);
        assert!(machine.migrate(to).unwrap().rows.is_some(), "it was not committed");
    }
    assert_eq!((in_use(&machine), machine.dump()), (InUse::File, before));
}

#[test]
fn an_interrupted_move_is_only_finished_in_its_own_direction_and_database() {
    let test = "an_interrupted_move_is_only_finished_in_its_own_direction_and_database";
    let Some(machine) = Machine::new(test) else { return };
    machine.migrate_with(To::Postgres, &mut StopAt(Some(Step::Committed))).unwrap_err();
    let note = machine.files().unfinished().unwrap().unwrap();
    assert!(matches!(note, MigrationNote::Postgres { .. }));
    let other = Machine { database: machine.server.database().unwrap(), ..machine };
    for to in [To::Postgres, To::Sqlite] {
        let refused = other.migrate(to).unwrap_err();
        assert!(
            refused.to_string().contains("was interrupted") && refused.to_string().contains("test_"),
            "{refused}"
        );
    }
    assert!(other.files().sqlite().exists());
}
