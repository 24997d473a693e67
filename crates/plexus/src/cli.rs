//! The command line: the verbs, and what they take. Words that are no verb go on to the running hub.

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

/// Answer for many agents: a hub that supervises Claude Code processes and stops each tool call until it is decided.
///
/// Besides the commands below, each namespace of the running hub is one: `plexus claudecode --help`,
/// `plexus loopback pending`.
#[derive(Debug, Parser)]
#[command(name = "plexus", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Give an agent something to do, follow it, and answer for it.
    Run(Box<run::RunArgs>),
    /// Follow a session, answer for it, and talk to it.
    Attach(attach::AttachArgs),
    /// Show the sessions and how each stands.
    Ls(ls::LsArgs),
    /// Show what happened in a session, and what happens.
    Logs(logs::LogsArgs),
    /// Write a session's whole conversation down.
    Transcript(transcript::TranscriptArgs),
    /// Go another way from an earlier turn of a session; both live on.
    Fork(fork::ForkArgs),
    /// End the processes of a session and of all below it.
    Stop(stop::StopArgs),
    /// Show what waits for an answer.
    Approvals(approvals::ApprovalsArgs),
    /// Let a call through.
    Approve(approve::ApproveArgs),
    /// Refuse a call, and say why.
    Deny(deny::DenyArgs),
    /// Open the web console, signed in.
    Console(console::ConsoleArgs),
    /// Start the hub in the background, unless it runs.
    Up(up::UpArgs),
    /// Say whether a hub runs, and how much there is to do.
    Status(status::StatusArgs),
    /// Look whether all that Plexus needs is there, and say how to mend what is not.
    Doctor(doctor::DoctorArgs),
    /// Print what puts Plexus into Claude Code, Claude Desktop or Cursor.
    McpConfig(mcp_config::McpConfigArgs),
    /// Print completions for a shell.
    Completions(completions::CompletionsArgs),
    /// Run the hub.
    Serve(ServeArgs),
    /// End the hub and all its children.
    Down(DownArgs),
    /// Speak MCP on stdio and relay it to the hub; for the MCP config of an agent.
    Mcp(McpArgs),
    /// See all sessions and answer what they ask, on one screen.
    Watch(WatchArgs),
    /// Show how it works, with a scripted agent: no account, no network.
    Demo(DemoArgs),
    /// Look the record of decisions over, or take it elsewhere, with or without a running hub.
    #[command(subcommand)]
    Audit(AuditVerb),
    #[command(external_subcommand)]
    Call(Vec<OsString>),
}

/// What can be done with the record. What reads the file alone is here; `plexus audit list` asks the running hub.
#[derive(Debug, Subcommand)]
pub(crate) enum AuditVerb {
    /// Look whether the record is what was written, in the file alone.
    Verify(VerifyArgs),
    /// Write all of the record to stdout, one JSON object on each line.
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
    /// A file with heads of the record that were kept elsewhere (`head_file` in plexus.toml): each has to fit.
    #[arg(long, value_name = "FILE")]
    pub(crate) head: Option<PathBuf>,
}

/// Arguments of `plexus audit export`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  plexus audit export > record.jsonl")]
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
    /// Where to listen (loopback only; port 0 takes a free one, the same at every start) [default: 127.0.0.1:4445].
    #[arg(long, env = "PLEXUS_LISTEN")]
    pub(crate) listen: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    /// The Claude Code program [default: `claude` in PATH].
    #[arg(long, env = "PLEXUS_CLAUDE")]
    pub(crate) claude: Option<PathBuf>,
    /// Leave the terminal: how `plexus up` starts it.
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
#[command(after_help = "Example:\n  plexus watch\n\n`?` shows the keys, q leaves.")]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
}

/// Arguments of `plexus mcp`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  plexus mcp-config claude-code   prints where it goes")]
pub(crate) struct McpArgs {
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    /// The name under which this agent answers for the sessions it makes [default: its Claude Code session].
    #[arg(long = "as", value_name = "NAME", env = "CLAUDE_CODE_SESSION_ID", default_value = "default")]
    pub(crate) name: String,
}

/// Arguments of `plexus demo`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  plexus demo --yes")]
pub(crate) struct DemoArgs {
    /// Where the demo's hub lives [default: a temporary folder, removed at the end].
    #[arg(long)]
    pub(crate) data_dir: Option<PathBuf>,
    /// Answer every question with yes.
    #[arg(long)]
    pub(crate) yes: bool,
}

/// The command line, as far as it is ours.
pub(crate) fn command() -> clap::Command {
    Cli::command()
}

/// Reads the command line and does what it says.
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
    fn the_command_line_is_sound() {
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
