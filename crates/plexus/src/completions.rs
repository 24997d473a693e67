//! `plexus completions`: prints a script that makes a shell ask this program for completions. The answers are the verbs, the methods
//! of a hub of this version with their flags, and from the running hub the sessions, open approvals, rules and tokens. A completion
//! never starts a hub.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use clap::{Arg, Args, Command, ValueEnum};
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{Bash, EnvCompleter, Fish, Zsh};
use serde_json::{Value, json};

use crate::call::{Schema, take_data_dir};
use crate::client::Client;
use crate::error::{ExpectedError, system};
use crate::hub::{HubClient, block_on};
use crate::terminal::{one_line, tool_line};
use crate::{cli, output};

/// The variable by which the script of a shell asks for completions.
const VARIABLE: &str = "PLEXUS_COMPLETE";
/// How long the hub may take. Nobody waits longer for a key.
const ANSWERED_WITHIN: Duration = Duration::from_secs(1);

/// Arguments of `plexus completions`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plexus completions bash > ~/.local/share/bash-completion/completions/plexus\n  \
    plexus completions zsh > ~/.zfunc/_plexus        with ~/.zfunc in fpath\n  \
    plexus completions fish > ~/.config/fish/completions/plexus.fish"
)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    pub(crate) shell: Shell,
}

/// A shell with completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Shell {
    fn completer(self) -> &'static dyn EnvCompleter {
        match self {
            Self::Bash => &Bash,
            Self::Zsh => &Zsh,
            Self::Fish => &Fish,
        }
    }
}

/// Prints the script.
pub(crate) fn run(args: &CompletionsArgs) -> Result<(), ExpectedError> {
    // A program that was named by its path is called by that path.
    let typed = std::env::args().next().unwrap_or_default();
    let program = match Path::new(&typed).components().count() {
        0 | 1 => "plexus".to_owned(),
        _ => std::path::absolute(&typed).map_err(system)?.to_string_lossy().into_owned(),
    };
    output::write(&script(args.shell, &program)?).map_err(system)
}

fn script(shell: Shell, program: &str) -> Result<String, ExpectedError> {
    let mut script = Vec::new();
    shell
        .completer()
        .write_registration(VARIABLE, "plexus", "plexus", program, &mut script)
        .map_err(system)?;
    let mut script = String::from_utf8_lossy(&script).into_owned();
    if shell == Shell::Zsh {
        // A script in `fpath` is loaded at the first completion, and must answer that one, too.
        script.push_str("[[ $funcstack[1] == _plexus ]] && _clap_dynamic_completer_plexus \"$@\"\ntrue\n");
    }
    Ok(script)
}

/// Answers a shell that asks for completions, and then exits. Otherwise it does nothing.
pub(crate) fn answer() {
    if std::env::var_os(VARIABLE).is_some() {
        CompleteEnv::with_factory(|| whole().unwrap_or_else(|_| cli::command())).var(VARIABLE).complete();
    }
}

/// The whole command line: the verbs and the namespaces of the hub.
fn whole() -> Result<Command, ExpectedError> {
    let schema = Schema::of_this_version()?;
    let mut program = cli::command().mut_subcommands(with_candidates);
    for namespace in schema.namespaces() {
        let methods = schema.namespace(namespace)?.mut_subcommands(|method| {
            let names_a_session =
                matches!(namespace, "claudecode" | "policy") && method.get_name() != "create";
            method.mut_args(|arg| match arg.get_id().as_str() {
                "name" if names_a_session => arg.add(ArgValueCompleter::new(sessions)),
                "approval_id" => arg.add(ArgValueCandidates::new(approvals)),
                _ => arg,
            })
        });
        // `audit` is both a verb and a namespace; `console` is only a verb on the command line.
        program = match program.find_subcommand(namespace).cloned() {
            None => program.subcommand(methods),
            Some(own) if !own.has_subcommands() => program,
            Some(own) => {
                let more = methods
                    .get_subcommands()
                    .filter(|method| own.find_subcommand(method.get_name()).is_none());
                let more: Vec<Command> = more.cloned().collect();
                program.mut_subcommand(namespace, |own| own.subcommands(more))
            }
        };
    }
    Ok(program)
}

/// Adds the candidates from the hub to the arguments of a verb and of its subcommands.
fn with_candidates(verb: Command) -> Command {
    verb.mut_args(of_verb).mut_subcommands(with_candidates)
}

/// Adds the candidates from the hub to an argument that names a session, an approval, a rule or a token.
fn of_verb(arg: Arg) -> Arg {
    let is_flag = arg.get_long().is_some();
    match arg.get_id().as_str() {
        "session" => arg.add(ArgValueCompleter::new(sessions)),
        // `--name` of `plexus run` names a new session.
        "name" | "names" if !is_flag => arg.add(ArgValueCompleter::new(sessions)),
        "numbers" => arg.add(ArgValueCandidates::new(rules)),
        "tokens" => arg.add(ArgValueCandidates::new(tokens)),
        "id" if !is_flag => arg.add(ArgValueCandidates::new(approvals)),
        _ => arg,
    }
}

