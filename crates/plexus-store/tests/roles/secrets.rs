//! Commands of other hosts, and what a runner can read.

use crate::Hosts;

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
