//! Hosts, their epochs and leases, and the numbers of transactions.

use crate::Hosts;

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
    let version = |version: &str| join("two", "in").replace("'9'", &format!("'{version}'"));
    hosts.refuses(
        "join as a version that controls terminals",
        &version("\u{1b}[2J"),
        &version("0.1.0-rc.1+x"),
    );
    hosts.refuses("add a host", &join("three", "in"), &join("two", "rolled_back"));
    hosts.refuses("become another machine", &set("machine = 'x'", "two"), &set("last_commit = 'x'", "two"));
    hosts.refuses("fence another host", &set("last_commit = 'x'", "one"), &set("last_commit = 'x'", "two"));
    hosts.refuses("drain another host", &set("state = 'draining'", "one"), &set("state = 'draining'", "two"));
    hosts.refuses("remove itself", &set("state = 'removed'", "two"), &set("state = 'in'", "two"));
    let offer = set("labels = '[\"gpu\",\"team=a\"]', slots = 2", "two");
    for unreadable in ["state = 'garbage'", "slots = -1", "labels = '}{'", "labels = '[1]'"] {
        hosts.refuses("store what no hub can read", &set(unreadable, "two"), &offer);
    }
    let tree = |ordinal: &str| {
        format!(
            "INSERT INTO trees (id, created_at, ordinal) SELECT gen_random_uuid()::TEXT, 1, {ordinal} FROM tree_numbers RETURNING 1"
        )
    };
    hosts.refuses("take the last number of a tree", &tree("9223372036854775807"), &tree("max(ordinal) + 1"));
    hosts.refuses(
        "reopen a command",
        "UPDATE commands SET reply = '1'; UPDATE commands SET reply = NULL RETURNING 1",
        "UPDATE commands SET reply = '1' RETURNING 1",
    );
    let lease = |host: &str| {
        format!(
            "INSERT INTO leases VALUES ('{host}', 1) ON CONFLICT (host) DO UPDATE SET until = 1 RETURNING 1"
        )
    };
    hosts.refuses("end the lease of another host", &lease("one"), &lease("two"));
    for until in ["-9223372036854775808", "-1", "9223372036854775807"] {
        let strange = lease("two").replace("until = 1", &format!("until = {until}"));
        hosts.refuses("have a lease that hubs cannot compute with", &strange, &lease("two"));
    }
    let next = "WITH next AS (UPDATE writer SET number = number + 1 RETURNING number)";
    let commit = |host: &str| {
        format!("{next} INSERT INTO commits SELECT number, '{host}', '{{}}', 1 FROM next RETURNING 1")
    };
    hosts.refuses("commit as another host", &commit("one"), &commit("two"));
    let taken = "INSERT INTO commits SELECT number + 1, 'two', '{}', 1 FROM writer RETURNING 1";
    hosts.refuses("take the number of the next commit", taken, &commit("two"));
    let late =
        format!("{}, at < 9000000000000", commit("two").replace(", 1 FROM", ", 9000000000000000000 FROM"));
    assert_eq!(hosts.prints(&hosts.role(), &late).as_deref(), Ok("1|t"), "a record is not kept for ever");
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

/// A trigger on a table of its own would let it choose the rows that a function of the owner gets.
#[tokio::test(flavor = "multi_thread")]
async fn a_runner_cannot_call_the_trigger_functions_of_the_owner() {
    let test = "a_runner_cannot_call_the_trigger_functions_of_the_owner";
    let Some(hosts) = Hosts::new(test).await else { return };
    let functions = hosts
        .prints("plexus", "SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'plexus' AND p.prosecdef AND p.prorettype = 'trigger'::regtype")
        .unwrap();
    assert!(functions.lines().count() >= 7, "{functions}");
    for function in functions.lines() {
        let attack = format!(
            "CREATE TEMP TABLE own (a TEXT); CREATE TRIGGER own BEFORE UPDATE ON own FOR EACH ROW EXECUTE FUNCTION {function}; SELECT 1"
        );
        let allowed = "UPDATE sessions SET name = name WHERE id = '{worker}' RETURNING 1";
        hosts.refuses(function, &attack, allowed);
    }
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
