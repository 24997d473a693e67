//! `plexus completions`: prints shell completions for the verbs and for the methods of a hub of this version with their flags.

use clap::{Args, Command};
use clap_complete::Shell;
use plexus_server::methods;

use crate::call::Schema;
use crate::cli;
use crate::error::{ExpectedError, system};

/// Arguments of `plexus completions`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plexus completions bash > ~/.local/share/bash-completion/completions/plexus\n  \
    plexus completions zsh > ~/.zfunc/_plexus        with ~/.zfunc in fpath\n  \
    plexus completions fish > ~/.config/fish/completions/plexus.fish"
)]
pub(crate) struct CompletionsArgs {
    /// bash, zsh or fish.
    pub(crate) shell: Shell,
}

/// Prints the completions.
pub(crate) fn run(args: &CompletionsArgs) -> Result<(), ExpectedError> {
    let mut program = whole()?;
    clap_complete::generate(args.shell, &mut program, "plexus", &mut std::io::stdout());
    Ok(())
}

/// The whole command line: the verbs and the namespaces of the hub.
fn whole() -> Result<Command, ExpectedError> {
    let schema: Schema = serde_json::from_value(methods().openrpc()).map_err(system)?;
    let mut program = cli::command();
    for namespace in schema.namespaces() {
        let methods = schema.namespace(namespace)?;
        // `audit` is both a verb and a namespace.
        program = match program.find_subcommand(namespace).cloned() {
            None => program.subcommand(methods),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_methods_and_their_flags_are_completed_in_every_shell() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut whole().unwrap(), "plexus", &mut script);
            let script = String::from_utf8(script).unwrap();
            for word in ["attach", "mcp-config", "claudecode", "chat-async", "working-dir", "audit", "export"]
            {
                assert!(script.contains(word), "{shell}: {word}");
            }
        }
    }
}
