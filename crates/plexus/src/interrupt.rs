//! `plexus interrupt`: interrupts the running turn of a session and of all sessions below it. Their processes continue.

use clap::Args;

use crate::each_session::SessionsArgs;
use crate::error::ExpectedError;

/// Arguments of `plexus interrupt`.
#[derive(Debug, Args)]
#[command(
    after_help = "The processes stay for the next prompt; `plexus stop` ends them as well.\n\nExamples:\n  plexus interrupt fixer\n  \
    plexus send fixer \"Use the other library\""
)]
pub(crate) struct InterruptArgs {
    #[command(flatten)]
    pub(crate) sessions: SessionsArgs,
}

/// Interrupts the sessions in sequence.
pub(crate) fn run(args: &InterruptArgs) -> Result<(), ExpectedError> {
    args.sessions.call_each("claudecode.interrupt", "interrupted")
}
