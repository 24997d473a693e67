//! `plexus stop`: stops the processes of a session and of all sessions below it. The next prompt resumes the session.

use clap::Args;

use crate::each_session::{Act, SessionsArgs};
use crate::error::ExpectedError;
use crate::interrupt::is_working;

/// Arguments of `plexus stop`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  plexus stop fixer\n\n`plexus interrupt` interrupts only the turn, `plexus rm` deletes the session."
)]
pub(crate) struct StopArgs {
    #[command(flatten)]
    pub(crate) sessions: SessionsArgs,
}

/// Stops the sessions in sequence.
pub(crate) fn run(args: &StopArgs) -> Result<(), ExpectedError> {
    args.sessions.call_each(&Act {
        method: "claudecode.stop",
        done: "stopped",
        applies: |session| session.pid.is_some() || is_working(session.status),
        nothing: "has no running process, and no session below it has one",
    })
}
