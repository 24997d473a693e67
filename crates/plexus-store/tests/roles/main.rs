//! What the role of a runner can do in SQL, and what the database refuses. Each attack is next to a statement of the same form that is allowed.
#![cfg(test)]

mod added;
mod audit;
mod budgets;
#[path = "../common/mod.rs"]
mod common;
mod hosts;
mod secrets;
mod sessions;
mod unreadable;

use std::sync::Arc;

use plexus_protocol::budget::BudgetLimit;
use plexus_protocol::{ApprovalId, AskedOf, CommandId, HostName, SessionId};
use plexus_store::{
    Admission, Change, Fleet, HostAccess, Ledger as _, NewCommand, RoleError, RunKey, RunState, SqlStore,
    Store as _,
};
use plexus_testkit::postgres::Postgres;
use plexus_testkit::skip;
use serde_json::json;

use common::{NOW, host, new_session, postgres, question, says};

/// A database of host `one`, whose role owns the tables, and host `two`, which has a role of its own. Each has a session with a turn, a run and an approval.
struct Hosts {
    server: &'static Postgres,
    database: String,
    one: SqlStore,
    two: SqlStore,
    boss: Agent,
    worker: Agent,
    /// A session of host `two` below `boss`.
    child: SessionId,
}

struct Agent {
    session: SessionId,
    approval: ApprovalId,
}

/// The owner, with an empty database.
async fn owner(test: &str) -> Option<(&'static Postgres, String, SqlStore)> {
    let Some(server) = Postgres::shared() else {
        skip(test, "PostgreSQL");
        return None;
    };
    let database = server.database().unwrap();
    let one = postgres(&server.url(&database), &host("one")).unwrap();
    connected(&one).await;
    Some((server, database, one))
}

async fn connected(store: &SqlStore) -> Arc<dyn Fleet> {
    let fleet = Arc::clone(store.fleet().unwrap());
    let connection = Arc::clone(&fleet);
    tokio::spawn(async move { connection.run().await });
    fleet.last_commit().await.unwrap();
    fleet
}

fn host_name(name: &str) -> HostName {
    HostName::try_from(name.to_owned()).unwrap()
}

async fn admit(one: &SqlStore, name: &str, admission: Admission) -> Result<HostAccess, RoleError> {
    one.fleet().unwrap().roles().admit(&host_name(name), admission).await
}

async fn agent(store: &SqlStore, name: &str) -> Agent {
    let mut new = new_session(name);
    new.host = store.host().cloned();
    let session = new.id;
    let key = RunKey { session, run: 1 };
    let asked = question(session, 1, &format!("toolu_{name}"));
    let approval = asked.approval.id;
    let changes = vec![
        Change::CreateSession(Box::new(new)),
        Change::SetBudget(session, vec![(BudgetLimit::ToolCalls, 100)]),
        Change::StartRun { key, state: RunState::Starting, token_hash: Some(format!("token-of-{name}")) },
        Change::StartTurn { session, turn: 1, prompt: "go".to_owned(), woken_to: None },
        says(session, 1, &format!("SAID-BY-{name}")),
        Change::Spend(session, BudgetLimit::ToolCalls, 5),
        Change::Ask(Box::new(asked)),
    ];
    store.commit(NOW, changes).await.unwrap();
    Agent { session, approval }
}

impl Hosts {
    async fn new(test: &str) -> Option<Self> {
        let (server, database, one) = owner(test).await?;
        let access = admit(&one, "two", Admission::New).await.unwrap();
        let two = postgres(&access.url, &host("two")).unwrap();
        connected(&two).await;
        let (boss, worker) = (agent(&one, "boss").await, agent(&two, "worker").await);
        let command = NewCommand {
            id: CommandId::random(),
            host: host_name("two"),
            caller: json!({"principal": {"kind": "session", "id": boss.session, "run": 1}, "door": "local"}),
            method: "claudecode.create".to_owned(),
            params: json!({"secret": "PARAMETER"}),
            expires_ms: 600_000,
        };
        one.fleet().unwrap().send(&command).await.unwrap();
        let mut new = new_session("child");
        (new.host, new.answers_to) = (two.host().cloned(), AskedOf::Session { id: boss.session });
        let child = new.id;
        two.commit(
            NOW,
            vec![
                Change::CreateSession(Box::new(new)),
                Change::SetBudget(child, vec![(BudgetLimit::ToolCalls, 10)]),
            ],
        )
        .await
        .unwrap();
        Some(Self { server, database, one, two, boss, worker, child })
    }

    fn role(&self) -> String {
        format!("{}_two", self.database)
    }

    /// What the statements print, as this role. Nothing of them stays.
    fn prints(&self, role: &str, sql: &str) -> Result<String, String> {
        let path = if role == "plexus" { "plexus" } else { "plexus_host, plexus" };
        let sql = format!("SET search_path = {path}; BEGIN; {}; ROLLBACK", self.named(sql));
        self.server.psql_as(role, &self.database, &sql).map_err(|error| error.to_string())
    }

    /// Executes statements as the runner. What they store stays.
    fn stores(&self, sql: &str) {
        let sql = format!("SET search_path = plexus_host, plexus; {}", self.named(sql));
        self.server.psql_as(&self.role(), &self.database, &sql).unwrap();
    }

    /// Executes statements as the runner in the background, in one transaction that stays open. Returns when they are executed.
    fn holds(&self, sql: &str) {
        let sql = format!("SET search_path = plexus_host, plexus; {}; SELECT pg_sleep(60)", self.named(sql));
        let (server, database, role) = (self.server, self.database.clone(), self.role());
        std::thread::spawn(move || server.psql_as(&role, &database, &sql));
        let sleeps = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE usename = '{}' AND wait_event = 'PgSleep'",
            self.role()
        );
        while self.server.psql(&self.database, &sleeps).unwrap() == "0" {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    /// Fills in the ids.
    fn named(&self, sql: &str) -> String {
        sql.replace("{boss}", &self.boss.session.to_string())
            .replace("{worker}", &self.worker.session.to_string())
            .replace("{child}", &self.child.to_string())
            .replace("{asked-by-boss}", &self.boss.approval.to_string())
            .replace("{asked-by-worker}", &self.worker.approval.to_string())
    }

    /// The database refuses an attack, or the attack finds no row. The allowed statement finds some.
    fn refuses(&self, what: &str, attack: &str, allowed: &str) {
        let attacked = self.prints(&self.role(), attack);
        assert!(!matches!(&attacked, Ok(rows) if !rows.is_empty()), "{what}: {attacked:?}");
        let rows = self.prints(&self.role(), allowed).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(!rows.is_empty(), "{what}: the allowed statement finds nothing");
    }

    /// The database refuses statements that the owner can execute.
    fn only_the_owner(&self, sql: &str) {
        let attacked = self.prints(&self.role(), sql);
        assert!(attacked.is_err(), "{sql}: {attacked:?}");
        self.prints("plexus", sql).unwrap_or_else(|error| panic!("the owner: {sql}: {error}"));
    }
}
