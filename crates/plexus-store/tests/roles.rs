//! What the role of a runner can do in SQL, and what the database refuses. Each attack is next to a statement of the same form that is allowed.
#![cfg(test)]

mod common;

use std::sync::Arc;

use plexus_protocol::budget::BudgetLimit;
use plexus_protocol::{ApprovalId, ApprovalStatus, AskedOf, CommandId, Decider, HostName, SessionId};
use plexus_store::{
    Admission, AuditCheck, Change, Fleet, HostAccess, HostState, Ledger as _, NewCommand, OpenFilter,
    RoleError, RunKey, RunState, SqlStore, Store as _, StoreError,
};
use plexus_testkit::postgres::Postgres;
use plexus_testkit::skip;
use serde_json::json;

use common::{NOW, allows, ends, host, new_session, postgres, question, says};

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

/// Appends an audit entry about a session that continues the log.
fn audit(session: &str) -> String {
    audit_with(
        &format!(
            r#"{{"at":5,"kind":"gate","status":"allow","by":{{"kind":"hub"}},"session_id":"{session}"}}"#
        ),
        1,
        session,
    )
}

fn audit_with(entry: &str, step: i64, session: &str) -> String {
    format!(
        "INSERT INTO audit (number, hash, at, kind, who, session, entry) SELECT n, encode(sha256(convert_to(hash || E'\\n' || n || E'\\n' || entry, 'UTF8')), 'hex'), \
         5, 'gate', 'hub', '{session}', entry FROM (SELECT number + {step} AS n, hash, '{entry}'::TEXT AS entry FROM audit_tail) e RETURNING number"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_changes_no_other_host_and_not_its_own_epoch() {
    let test = "a_runner_changes_no_other_host_and_not_its_own_epoch";
    let Some(hosts) = Hosts::new(test).await else { return };
    let set =
        |column: &str, host: &str| format!("UPDATE hosts SET {column} WHERE name = '{host}' RETURNING 1");
    let join = |host: &str, state: &str| {
        format!("SELECT join_host('{host}', 'machine-of-{host}', '9', '{state}', 'first'), 'joined'")
    };
    hosts.refuses("raise its epoch", &set("epoch = epoch + 1", "two"), &join("two", "in"));
    hosts.refuses("join as another host", &join("one", "in"), &join("two", "in"));
    hosts.refuses("add a host", &join("three", "in"), &join("two", "rolled_back"));
    hosts.refuses("become another machine", &set("machine = 'x'", "two"), &set("last_commit = 'x'", "two"));
    hosts.refuses("fence another host", &set("last_commit = 'x'", "one"), &set("last_commit = 'x'", "two"));
    hosts.refuses("drain another host", &set("state = 'draining'", "one"), &set("state = 'draining'", "two"));
    hosts.refuses("remove itself", &set("state = 'removed'", "two"), &set("state = 'in'", "two"));
    let lease = |host: &str| {
        format!(
            "INSERT INTO leases VALUES ('{host}', 1) ON CONFLICT (host) DO UPDATE SET until = 1 RETURNING 1"
        )
    };
    hosts.refuses("end the lease of another host", &lease("one"), &lease("two"));
    let commit = |host: &str| format!("INSERT INTO commits VALUES (99999, '{host}', '{{}}', 1) RETURNING 1");
    hosts.refuses("commit as another host", &commit("one"), &commit("two"));
    let number = |step: i64| format!("UPDATE writer SET number = number + {step} RETURNING 1");
    hosts.refuses("number transactions again", &number(-1), &number(1));
    hosts.refuses("delete records of commits", "DELETE FROM commits RETURNING 1", "SELECT 1 FROM commits");
    let shadow = "CREATE TEMP TABLE host_roles AS SELECT session_user::TEXT AS role, 'one'::TEXT AS host, NULL::BIGINT AS stopped_at; ";
    hosts.refuses(
        "shadow a table of the owner",
        &format!("{shadow}{}", set("last_commit = 'x'", "one")),
        &set("last_commit = 'x'", "two"),
    );
    let present = |session: &str| format!("INSERT INTO presence VALUES ('session:{session}', 1) RETURNING 1");
    hosts.refuses(
        "claim that another agent is present",
        &present("00000000-0000-4000-8000-000000000000"),
        &present("{worker}"),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_resolves_and_writes_nothing_of_another_host() {
    let test = "a_runner_resolves_and_writes_nothing_of_another_host";
    let Some(hosts) = Hosts::new(test).await else { return };
    let both = |what: &str, sql: &dyn Fn(&str, &str) -> String| {
        hosts.refuses(what, &sql("{boss}", "{asked-by-boss}"), &sql("{worker}", "{asked-by-worker}"));
    };
    for status in ["allowed", "denied", "withdrawn"] {
        both(status, &|_, approval| {
            format!(
                "UPDATE approvals SET status = '{status}', decision = '{{}}', resolved_at = 1 WHERE id = '{approval}' RETURNING 1"
            )
        });
    }
    both("delete an approval", &|_, approval| {
        format!("DELETE FROM approvals WHERE id = '{approval}' RETURNING 1")
    });
    both("write an event", &|session, _| {
        format!("INSERT INTO events VALUES ('{session}', 1, 77, '{{\"type\":\"content\"}}', 1)  RETURNING 1")
    });
    both("delete events", &|session, _| {
        format!("DELETE FROM events WHERE session = '{session}' RETURNING 1")
    });
    both("start a turn", &|session, _| {
        format!(
            "INSERT INTO turns (session, turn, prompt, started_at) VALUES ('{session}', 9, '', 1) RETURNING 1"
        )
    });
    both("end a turn", &|session, _| {
        format!("UPDATE turns SET cost_usd = 0 WHERE session = '{session}' RETURNING 1")
    });
    both("start a run", &|session, _| {
        format!(
            "INSERT INTO runs (session, run, state, token_hash, created_at) VALUES ('{session}', 9, 'starting', 'mine', 1) RETURNING 1"
        )
    });
    both("end a run", &|session, _| {
        format!("UPDATE runs SET state = 'ended', ended_at = 1 WHERE session = '{session}' RETURNING 1")
    });
    both("write a call", &|session, _| {
        format!(
            "INSERT INTO calls (session, run, turn, tool_use_id, tool_name, digest, request_id, verdict, at) VALUES ('{session}', 1, 1, 't', 'Bash', '', '', '{{}}', 1) RETURNING 1"
        )
    });
    both("rename a session", &|session, _| {
        format!("UPDATE sessions SET name = 'x' WHERE id = '{session}' RETURNING 1")
    });
    both("configure a session", &|session, _| {
        format!("UPDATE sessions SET config = config || ' ' WHERE id = '{session}' RETURNING 1")
    });
    both("delete a session", &|session, _| {
        format!("UPDATE sessions SET deleted_at = 1 WHERE id = '{session}' RETURNING 1")
    });
    both("change a conversation", &|session, _| {
        format!(
            "UPDATE nodes SET content = '\"x\"' WHERE tree = (SELECT tree FROM sessions WHERE id = '{session}') RETURNING 1"
        )
    });
    both("add to a conversation", &|session, _| {
        format!(
            "INSERT INTO nodes (id, tree, depth, role, preview, content, created_at) SELECT 'new', tree, 1, 'user', '', '\"x\"', 1 FROM sessions WHERE id = '{session}' RETURNING 1"
        )
    });
    both("notify", &|session, _| {
        format!(
            "INSERT INTO feed (addressee, kind, session, data, at) VALUES ('operator', 'notice', '{session}', '{{\"type\":\"x\"}}', 1) RETURNING 1"
        )
    });
    both("create a rule", &|session, _| {
        format!(
            "INSERT INTO rules (session, entry, authority, made_by, created_at) VALUES ('{session}', '{{}}', 'operator', '{{}}', 1) RETURNING 1"
        )
    });
    both("wait for a budget", &|session, approval| {
        format!("INSERT INTO budget_waits VALUES ('{session}', '{approval}') RETURNING 1")
    });

    let rule = "INSERT INTO rules (session, entry, authority, made_by, created_at) VALUES (NULL, '{}', 'operator', '{}', 1) RETURNING 1";
    hosts.refuses("create a rule for all", rule, "SELECT count(*) FROM rules");
    let create = |host: &str, parent: &str, tree: &str| {
        format!(
            "INSERT INTO trees (id, created_at, ordinal, nodes) VALUES ('tree', 1, 99, 1); \
             INSERT INTO nodes (id, tree, depth, role, preview, content, created_at) VALUES ('root', 'tree', 0, 'root', '', 'null', 1); \
             INSERT INTO sessions (id, name, answers_to, config, tree, head, beginning, created_at, host) \
             SELECT '00000000-0000-4000-8000-000000000000', 'new', '{parent}', config, {tree}, 'root', 'root', 1, '{host}' FROM sessions WHERE id = '{{worker}}' RETURNING 1"
        )
    };
    let operator = r#"{"kind":"operator"}"#;
    let allowed = create("two", operator, "'tree'");
    hosts.refuses("create a session of another host", &create("one", operator, "'tree'"), &allowed);
    hosts.refuses(
        "create a session in a conversation of another host",
        &create("two", operator, "(SELECT tree FROM sessions WHERE id = '{boss}')"),
        &allowed,
    );
    // The command of `boss` has a reply now.
    hosts.server.psql(&hosts.database, "UPDATE plexus.commands SET reply = '{}'").unwrap();
    let below = |parent: &str| create("two", &format!(r#"{{"kind":"session","id":"{parent}"}}"#), "'tree'");
    hosts.refuses(
        "create a session below one that has not asked for it",
        &below("{boss}"),
        &below("{worker}"),
    );

    let ask = |session: &str, named: &str| {
        format!(
            "INSERT INTO approvals (id, number, session, run, turn, tool_use_id, asked_of, channel, question) SELECT 'a', 9999, '{session}', 1, 1, 't', 'operator', 'control', \
             '{{\"id\":\"a\",\"session_id\":\"{named}\",\"tool_use_id\":\"t\",\"kind\":\"tool\",\"asked_of\":{{\"kind\":\"operator\"}}}}' RETURNING 1"
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
             SELECT 'new', tree, {above}, 1, 'user', '', '\"x\"', 1 FROM sessions WHERE id = '{{worker}}' RETURNING 1"
        )
    };
    hosts.refuses("add a message below one of another host", &node(other_head), &node(own_head));
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
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_writes_the_audit_log_for_itself_and_breaks_nothing() {
    let test = "a_runner_writes_the_audit_log_for_itself_and_breaks_nothing";
    let Some(hosts) = Hosts::new(test).await else { return };
    let own = audit("{worker}");
    hosts.refuses("write about another host", &audit("{boss}"), &own);
    let entry = r#"{"at":5,"kind":"gate","status":"allow","by":{"kind":"hub"},"session_id":"{worker}"}"#;
    hosts.refuses("leave a gap", &audit_with(entry, 2, "{worker}"), &own);
    hosts.refuses("write a number twice", &audit_with(entry, 0, "{worker}"), &own);
    hosts.refuses("write another hash", &own.replace("encode(", "repeat('0', 64) || encode("), &own);
    for (what, from, to) in [
        ("another time", "\"at\":5", "\"at\":6"),
        ("another kind", "\"gate\"", "\"decision\""),
        ("another decider", "\"hub\"", "\"operator\""),
        ("another session", "{worker}", "{boss}"),
        ("a decider that cannot be read", "{\"kind\":\"hub\"}", "{\"kind\":\"hub\",\"kind\":\"hub\"}"),
        ("a kind that cannot be read", "\"kind\":\"gate\"", "\"kind\":\"gate\",\"kind\":\"gate\""),
        ("no JSON", "{\"at\"", "\"at\""),
    ] {
        hosts.refuses(what, &audit_with(&entry.replace(from, to), 1, "{worker}"), &own);
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
    let head = plexus_protocol::audit::AuditHead::start();
    let checked = hosts.one.check_audit(head, u64::MAX).await.unwrap();
    assert!(matches!(checked, AuditCheck::Fits(_)), "{checked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_takes_and_answers_only_its_own_commands_and_sends_none() {
    let test = "a_runner_takes_and_answers_only_its_own_commands_and_sends_none";
    let Some(hosts) = Hosts::new(test).await else { return };
    let insert = "INSERT INTO commands (id, origin, host, caller, method, params, sent_at, expires_at)";
    let sql = format!(
        "SET search_path = plexus; {insert} VALUES ('other', 'one', 'one', '{{}}', 'm', 'OTHER-PARAMETER', 1, 9)"
    );
    hosts.server.psql(&hosts.database, &sql).unwrap();
    let set = |set: &str, host: &str| format!("UPDATE commands SET {set} WHERE host = '{host}' RETURNING 1");
    hosts.refuses("take", &set("taken_in = 1", "one"), &set("taken_in = 1", "two"));
    hosts.refuses("answer", &set("reply = '{}'", "one"), &set("reply = '{}'", "two"));
    let read = |host: &str| format!("SELECT params FROM commands WHERE host = '{host}'");
    hosts.refuses("read parameters", &read("one"), &read("two"));
    hosts.refuses("change who sent it", &set("origin = 'two'", "two"), &set("taken_in = 1", "two"));
    hosts.refuses("change who calls", &set("caller = '{}'", "two"), &set("taken_in = 1", "two"));
    for origin in ["one", "two"] {
        let send = format!("{insert} VALUES ('x', '{origin}', 'one', '{{}}', 'm', '', 1, 9) RETURNING 1");
        hosts.refuses("send", &send, &read("two"));
        hosts.prints("plexus", &send).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_reads_no_secret_of_another_host() {
    let test = "a_runner_reads_no_secret_of_another_host";
    let Some(hosts) = Hosts::new(test).await else { return };
    let shared = "SET search_path = plexus; INSERT INTO tokens (name, hash, \"right\", created_at) VALUES ('t', 'TOKEN-HASH', 'observe', 1); \
        INSERT INTO templates VALUES ('used', '{}', 1), ('unused', '{}', 1); UPDATE commands SET params = '{\"template\":\"used\"}'";
    hosts.server.psql(&hosts.database, shared).unwrap();
    let config = |session: &str| {
        format!(
            "SELECT 1 FROM sessions WHERE id = '{session}' AND config LIKE '%A-SECRET%' AND config LIKE '%KEY%'"
        )
    };
    hosts.refuses("configuration", &config("{boss}"), &config("{worker}"));
    hosts.refuses(
        "the table of sessions",
        "SELECT config FROM plexus.sessions",
        "SELECT config FROM sessions",
    );
    let hash = |session: &str| format!("SELECT token_hash FROM runs WHERE session = '{session}'");
    hosts.refuses("hashes of run tokens", &hash("{boss}"), &hash("{worker}"));
    hosts.refuses("hashes of tokens", "SELECT hash FROM tokens", "SELECT count(*) FROM tokens");
    let template = |name: &str| format!("SELECT template FROM templates WHERE name = '{name}'");
    hosts.refuses("templates", &template("unused"), &template("used"));
    for table in ["events", "turns", "calls", "approvals", "permit_streams", "positions"] {
        let rows = hosts
            .prints(&hosts.role(), &format!("SELECT count(*) FROM {table} WHERE session = '{{boss}}'"))
            .unwrap();
        assert_eq!(rows, "0", "{table}");
    }
    let said = |session: &str| {
        format!("SELECT event FROM events WHERE session = '{session}' AND event LIKE '%SAID%'")
    };
    hosts.refuses("events", &said("{boss}"), &said("{worker}"));
    let tree = |session: &str| {
        format!("SELECT 1 FROM nodes WHERE tree = (SELECT tree FROM sessions WHERE id = '{session}')")
    };
    hosts.refuses("conversations", &tree("{boss}"), &tree("{worker}"));
    hosts.refuses("roles", "SELECT * FROM host_roles", "SELECT own_host()");
    // What hides a secret hides no name.
    assert_eq!(hosts.prints(&hosts.role(), "SELECT name FROM sessions WHERE id = '{boss}'").unwrap(), "boss");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_spends_the_budget_above_and_cannot_raise_it() {
    let test = "a_runner_spends_the_budget_above_and_cannot_raise_it";
    let Some(hosts) = Hosts::new(test).await else { return };
    // Another child of `boss`, which has reserved 20.
    let mut new = new_session("sibling");
    (new.host, new.answers_to) = (hosts.one.host().cloned(), AskedOf::Session { id: hosts.boss.session });
    let sibling = new.id;
    let granted = Change::SetBudget(sibling, vec![(BudgetLimit::ToolCalls, 20)]);
    hosts.one.commit(NOW, vec![Change::CreateSession(Box::new(new)), granted]).await.unwrap();
    let set = |what: &str| {
        format!("UPDATE budgets SET {what} WHERE session = '{{boss}}' AND kind = 'tool_calls' RETURNING 1")
    };
    let spend = set("used = used + 1, own = own + 1");
    hosts.refuses("raise", &set("granted = granted + 1"), &spend);
    hosts.refuses("use less", &set("used = used - 1"), &spend);
    hosts.refuses("have used less", &set("own = own - 1"), &spend);
    hosts.refuses("release what others have reserved", &set("below = 19"), &set("below = 20"));
    let grant = |session: &str| {
        format!("INSERT INTO budgets (session, kind, granted) VALUES ('{session}', 'turns', 5) RETURNING 1")
    };
    hosts.refuses("grant", &grant("{boss}"), &grant("{worker}"));
    let other = format!("UPDATE budgets SET used = used + 1 WHERE session = '{sibling}' RETURNING 1");
    hosts.refuses("spend beside", &other, &spend);

    // The hub of the runner spends through the rules of the store, and asks for more in the name of the session above.
    hosts
        .two
        .commit(NOW, vec![Change::SetBudget(hosts.child, vec![(BudgetLimit::ToolCalls, 75)])])
        .await
        .unwrap();
    hosts.two.commit(NOW, vec![Change::Spend(hosts.child, BudgetLimit::ToolCalls, 75)]).await.unwrap();
    let used =
        "SELECT used, own, below, granted FROM budgets WHERE session = '{boss}' AND kind = 'tool_calls'";
    assert_eq!(hosts.prints("plexus", used).unwrap(), "80|5|95|100");
    let refused =
        hosts.two.commit(NOW, vec![Change::SetBudget(hosts.child, vec![(BudgetLimit::ToolCalls, 76)])]).await;
    assert!(matches!(refused, Err(StoreError::Refused(_))), "{refused:?}");
    hosts.two.commit(NOW, vec![Change::DeleteSession(hosts.child)]).await.unwrap();
    assert_eq!(hosts.prints("plexus", used).unwrap(), "80|80|20|100");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_above_is_asked_for_by_the_runner_and_decided_by_others() {
    let test = "a_budget_above_is_asked_for_by_the_runner_and_decided_by_others";
    let Some(hosts) = Hosts::new(test).await else { return };
    let (boss, child) = (hosts.boss.session, hosts.child);
    hosts.one.commit(NOW, vec![Change::SetBudget(boss, vec![(BudgetLimit::CostUsd, 1)])]).await.unwrap();
    hosts.one.commit(NOW, vec![Change::Spend(boss, BudgetLimit::CostUsd, 1)]).await.unwrap();
    let key = RunKey { session: child, run: 1 };
    let start = vec![
        Change::StartRun { key, state: RunState::Starting, token_hash: None },
        Change::StartTurn { session: child, turn: 1, prompt: "go".to_owned(), woken_to: None },
        Change::AskBudget(child),
    ];
    let asked = hosts.two.commit(NOW, start).await.unwrap();
    let approval = asked.held[0].approval;
    let allow = format!(
        "UPDATE approvals SET status = 'allowed', decision = '{{}}', resolved_at = 1 WHERE id = '{approval}' RETURNING 1"
    );
    hosts.refuses("allow it", &allow, &allow.replace("allowed", "withdrawn"));
    // No rule and nobody beside allows it: its text says so.
    let ask = |text: &str| {
        format!(
            "INSERT INTO approvals (id, number, session, run, turn, tool_use_id, asked_of, channel, question) SELECT 'a', 9999, '{{boss}}', 1, 0, 'budget:turns', 'operator', 'control', \
             '{{\"id\":\"a\",\"session_id\":\"{{boss}}\",\"tool_use_id\":\"budget:turns\",\"kind\":\"budget\",\"tool_name\":\"budget\",{text}}}' RETURNING 1"
        )
    };
    let operator = "\"asked_of\":{\"kind\":\"operator\"}";
    let plain = ask(&format!("\"beyond_rules\":true,{operator}"));
    hosts.refuses("ask by rule", &ask(operator), &plain);
    hosts.refuses(
        "ask itself",
        &ask("\"beyond_rules\":true,\"asked_of\":{\"kind\":\"session\",\"id\":\"{worker}\"}"),
        &plain,
    );
    hosts.refuses("add a decider", &ask(&format!("\"beyond_rules\":true,\"passed\":[],{operator}")), &plain);
    let event = |kind: &str| {
        format!(
            "INSERT INTO events VALUES ('{{boss}}', 0, 9, '{{\"type\":\"{kind}\",\"approval_id\":\"{approval}\",\"tool_use_id\":\"budget:cost_usd\"}}', 1)"
        )
    };
    hosts.prints(&hosts.role(), &event("approval_requested")).unwrap();
    hosts.prints(&hosts.role(), &event("content")).unwrap_err();
    let open = hosts.one.open_approvals(OpenFilter::All).await.unwrap();
    assert!(
        open.iter().any(|row| row.approval.id == approval && row.approval.session_id == boss),
        "{open:?}"
    );
    // No call waits any more: the hub of the runner withdraws it.
    hosts.two.commit(NOW, vec![ends(child, 1)]).await.unwrap();
    let row = hosts.one.approval(approval).await.unwrap().unwrap();
    assert_eq!(row.approval.status, ApprovalStatus::Withdrawn);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_cannot_change_what_limits_it() {
    let test = "a_runner_cannot_change_what_limits_it";
    let Some(hosts) = Hosts::new(test).await else { return };
    for sql in [
        "ALTER TABLE plexus.audit DISABLE TRIGGER audit_of_runner",
        "ALTER TABLE plexus.approvals DISABLE ROW LEVEL SECURITY",
        "DROP POLICY own ON plexus.approvals",
        "CREATE POLICY mine ON plexus.approvals USING (TRUE)",
        "DROP TRIGGER budget_of_runner ON plexus.budgets",
        "CREATE TRIGGER mine BEFORE UPDATE ON plexus.approvals FOR EACH ROW EXECUTE FUNCTION plexus.refuse_renumbering()",
        "CREATE OR REPLACE FUNCTION plexus.own_host() RETURNS TEXT LANGUAGE sql STABLE SECURITY DEFINER AS $$ SELECT 'one' $$",
        "ALTER FUNCTION plexus.own_host() SET search_path = pg_temp",
        "DROP TRIGGER session_updated ON plexus_host.sessions",
        "CREATE OR REPLACE VIEW plexus.audit_tail AS SELECT number, hash FROM plexus.audit WHERE number = (SELECT max(number) FROM plexus.audit)",
        "CREATE TABLE plexus.mine (a INT)",
        "CREATE TABLE plexus_host.mine (a INT)",
        "GRANT ALL ON plexus.sessions TO PUBLIC",
        "INSERT INTO plexus.host_roles VALUES ('x', 'x', NULL)",
        "UPDATE plexus.host_roles SET host = 'three'",
        "SELECT plexus.grant_to_runner(role) FROM plexus.host_roles",
        "LOCK TABLE plexus.sessions",
        "TRUNCATE plexus.audit_head",
        "SET session_replication_role = replica",
        "SET ROLE plexus",
        "SET SESSION AUTHORIZATION plexus",
    ] {
        hosts.only_the_owner(sql);
    }
}

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
    back.commit(NOW, vec![lost(HostState::In)]).await.unwrap();
    agent(&back, "again").await;
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
    assert_eq!(server.psql(&database, open).unwrap(), "audit_head schema_version writer");
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