/// The sessions whose path, or the end of whose path, starts with the typed text.
fn sessions(typed: &OsStr) -> Vec<CompletionCandidate> {
    let listed = ask("claudecode.list");
    let sessions: Vec<&Value> = listed["sessions"].as_array().into_iter().flatten().collect();
    let paths: Vec<&str> = sessions.iter().filter_map(|session| session["path"].as_str()).collect();
    let Some(typed) = typed.to_str() else { return Vec::new() };
    let candidate = |(path, session): (&&str, &&Value)| {
        let status = session["status"].as_str().unwrap_or_default().replace('_', " ");
        let word = completion(path, typed, &paths)?;
        Some(CompletionCandidate::new(word).help(Some(status.into())))
    };
    paths.iter().zip(&sessions).filter_map(candidate).collect()
}

/// The word that completes `typed` to this session: its path, or the end of the path if that starts with the typed text and belongs to
/// no other session.
fn completion<'a>(path: &'a str, typed: &str, all: &[&str]) -> Option<&'a str> {
    if path.starts_with(typed) {
        return Some(path);
    }
    let ends = path.match_indices('/').map(|(at, _)| &path[at + 1..]);
    let is_of = |end: &str, path: &str| path == end || path.ends_with(&format!("/{end}"));
    ends.filter(|end| end.starts_with(typed))
        .find(|end| all.iter().filter(|path| is_of(end, path)).count() == 1)
}

fn rules() -> Vec<CompletionCandidate> {
    let listed = ask("policy.list");
    let rules = listed["rules"].as_array().into_iter().flatten();
    let candidate = |rule: &Value| {
        let (effect, text) = (rule["effect"].as_str().unwrap_or_default(), rule["rule"].as_str()?);
        let help = format!("{effect} {}", one_line(text, 60));
        Some(CompletionCandidate::new(rule["number"].as_u64()?.to_string()).help(Some(help.into())))
    };
    rules.filter_map(candidate).collect()
}

fn tokens() -> Vec<CompletionCandidate> {
    let listed = ask("token.list");
    let tokens = listed["tokens"].as_array().into_iter().flatten();
    let candidate = |token: &Value| {
        let right = token["right"].as_str().unwrap_or_default().to_owned();
        Some(CompletionCandidate::new(token["name"].as_str()?).help(Some(right.into())))
    };
    tokens.filter_map(candidate).collect()
}

fn approvals() -> Vec<CompletionCandidate> {
    let listed = ask("loopback.pending");
    let approvals = listed["approvals"].as_array().into_iter().flatten();
    let candidate = |approval: &Value| {
        let tool = approval["tool_name"].as_str().unwrap_or_default();
        let input = approval["input"].as_object().cloned().unwrap_or_default();
        let call = format!("{} {}", one_line(tool, 40), tool_line(tool, &input, 60));
        Some(CompletionCandidate::new(approval["id"].as_str()?).help(Some(call.into())))
    };
    approvals.filter_map(candidate).collect()
}

/// The result of a method of the running hub; null if there is no hub.
fn ask(method: &str) -> Value {
    // The command line is incomplete, so it cannot be parsed.
    let data_dir = take_data_dir(std::env::args_os().collect()).map(|(_, data_dir)| data_dir);
    let Ok(HubClient { client, .. }) = data_dir.and_then(|dir| HubClient::of(&dir)) else {
        return Value::Null;
    };
    block_on(async { Ok(answered(&client, method).await) }).unwrap_or_default()
}

async fn answered(client: &Client, method: &str) -> Value {
    let answer = tokio::time::timeout(ANSWERED_WITHIN, client.call(method, json!({}))).await;
    answer.ok().and_then(Result::ok).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn completed(words: &[&str]) -> Vec<String> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let last = words.len() - 1;
        let found = clap_complete::engine::complete(&mut whole().unwrap(), words, last, None).unwrap();
        found.iter().map(|one| one.get_value().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn verbs_methods_and_their_flags_are_completed() {
        assert_eq!(completed(&["plexus", "att"]), ["attach"]);
        assert_eq!(completed(&["plexus", "mcp-c"]), ["mcp-config"]);
        assert_eq!(completed(&["plexus", "claudecode", "cha"]), ["chat", "chat-async"]);
        assert_eq!(completed(&["plexus", "claudecode", "create", "--working"]), ["--working-dir"]);
        assert_eq!(completed(&["plexus", "audit", "exp"]), ["export"]);
        assert_eq!(completed(&["plexus", "audit", "li"]), ["list"]);
    }

    #[test]
    fn a_session_is_completed_by_its_path_or_by_an_unambiguous_end_of_it() {
        let all = ["lead", "lead/worker", "other/worker", "lead/worker/helper"];
        let offered = |typed: &str| -> Vec<&str> {
            all.iter().filter_map(|path| completion(path, typed, &all)).collect()
        };
        assert_eq!(offered(""), all);
        assert_eq!(offered("lead/w"), ["lead/worker", "lead/worker/helper"]);
        assert_eq!(offered("hel"), ["helper"]);
        assert_eq!(offered("wor"), ["worker/helper"], "`worker` alone is ambiguous");
        assert_eq!(offered("x"), [""; 0]);
    }

    #[test]
    fn the_script_of_each_shell_calls_the_program() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell, "/opt/plexus").unwrap();
            assert!(script.contains("/opt/plexus") && script.contains(VARIABLE), "{shell:?}: {script}");
        }
    }
}
