//! The command line: the verbs and their arguments. A first word that is not a verb is a namespace of the running hub.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{ArgMatches, Args, Command, CommandFactory, FromArgMatches as _, Parser, Subcommand};
use plexus_core::Launcher;

use crate::cli_words::{self, Words};
use crate::error::ExpectedError;
use crate::settings::claude::launcher_parser;
use crate::settings::{DataDirArg, StoreArgs};
use crate::{
    allow, approvals, approve, attach, audit, call, compact, completions, console, demo, deny, diff, doctor,
    down, fork, host, import, interrupt, logs, ls, mcp, mcp_config, migrate, rename, rm, rules, run, send,
    serve, status, stop, tokens, transcript, up, watch,
};

/// Supervise many coding agents: a hub that runs Claude Code processes and holds each tool call until it is allowed or denied.
///
/// `plexus VERB --help` explains a verb, with examples.
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
    /// Send a message to an agent: into its turn, or as the next prompt.
    Send(send::SendArgs),
    /// Replace the conversation of a session with a summary.
    Compact(compact::CompactArgs),
    /// Interrupt the running turn of a session and of all sessions below it.
    Interrupt(interrupt::InterruptArgs),
    /// Show the changes of a session in its worktree.
    Diff(diff::DiffArgs),
    /// Rename a session.
    Rename(rename::RenameArgs),
    /// Delete sessions and all sessions below them.
    Rm(rm::RmArgs),
    /// Stop the processes of a session and of all sessions below it.
    Stop(stop::StopArgs),
    /// List the open approvals.
    Approvals(approvals::ApprovalsArgs),
    /// Allow a call, or answer a question.
    Approve(approve::ApproveArgs),
    /// Deny a call, with a reason.
    Deny(deny::DenyArgs),
    /// Add rules that allow calls, for one session or for all.
    Allow(allow::AllowArgs),
    /// List the rules in force, or remove some.
    Rules(rules::RulesArgs),
    /// Import rules, MCP servers and agents of your own Claude Code configuration.
    Import(import::ImportArgs),
    /// List, create or revoke tokens for other people and programs.
    Tokens(tokens::TokensArgs),
    /// List, add, drain or remove the hosts that share a database, or declare one lost.
    Host(host::HostArgs),
    /// Move the state of a stopped hub to a PostgreSQL database, or back to a file.
    Migrate(migrate::MigrateArgs),
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
    /// List the audit log; verify or export it, with or without a running hub.
    Audit(AuditArgs),
    #[command(external_subcommand)]
    Call(Vec<OsString>),
}

/// Arguments of `plexus audit`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "`plexus audit list` is the method of the hub, with all its filters; it prints JSON.\n\n\
    Examples:\n  plexus audit --session fixer --since 1h\n  plexus audit --kind decision --json\n  plexus audit verify"
)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    pub(crate) verb: Option<AuditVerb>,
    #[command(flatten)]
    pub(crate) list: audit::ListArgs,
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
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The Claude Code program, or a JSON array of a program and its first arguments, such as '["npx","-y","PACKAGE"]'
    /// [default: `claude` in PATH].
    #[arg(long, env = "PLEXUS_CLAUDE", value_name = "COMMAND", value_parser = launcher_parser())]
    pub(crate) claude: Option<Launcher>,
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

/// The sections of the help, with the verbs of each.
const SECTIONS: [(&str, &[&str]); 6] = [
    ("Run agents", &["run", "attach", "send", "compact", "interrupt", "stop", "watch", "console", "demo"]),
    ("Decide", &["approvals", "approve", "deny"]),
    ("Sessions", &["ls", "logs", "transcript", "diff", "fork", "rename", "rm"]),
    ("Rules, tokens and audit log", &["allow", "rules", "import", "tokens", "audit"]),
    ("Hub", &["up", "down", "status", "serve", "doctor", "host", "migrate"]),
    ("Other programs", &["mcp-config", "mcp", "completions"]),
];

/// The namespaces of a hub of this version. `plexus console` and `plexus host` are verbs of their own.
pub(crate) const NAMESPACES: [&str; 7] =
    ["arbor", "audit", "claudecode", "loopback", "policy", "template", "token"];

