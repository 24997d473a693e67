//! Asks before a verb deletes something or adds a rule with a warning. Without a terminal nobody can be asked, so `--yes` is required there.

use clap::Args;

use crate::error::ExpectedError;
use crate::review::confirm::{is_interactive, line, prompt};
use crate::typed::Typed;

/// The `--yes` flag of verbs that ask for confirmation.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct YesArg {
    /// Do not ask for confirmation.
    #[arg(short, long)]
    pub(crate) yes: bool,
}

impl YesArg {
    /// Asks unless `--yes` was given. Anything but a yes is an error.
    pub(crate) async fn confirm(self, question: &str) -> Result<(), ExpectedError> {
        if self.yes {
            return Ok(());
        }
        if !is_interactive() {
            return Err(ExpectedError::Usage(format!(
                "{question} Pass --yes, because there is no terminal to ask at"
            )));
        }
        let mut typed = Typed::new();
        typed.discard();
        loop {
            prompt(&format!("{question} y or n: "));
            match line(&mut typed).await.map(|line| line.to_ascii_lowercase()).as_deref() {
                Some("y" | "yes") => return Ok(()),
                Some("" | "n" | "no" | "q") | None => {
                    return Err(ExpectedError::Interrupted("nothing was changed".to_owned()));
                }
                Some(_) => {}
            }
        }
    }
}
