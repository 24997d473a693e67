//! `plexus host`: lists and changes the machines whose hubs share a PostgreSQL database.

mod add;

use add::AddArgs;
use clap::{Args, Subcommand};
use plexus_protocol::HostLabel;
use plexus_protocol::host::{AcceptRollbackResult, HostResult, HostState, HostView, ListResult};
use serde_json::json;

use crate::confirm_loss::YesArg;
use crate::error::ExpectedError;
use crate::hub::{HubClient, JsonArg, block_on};
use crate::output;
use crate::removal::{Removal, RemovalArgs, Target};
use crate::settings::DataDirArg;
use crate::table::{Align, Table};
use crate::terminal::{age, one_line};

/// Arguments of `plexus host`.
#[derive(Debug, Args)]
pub(crate) struct HostArgs {
    #[command(subcommand)]
    verb: HostVerb,
}

/// What to do with hosts.
#[derive(Debug, Subcommand)]
enum HostVerb {
    /// List the hosts that share the database, and whether their hubs are connected.
    Ls(LsArgs),
    /// Create a database role for a machine, limited to the sessions of that machine, and print the settings it needs to join.
    ///
    /// Run this on a hub whose role owns the tables and may create roles. The password is shown only once.
    Add(AddArgs),
    /// Place no new sessions on a host. Its existing sessions continue.
    #[command(after_help = "Example:\n  plexus host drain gpu-1")]
    Drain(ChangeArgs),
    /// Allow new sessions on a drained host again.
    #[command(after_help = "Example:\n  plexus host undrain gpu-1")]
    Undrain(ChangeArgs),
    /// Declare a host lost: withdraw its approvals, fail its turns, and keep its hub from writing.
    ///
    /// For a machine that does not come back. If it does, its hub stops the agents that still run there, keeps their files, and rejoins. A
    /// host with a role of its own loses its rights; `plexus host add --renew` admits it again.
    Lost(LostArgs),
    /// Remove a host that has no sessions, and its role. Another machine may use its name.
    Rm(RmArgs),
    /// Continue even though the database has lost commits that this host had made or seen.
    ///
    /// After a restore from a backup, or if a standby without the last commits took over, each hub holds all changes until you run this on its
    /// machine. The hub stops; the next one continues with the state of the database, and the audit log has an entry.
    AcceptRollback(AcceptRollbackArgs),
}

/// Arguments of `plexus host drain` and `undrain`.
#[derive(Debug, Args)]
struct ChangeArgs {
    /// The name of the host.
    #[arg(value_name = "NAME")]
    host: String,
    #[command(flatten)]
    data_dir: DataDirArg,
    #[command(flatten)]
    json: JsonArg,
}

/// Arguments of `plexus host lost`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  plexus host lost gpu-1")]
struct LostArgs {
    /// The name of the host.
    #[arg(value_name = "NAME")]
    host: String,
    /// Declare it lost even if its hub is connected. Its agents are stopped.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    removal: RemovalArgs,
}

/// Arguments of `plexus host accept-rollback`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  plexus host accept-rollback && plexus up")]
struct AcceptRollbackArgs {
    #[command(flatten)]
    yes: YesArg,
    #[command(flatten)]
    data_dir: DataDirArg,
}

/// Arguments of `plexus host rm`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  plexus host rm gpu-1")]
struct RmArgs {
    /// The name of the host.
    #[arg(value_name = "NAME")]
    host: String,
    #[command(flatten)]
    removal: RemovalArgs,
}

/// Arguments of `plexus host ls`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  plexus host ls")]
struct LsArgs {
    #[command(flatten)]
    data_dir: DataDirArg,
    #[command(flatten)]
    json: JsonArg,
}

/// Lists or changes hosts.
pub(crate) fn run(args: &HostArgs) -> Result<(), ExpectedError> {
    match &args.verb {
        HostVerb::Ls(args) => block_on(list(args)),
        HostVerb::Add(args) => block_on(add::run(args)),
        HostVerb::Drain(args) => block_on(change(args, "host.drain", "gets no new sessions")),
        HostVerb::Undrain(args) => block_on(change(args, "host.undrain", "gets new sessions again")),
        HostVerb::Lost(args) => block_on(lost(args)),
        HostVerb::Rm(args) => block_on(remove(args)),
        HostVerb::AcceptRollback(args) => block_on(accept_rollback(args)),
    }
}

