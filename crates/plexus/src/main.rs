//! The `plexus` program, which supervises many coding agents.
//!
//! One verb is one file, and the libraries do the work. A first word that is not a verb is a namespace of the running hub
//! (`plexus claudecode create …`), whose commands are generated from its schema.

mod allow;
mod answer_confirmation;
mod approvals;
mod approve;
mod attach;
mod attachments;
mod audit;
mod call;
mod cli;
mod cli_words;
mod client;
mod compact;
mod completions;
mod confirm_loss;
mod console;
mod demo;
mod deny;
mod diff;
mod doctor;
mod down;
mod durations;
mod each_session;
mod editor;
mod environment;
mod error;
mod escape;
mod follow;
mod fork;
mod host;
mod hub;
mod import;
mod interrupt;
mod logs;
mod ls;
mod markdown;
mod mcp;
mod mcp_config;
mod migrate;
mod modes;
mod notices;
mod orphaned;
mod output;
mod paint;
mod plural;
mod port_user;
mod prompts;
mod remember;
mod removal;
mod rename;
mod review;
mod rm;
mod rule_warnings;
mod rules;
mod run;
mod send;
mod serve;
mod settings;
mod show;
mod status;
mod stop;
mod stored_events;
mod suggest;
mod systemd;
mod table;
mod terminal;
mod terminal_session;
mod timing_marks;
mod tokens;
mod transcript;
mod typed;
mod up;
mod watch;

use std::path::Path;
use std::process::ExitCode;

use error::ExpectedError;

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    let name = args.next().unwrap_or_default();
    // In the demo, a link named `claude` points to this program, which then runs the scripted agent.
    if Path::new(&name).file_name().is_some_and(|name| name == "claude") {
        let args = args.map(|arg| arg.to_string_lossy().into_owned()).collect();
        return ExitCode::from(u8::try_from(plexus_scripted_agent::run(args, demo::script)).unwrap_or(1));
    }
    let verb = args.next();
    if verb.as_ref().is_some_and(|verb| verb == "keep" || verb == "files") {
        // Started as `/proc/self/exe`, the process would be named `exe`.
        let _ = rustix::thread::set_name(c"plexus");
    }
    // Keepers are many and long-lived, so they load neither the command line parser nor an async runtime.
    if verb.as_ref().is_some_and(|verb| verb == "keep") {
        let dir = args.next();
        if args.next().is_some_and(|arg| arg == plexus_agent::TIMING_ARG) {
            timing_marks::start();
        }
        return report(keep(dir.as_deref().map(Path::new)));
    }
    // The file helper enters a namespace, which requires a single thread.
    if verb.is_some_and(|verb| verb == "files") {
        return report(plexus_files::serve().map_err(|error| ExpectedError::Usage(error.to_string())));
    }
    // Agents must not trace a process of the user. A process of an agent stays traceable, because the hub reads which session it
    // belongs to. If the system does not support this protection, the program still runs.
    if std::env::var_os(plexus_agent::SESSION_ID_VARIABLE).is_none() {
        let _ = plexus_agent::forbid_tracing();
    }
    completions::answer();
    report(cli::run())
}

fn keep(dir: Option<&Path>) -> Result<(), ExpectedError> {
    let dir = dir.ok_or_else(|| ExpectedError::Usage("only the hub runs `plexus keep`".to_owned()))?;
    plexus_agent::keep(dir).map_err(|error| ExpectedError::Keep(error.to_string()))
}

fn report(outcome: Result<(), ExpectedError>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::say(&format!("plexus: {error}"));
            error.exit_code()
        }
    }
}