const TEMPLATE: &str = "{about-with-newline}\n{usage-heading} {usage}{after-help}\n\nOptions:\n{options}";

/// The command line without the namespaces of a hub.
pub(crate) fn command() -> Command {
    let program = Cli::command();
    let sections = sections(&program);
    program.help_template(TEMPLATE).after_help(sections)
}

/// The verbs in groups, for the help.
fn sections(program: &Command) -> String {
    let width = program.get_subcommands().map(|verb| verb.get_name().len()).max().unwrap_or(0);
    let verb = |name: &&str| {
        let about = program.find_subcommand(name).and_then(Command::get_about);
        format!("  {name:<width$}  {}\n", about.map(ToString::to_string).unwrap_or_default())
    };
    let section = |(title, verbs): &(&str, &[&str])| {
        format!("{title}:\n{}\n", verbs.iter().map(verb).collect::<String>())
    };
    let methods = format!(
        "Methods:\n  plexus NAMESPACE METHOD calls any method of the running hub. Its namespaces are\n  {}. `plexus claudecode --help` lists methods.",
        NAMESPACES.join(", ")
    );
    SECTIONS.iter().map(section).collect::<String>() + &methods
}

/// Whether the verb, or a subcommand of it, has `--json`.
fn has_json(matches: &ArgMatches) -> bool {
    let Some((_, verb)) = matches.subcommand() else { return false };
    verb.try_get_one::<bool>("json").ok().flatten() == Some(&true) || has_json(verb)
}

/// Parses the command line and runs the verb.
pub(crate) fn run() -> Result<(), ExpectedError> {
    let matches = command().get_matches();
    let Cli { verb } = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let for_program = matches!(verb, Verb::Call(_)) || has_json(&matches);
    cli_words::choose(if for_program { Words::Wire } else { Words::Cli });
    match verb {
        Verb::Run(args) => run::run(&args),
        Verb::Attach(args) => attach::run(&args),
        Verb::Ls(args) => ls::run(&args),
        Verb::Logs(args) => logs::run(&args),
        Verb::Transcript(args) => transcript::run(&args),
        Verb::Fork(args) => fork::run(&args),
        Verb::Send(args) => send::run(&args),
        Verb::Compact(args) => compact::run(&args),
        Verb::Interrupt(args) => interrupt::run(&args),
        Verb::Diff(args) => diff::run(&args),
        Verb::Rename(args) => rename::run(&args),
        Verb::Rm(args) => rm::run(&args),
        Verb::Stop(args) => stop::run(&args),
        Verb::Approvals(args) => approvals::run(&args),
        Verb::Approve(args) => approve::run(&args),
        Verb::Deny(args) => deny::run(&args),
        Verb::Allow(args) => allow::run(&args),
        Verb::Rules(args) => rules::run(&args),
        Verb::Import(args) => import::run(&args),
        Verb::Tokens(args) => tokens::run(&args),
        Verb::Host(args) => host::run(&args),
        Verb::Migrate(args) => migrate::run(args),
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
        Verb::Audit(args) => audit::run(args),
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
    fn each_verb_is_in_one_section_of_the_help() {
        let mut grouped: Vec<&str> = SECTIONS.iter().flat_map(|(_, verbs)| verbs.iter().copied()).collect();
        grouped.sort_unstable();
        let program = Cli::command();
        let visible = program.get_subcommands().filter(|verb| !verb.is_hide_set());
        let mut verbs: Vec<&str> = visible.map(Command::get_name).collect();
        verbs.sort_unstable();
        assert_eq!(grouped, verbs);
        let schema = crate::call::Schema::of_this_version().unwrap();
        let namespaces: Vec<&str> =
            schema.namespaces().into_iter().filter(|name| !["console", "host"].contains(name)).collect();
        assert_eq!(namespaces, NAMESPACES);
        let help = command().render_help().to_string();
        assert!(help.contains("\nDecide:\n  approvals    List the open approvals\n"), "{help}");
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
