//! A log that the database itself writes: triggers record every decision, rule and budget, with the hub that had fenced the transaction. Transactions that
//! write are serial, so the log has their order.

use anyhow::Context as _;
use plexus_testkit::postgres::Postgres;
use serde_json::Value;

use crate::chaos::checker::{Finished, Logged, What, Writer};
use crate::text;

/// The row of the host that this transaction has updated names the hub: only a transaction that was fenced has one.
const INSTALL: &str = r"
CREATE SCHEMA chaos;
CREATE TABLE chaos.log (n BIGSERIAL PRIMARY KEY, host TEXT, epoch BIGINT, line TEXT NOT NULL);
CREATE FUNCTION chaos.note(line JSON) RETURNS void LANGUAGE sql AS $$
    INSERT INTO chaos.log (host, epoch, line)
    SELECT h.name, h.epoch, line FROM (SELECT 1) one LEFT JOIN plexus.hosts h ON h.xmin = pg_current_xact_id()::xid
$$;
CREATE FUNCTION chaos.label(text TEXT) RETURNS BIGINT LANGUAGE sql AS $$ SELECT substring(text FROM 'Rule([0-9]+)')::BIGINT $$;
CREATE FUNCTION chaos.owner(session TEXT) RETURNS TEXT LANGUAGE sql AS $$ SELECT host FROM plexus.sessions WHERE id = session $$;

CREATE FUNCTION chaos.approval() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM chaos.note(json_build_object('what', 'resolved', 'approval', NEW.id, 'call', NEW.tool_use_id, 'owner', chaos.owner(NEW.session), 'status', NEW.status,
        'rule', CASE WHEN NEW.decision::json->>'rule' IS NULL THEN NULL ELSE chaos.label(NEW.question::json->>'tool_name') END));
    RETURN NULL;
END $$;
CREATE TRIGGER chaos AFTER UPDATE ON plexus.approvals FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status) EXECUTE FUNCTION chaos.approval();

CREATE FUNCTION chaos.call() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP = 'UPDATE' AND OLD.verdict = NEW.verdict THEN RETURN NULL; END IF;
    PERFORM chaos.note(json_build_object('what', 'gate', 'call', NEW.tool_use_id, 'owner', chaos.owner(NEW.session), 'answer', NEW.verdict::json->>'answer',
        'rule', chaos.label(NEW.tool_name)));
    RETURN NULL;
END $$;
CREATE TRIGGER chaos AFTER INSERT OR UPDATE ON plexus.calls FOR EACH ROW EXECUTE FUNCTION chaos.call();

CREATE FUNCTION chaos.rule() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM chaos.note(json_build_object('what', CASE TG_OP WHEN 'INSERT' THEN 'created' ELSE 'revoked' END, 'rule', chaos.label(NEW.entry)));
    RETURN NULL;
END $$;
CREATE TRIGGER chaos AFTER INSERT OR UPDATE ON plexus.rules FOR EACH ROW EXECUTE FUNCTION chaos.rule();

CREATE FUNCTION chaos.budget() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM chaos.note(json_build_object('what', 'budget', 'session', NEW.session, 'granted', NEW.granted, 'claimed', NEW.own + NEW.below));
    RETURN NULL;
END $$;
CREATE TRIGGER chaos AFTER INSERT OR UPDATE ON plexus.budgets FOR EACH ROW WHEN (NEW.kind = 'tool_calls') EXECUTE FUNCTION chaos.budget();
";

/// Installs the log in a database that has the tables of a hub.
pub(super) fn install(server: &Postgres, database: &str) -> anyhow::Result<()> {
    server.psql(database, INSTALL).map(drop)
}

/// The log, in the order of the transactions.
pub(super) fn read(server: &Postgres, database: &str) -> anyhow::Result<Vec<Logged>> {
    let sql = "SELECT json_build_object('host', host, 'epoch', epoch, 'line', line::json) FROM chaos.log ORDER BY n";
    rows(server, database, sql)?.iter().map(logged).collect()
}

/// The numbers of all feed entries.
pub(super) fn feed(server: &Postgres, database: &str) -> anyhow::Result<Vec<u64>> {
    numbers(server, database, "SELECT number FROM plexus.feed ORDER BY number")
}

/// The numbers of all audit entries.
pub(super) fn audit(server: &Postgres, database: &str) -> anyhow::Result<Vec<u64>> {
    numbers(server, database, "SELECT number FROM plexus.audit ORDER BY number")
}

/// The number of commands that a hub may still execute.
pub(super) fn open_commands(server: &Postgres, database: &str) -> anyhow::Result<u64> {
    let counted = numbers(server, database, "SELECT count(*) FROM plexus.commands WHERE reply IS NULL")?;
    counted.first().copied().context("a number")
}

/// The turns whose end is in the operator's feed.
pub(super) fn finished(server: &Postgres, database: &str) -> anyhow::Result<Vec<Finished>> {
    let sql = "SELECT json_build_object('session', session, 'turn', turn) FROM plexus.feed WHERE addressee = 'operator' AND kind = 'finished' ORDER BY number";
    let finished = |row: &Value| Ok(Finished { session: text(&row["session"]), turn: number(&row["turn"])? });
    rows(server, database, sql)?.iter().map(finished).collect()
}

fn rows(server: &Postgres, database: &str, sql: &str) -> anyhow::Result<Vec<Value>> {
    let printed = server.psql(database, sql)?;
    printed.lines().map(|line| serde_json::from_str(line).with_context(|| line.to_owned())).collect()
}

fn numbers(server: &Postgres, database: &str, sql: &str) -> anyhow::Result<Vec<u64>> {
    rows(server, database, sql)?.iter().map(number).collect()
}

fn number(value: &Value) -> anyhow::Result<u64> {
    value.as_u64().with_context(|| format!("a number instead of {value}"))
}

fn logged(row: &Value) -> anyhow::Result<Logged> {
    let line = &row["line"];
    let field = |name: &str| text(&line[name]);
    let rule = line["rule"].as_u64();
    let what = match line["what"].as_str() {
        Some("resolved") => What::Resolved {
            approval: field("approval"),
            call: field("call"),
            owner: field("owner"),
            status: field("status"),
            rule,
        },
        Some("gate") => {
            What::Gate { call: field("call"), owner: field("owner"), answer: field("answer"), rule }
        }
        Some("created") => What::RuleCreated(number(&line["rule"])?),
        Some("revoked") => What::RuleRevoked(number(&line["rule"])?),
        Some("budget") => What::Budget {
            session: field("session"),
            granted: number(&line["granted"])?,
            claimed: number(&line["claimed"])?,
        },
        _ => anyhow::bail!("{row}"),
    };
    let by = row["host"].as_str().zip(row["epoch"].as_u64());
    Ok(Logged { what, by: by.map(|(host, epoch)| Writer { host: host.to_owned(), epoch }) })
}