async fn accept_rollback(args: &AcceptRollbackArgs) -> Result<(), ExpectedError> {
    let hub = HubClient::reach(&args.data_dir).await?;
    args.yes
        .confirm("Continue with the state of the database? Commits that it has lost cannot be recovered.")
        .await?;
    let AcceptRollbackResult::Ok {} = hub.call_with_timeout("host.accept_rollback", json!({})).await?;
    output::say("plexus: accepted; the hub stops. Start it again with `plexus up`");
    Ok(())
}

async fn change(args: &ChangeArgs, method: &str, outcome: &str) -> Result<(), ExpectedError> {
    let hub = HubClient::reach(&args.data_dir).await?;
    let changed: HostResult = hub.call_with_timeout(method, json!({"host": args.host})).await?;
    if args.json.json {
        output::json(&changed);
    } else {
        output::say(&format!("plexus: host {} {outcome}", args.host));
    }
    Ok(())
}

async fn lost(args: &LostArgs) -> Result<(), ExpectedError> {
    let LostArgs { host, force, removal } = args;
    let hub = HubClient::reach(&removal.data_dir).await?;
    let what = Removal {
        question: format!("Declare host {host} lost? Its approvals are withdrawn and its turns fail."),
        method: "host.lose",
        targets: vec![Target { name: host.clone(), params: json!({"host": host, "force": force}) }],
    };
    removal.remove(&hub, what, |host, _: &HostResult| format!("host {host} is lost\n")).await
}

async fn remove(args: &RmArgs) -> Result<(), ExpectedError> {
    let RmArgs { host, removal } = args;
    let hub = HubClient::reach(&removal.data_dir).await?;
    let what = Removal {
        question: format!("Remove host {host}?"),
        method: "host.remove",
        targets: vec![Target { name: host.clone(), params: json!({"host": host}) }],
    };
    removal.remove(&hub, what, |host, _: &HostResult| format!("removed host {host}\n")).await
}

async fn list(args: &LsArgs) -> Result<(), ExpectedError> {
    let hub = HubClient::reach(&args.data_dir).await?;
    let ListResult::Ok { hosts } = hub.call_with_timeout("host.list", json!({})).await?;
    if args.json.json {
        output::json(&hosts);
    } else if hosts.is_empty() {
        output::say("plexus: this hub stores its state in a file, which it shares with no other host");
    } else {
        output::print(&table(&hosts));
    }
    Ok(())
}

fn table(hosts: &[HostView]) -> String {
    let mut table = Table::new(&[
        ("NAME", Align::Left),
        ("STATE", Align::Left),
        ("LABELS", Align::Left),
        ("SLOTS", Align::Right),
        ("SESSIONS", Align::Right),
        ("APPROVALS", Align::Right),
        ("VERSION", Align::Left),
    ]);
    for host in hosts {
        let state = match (host.state, host.silent_secs) {
            (HostState::Connected, _) if host.here => "connected (this hub)".to_owned(),
            (HostState::Connected, _) => "connected".to_owned(),
            (HostState::Unreachable, silent) => format!("unreachable for {}", age(silent.unwrap_or(0))),
            (HostState::Lost, _) => "lost".to_owned(),
        };
        let state = if host.lost_commits { format!("{state}, lost commits") } else { state };
        let state = if host.draining { format!("{state}, draining") } else { state };
        let counts = [host.sessions, host.open_approvals].map(|count| count.to_string());
        let [sessions, approvals] = counts;
        let labels: Vec<&str> = host.labels.iter().map(HostLabel::as_str).collect();
        let slots = match host.slots {
            Some(slots) => format!("{}/{slots}", host.used_slots),
            None => host.used_slots.to_string(),
        };
        let name = host.name.to_string();
        table.row([name, state, labels.join(" "), slots, sessions, approvals, one_line(&host.version, 40)]);
    }
    table.to_string()
}
