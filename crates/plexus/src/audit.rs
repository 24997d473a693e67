//! `plexus audit`: lists the newest entries of the audit log, from the running hub. `verify` and `export` read the log directly from
//! the database file, so that an auditor neither needs nor trusts a hub. Other subcommands call methods of the hub.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use clap::{Args, ValueEnum};
use plexus_protocol::audit::{AuditEntry, AuditHead, AuditKind, AuditRow, ListResult, VerifyResult};
use plexus_protocol::claudecode::SessionView;
use plexus_protocol::{Decider, SessionId};
use plexus_server::{DataDir, ServeError};
use plexus_store::{AuditFile, StoreFiles};
use serde_json::{Value, json};

use crate::cli::{AuditArgs, AuditVerb, ExportArgs, VerifyArgs};
use crate::durations::seconds;
use crate::error::{ExpectedError, system};
use crate::hub::{HubClient, JsonArg, block_on};
use crate::rules::{by, label};
use crate::settings::DataDirArg;
use crate::table::{Align, Table};
use crate::terminal::{age, now, one_line, tool_line};
use crate::{call, output};

/// Arguments of `plexus audit` without a subcommand.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only entries about this session, by name, path or id.
    #[arg(short, long, value_name = "NAME")]
    session: Option<String>,
    /// Only entries of this kind.
    #[arg(long, value_enum)]
    kind: Option<KindArg>,
    /// Only entries by this caller: you, hub, session:NAME (also a path or an id), token:NAME or parent:NAME.
    #[arg(long, value_name = "WHO")]
    by: Option<String>,
    /// Only entries about this tool.
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,
    /// Only entries newer than this, such as 15m, 12h or 7d.
    #[arg(long, value_name = "DURATION", value_parser = seconds)]
    since: Option<u64>,
    /// The maximum number of entries.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=1000))]
    limit: u64,
    #[command(flatten)]
    data_dir: DataDirArg,
    #[command(flatten)]
    json: JsonArg,
}

/// The kind of an audit entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindArg {
    /// Approvals that were resolved.
    Decision,
    /// Calls that a rule allowed or denied.
    Gate,
    /// Tokens.
    Token,
    /// Rules.
    Policy,
    /// Sessions.
    Session,
    /// Templates.
    Template,
    /// Hosts.
    Host,
}

/// Lists the log, or runs a subcommand.
pub(crate) fn run(args: AuditArgs) -> Result<(), ExpectedError> {
    let Some(verb) = args.verb else { return block_on(list(&args.list)) };
    match verb {
        AuditVerb::Verify(args) => verify(&args),
        AuditVerb::Export(args) => export(&args),
        AuditVerb::Call(words) => call::run(std::iter::once(OsString::from("audit")).chain(words).collect()),
    }
}

async fn list(args: &ListArgs) -> Result<(), ExpectedError> {
    let hub = HubClient::reach(&args.data_dir).await?;
    let mut filter = json!({"newest_first": true, "limit": args.limit});
    if let Some(name) = &args.session {
        filter["session_id"] = json!(hub.session(name).await?.id);
    }
    if let Some(kind) = args.kind.and_then(|kind| kind.to_possible_value()) {
        filter["kind"] = json!(kind.get_name());
    }
    if let Some(seconds) = args.since {
        filter["since"] = json!(now().saturating_sub(seconds));
    }
    if let Some(who) = &args.by {
        filter["by"] = json!(caller_key(&hub, who).await?);
    }
    if let Some(tool) = &args.tool {
        filter["tool_name"] = json!(tool);
    }
    let ListResult::Ok { mut rows, next } = hub.call_with_timeout("audit.list", filter).await?;
    // The newest entry is at the bottom, next to the prompt.
    rows.reverse();
    if args.json.json {
        output::json(&rows);
    } else if rows.is_empty() {
        output::say("plexus: no entries");
    } else {
        output::print(&table(&rows, &hub.all_sessions().await?));
        if next.is_some() {
            output::say(
                "plexus: there are earlier entries; `-n` shows more, `plexus audit export` writes all",
            );
        }
    }
    Ok(())
}

/// The key of a caller in the log, from the words of the column BY.
async fn caller_key(hub: &HubClient, who: &str) -> Result<String, ExpectedError> {
    match who {
        "you" => Ok(Decider::Operator.key()),
        "operator" | "hub" => Ok(who.to_owned()),
        _ if ["token:", "parent:"].iter().any(|kind| who.starts_with(kind)) => Ok(who.to_owned()),
        _ => {
            let name = who.strip_prefix("session:").unwrap_or(who);
            match name.parse::<SessionId>() {
                // A deleted session has entries, too.
                Ok(id) => Ok(Decider::Session { id }.key()),
                Err(_) => Ok(Decider::Session { id: hub.session(name).await?.id }.key()),
            }
        }
    }
}

fn table(rows: &[AuditRow], sessions: &[SessionView]) -> String {
    let mut table = Table::new(&[
        ("NO", Align::Right),
        ("WHEN", Align::Right),
        ("KIND", Align::Left),
        ("WHAT", Align::Left),
        ("BY", Align::Left),
        ("SESSION", Align::Left),
        ("ABOUT", Align::Left),
    ]);
    for AuditRow { number, entry, .. } in rows {
        let kind = match entry.kind {
            AuditKind::Decision => "decision",
            AuditKind::Gate => "gate",
            AuditKind::Token => "token",
            AuditKind::Policy => "policy",
            AuditKind::Session => "session",
            AuditKind::Template => "template",
            AuditKind::Host => "host",
        };
        let at_the_time = entry.session_path.clone();
        let session = at_the_time
            .or_else(|| entry.session_name.as_ref().map(ToString::to_string))
            .or_else(|| entry.session_id.map(|id| label(id, sessions)))
            .unwrap_or_default();
        table.row([
            number.to_string(),
            format!("{} ago", age(now().saturating_sub(entry.at))),
            kind.to_owned(),
            one_line(&entry.status, 40),
            by(&entry.by, sessions),
            one_line(&session, 60),
            about(entry),
        ]);
    }
    table.to_string()
}

