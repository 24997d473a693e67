//! The command line: the verbs and their arguments. A first word that is not a verb is a namespace of the running hub.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand};

use crate::error::ExpectedError;
use crate::settings::DataDirArg;
use crate::{
    approvals, approve, attach, audit, call, completions, console, demo, deny, doctor, down, fork, logs, ls,
    mcp, mcp_config, run, serve, status, stop, transcript, up, watch,
};

/// Supervise many coding agents: a hub that runs Claude Code processes and holds each tool call until it is allowed or denied.
///
/// Each namespace of the running hub is a command as well: `plexus claudecode --help`, `plexus loopback pending`.
#[derive(Debug, Parser)]
#[command(name = "plexus", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Start an agent with a prompt, follow it, and answer its approval requests.
    Run(Box<run::RunArgs>),
    /// Follow a session, answer its approval requests, and send it prompts.
    Attach(attach::AttachArgs),
    /// List the sessions and their status.
    Ls(ls::LsArgs),
    /// Show the events of a session.
    Logs(logs::LogsArgs),
    /// Print the whole conversation of a session, with the decisions.
    Transcript(transcript::TranscriptArgs),
    /// Create a session that continues from an earlier turn of another one.
    Fork(fork::ForkArgs),
    /// Stop the processes of a session and of all sessions below it.
    Stop(stop::StopArgs),
    /// List the open approvals.
    Approvals(approvals::ApprovalsArgs),
    /// Allow a call, or answer a question.
    Approve(approve::ApproveArgs),
    /// Deny a call, with a reason.
    Deny(deny::DenyArgs),
    /// Open the web console, signed in.
    Console(console::ConsoleArgs),
    /// Start the hub in the background, unless one is running.
    Up(up::UpArgs),
    /// Show whether a hub is running, and count its sessions and open approvals.
    Status(status::StatusArgs),
    /// Check what Plexus needs, and say how to fix what is missing.
    Doctor(doctor::DoctorArgs),
    /// Print the configuration for Claude Code, Claude Desktop or Cursor.
    McpConfig(mcp_config::McpConfigArgs),
    /// Print shell completions.
    Completions(completions::CompletionsArgs),
    /// Run the hub in the foreground.
    Serve(ServeArgs),
    /// Stop the hub and all its agents.
    Down(DownArgs),
    /// Run the MCP server for an agent on stdio, and relay its calls to the hub.
    Mcp(McpArgs),
    /// Show all sessions and answer their approval requests on one screen.
    Watch(WatchArgs),
    /// Show how Plexus works with scripted agents; needs no account and no network.
    Demo(DemoArgs),
    /// Verify or export the audit log, with or without a running hub.
    #[command(subcommand)]
    Audit(AuditVerb),
    #[command(external_subcommand)]
    Call(Vec<OsString>),
}

/// Subcommands of `plexus audit` that read the file. Others, such as `plexus audit list`, call the running hub.
#[derive(Debug, Subcommand)]
pub(crate) enum AuditVerb {
    /// Verify the hash chain of the audit log in the file.
    Verify(VerifyArgs),
    /// Write the whole audit log to stdout, one JSON object per line.
    Export(ExportArgs),
    #[command(external_subcommand)]
    Call(Vec<OsString>),
}

/// Arguments of `plexus audit verify`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  plexus audit verify --head ~/heads.jsonl")]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    /// A file with heads of the audit log that were stored elsewhere (`head_file` in plexus.toml); each must match.
    #[arg(long, value_name = "FILE")]
    pub(crate) head: Option<PathBuf>,
}

/// Arguments of `plexus audit export`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  plexus audit export > audit.jsonl")]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
}

/// Arguments of `plexus serve`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  plexus serve --listen 127.0.0.1:4445\n\n`plexus up` runs it in the background."
)]
pub(crate) struct ServeArgs {
    /// The address to listen on (loopback only; port 0 chooses a free port and keeps it) [default: 127.0.0.1:4445].
    #[arg(long, env = "PLEXUS_LISTEN")]
    pub(crate) listen: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    /// The Claude Code program [default: `claude` in PATH].
    #[arg(long, env = "PLEXUS_CLAUDE")]
    pub(crate) claude: Option<PathBuf>,
    /// Detach from the terminal; used by `plexus up`.
    #[arg(long, hide = true)]
    pub(crate) background: bool,
}

/// Arguments of `plexus down`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  plexus down")]
pub(crate) struct DownArgs {
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
}

/// Arguments of `plexus watch`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  plexus watch\n\n`?` shows the keys, q quits.")]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
}

/// Arguments of `plexus mcp`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  plexus mcp-config claude-code   prints the configuration for an agent")]
pub(crate) struct McpArgs {
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    /// The name of this agent, which decides for the sessions it creates [default: its Claude Code session].
    #[arg(long = "as", value_name = "NAME", env = "CLAUDE_CODE_SESSION_ID", default_value = "default")]
    pub(crate) name: String,
}

/// Arguments of `plexus demo`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plexus demo --console      several scripted agents in the web console\n  plexus demo --yes"
)]
pub(crate) struct DemoArgs {
    /// The data directory of the demo's hub [default: a temporary directory, deleted at the end].
    #[arg(long)]
    pub(crate) data_dir: Option<PathBuf>,
    /// Allow every call.
    #[arg(long)]
    pub(crate) yes: bool,
    /// Open the web console on a tree of scripted agents, until Ctrl-C.
    #[arg(long, conflicts_with = "yes")]
    pub(crate) console: bool,
    /// Print the link to the console instead of opening a browser.
    #[arg(long, requires = "console")]
    pub(crate) no_open: bool,
}

/// The command line without the namespaces of a hub.
pub(crate) fn command() -> clap::Command {
    Cli::command()
}

/// Parses the command line and runs the verb.
pub(crate) fn run() -> Result<(), ExpectedError> {
    match Cli::parse().verb {
        Verb::Run(args) => run::run(&args),
        Verb::Attach(args) => attach::run(&args),
        Verb::Ls(args) => ls::run(&args),
        Verb::Logs(args) => logs::run(&args),
        Verb::Transcript(args) => transcript::run(&args),
        Verb::Fork(args) => fork::run(&args),
        Verb::Stop(args) => stop::run(&args),
        Verb::Approvals(args) => approvals::run(&args),
        Verb::Approve(args) => approve::run(&args),
        Verb::Deny(args) => deny::run(&args),
        Verb::Console(args) => console::run(&args),
        Verb::Up(args) => up::run(&args),
        Verb::Status(args) => status::run(&args),
        Verb::Doctor(args) => doctor::run(&args),
        Verb::McpConfig(args) => mcp_config::run(&args),
        Verb::Completions(args) => completions::run(&args),
        Verb::Serve(args) => serve::run(args),
        Verb::Down(args) => down::run(&args),
        Verb::Watch(args) => watch::run(&args),
        Verb::Mcp(args) => mcp::run(args),
        Verb::Demo(args) => demo::run(args),
        Verb::Audit(verb) => audit::run(verb),
        Verb::Call(words) => call::run(words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_help_of_every_verb_has_an_example() {
        for verb in Cli::command().get_subcommands().filter(|verb| verb.get_subcommands().next().is_none()) {
            let help = verb.clone().render_long_help().to_string();
            let name = verb.get_name();
            assert!(
                help.contains("Example") && help.contains(&format!("  plexus {name}")) || name == "mcp",
                "{help}"
            );
        }
    }
}