/// The call, token or details of an entry.
fn about(entry: &AuditEntry) -> String {
    const WIDTH: usize = 80;
    match (&entry.tool_name, &entry.token, &entry.detail) {
        (Some(tool), ..) => {
            let input = entry.updated_input.as_ref().or(entry.input.as_ref());
            let input = input.map(|input| tool_line(tool, input, WIDTH)).unwrap_or_default();
            format!("{} {input}", one_line(tool, 60)).trim_end().to_owned()
        }
        (None, Some(token), _) => one_line(&token.to_string(), WIDTH),
        (None, None, Some(detail)) => match detail.get("rule").and_then(Value::as_str) {
            Some(rule) => one_line(rule, WIDTH),
            None => one_line(&Value::Object(detail.clone()).to_string(), WIDTH),
        },
        (None, None, None) => String::new(),
    }
}

fn verify(args: &VerifyArgs) -> Result<(), ExpectedError> {
    let log = open(&args.data_dir, "verify", verify_with_hub)?;
    let found = match &args.head {
        Some(file) => log.verify(read_heads(file)?),
        None => log.verify([]),
    };
    let found = found.map_err(ServeError::from)?;
    output::print(&serde_json::to_string_pretty(&found).map_err(system)?);
    match found {
        VerifyResult::Ok { .. } => Ok(()),
        VerifyResult::Broken { number, why } => {
            Err(ExpectedError::Refused(format!("the audit log was changed: entry {number} {why}")))
        }
    }
}

fn export(args: &ExportArgs) -> Result<(), ExpectedError> {
    let log = open(&args.data_dir, "export", |_| "`plexus audit list` prints a page of it".to_owned())?;
    let exported = log.export(|line| output::write(&format!("{line}\n")));
    let exported = exported.map_err(ServeError::from)?;
    match exported {
        Ok(()) => Ok(()),
        Err(why) => Err(ExpectedError::Refused(why)),
    }
}

/// Opens the file that `plexus audit VERB` reads. If the log is in a database, the error contains the `alternative` for this data directory.
fn open(
    data_dir: &DataDirArg,
    verb: &str,
    alternative: fn(&Path) -> String,
) -> Result<AuditFile, ExpectedError> {
    let dir = data_dir.resolve()?;
    let joined = StoreFiles::of(&dir).joined();
    if let Some(joined) = joined.map_err(|error| ExpectedError::DataDir { dir: dir.clone(), error })? {
        let database = joined.database.map(|database| format!(" ({database})")).unwrap_or_default();
        return Err(ExpectedError::Refused(format!(
            "the audit log is in a database{database}, and `plexus audit {verb}` reads only a file; {}",
            alternative(&dir)
        )));
    }
    Ok(AuditFile::open(&DataDir::store_in(&dir)).map_err(ServeError::from)?)
}

/// The command with which the hub of a data directory verifies the log. The verb has the name of the method, so the method has no command of its own.
fn verify_with_hub(dir: &Path) -> String {
    format!(
        "its hub verifies it: curl -s --unix-socket '{}' http://hub.sock/rpc -H 'Content-Type: application/json' \
         -d '{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"audit.verify\"}}'",
        DataDir::socket(dir).display()
    )
}

/// The heads in a file, in the format of `head_file`. An invalid line is reported and skipped.
fn read_heads(path: &Path) -> Result<impl Iterator<Item = AuditHead>, ExpectedError> {
    let unreadable = |error| ExpectedError::Settings(format!("cannot read {}: {error}", path.display()));
    let file = BufReader::new(File::open(path).map_err(unreadable)?);
    let name = path.display().to_string();
    let lines = file.lines().enumerate();
    Ok(lines.filter_map(move |(index, line)| match line.map(|line| serde_json::from_str(&line)) {
        Ok(Ok(head)) => Some(head),
        _ => {
            output::say(&format!("plexus: warning: line {} of {name} is not a valid head", index + 1));
            None
        }
    }))
}

#[cfg(test)]
mod tests {
    use plexus_protocol::HostName;

    use super::*;

    #[test]
    fn a_log_in_a_database_is_not_read_from_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let one = HostName::try_from("one".to_owned()).unwrap();
        StoreFiles::of(dir.path()).set_joined(&one, "postgres://u@db/p").unwrap();
        let data_dir = DataDirArg { data_dir: Some(dir.path().to_owned()) };
        let verified = verify(&VerifyArgs { data_dir, head: None }).unwrap_err().to_string();
        for part in ["is in a database (postgres://u@db/p)", "hub.sock", r#""method":"audit.verify""#] {
            assert!(verified.contains(part), "{part}: {verified}");
        }
        let data_dir = DataDirArg { data_dir: Some(dir.path().to_owned()) };
        let exported = export(&ExportArgs { data_dir }).unwrap_err().to_string();
        assert!(exported.contains("`plexus audit list`"), "{exported}");
    }
}
