//! `plexus interrupt`: interrupts the running turn of a session and of all sessions below it. Their processes continue.

use clap::Args;
use plexus_protocol::claudecode::Status;

use crate::each_session::{Act, SessionsArgs};
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
    args.sessions.call_each(&Act {
        method: "claudecode.interrupt",
        done: "interrupted",
        applies: |session| is_working(session.status),
        nothing: "has no running turn, and no session below it has one",
    })
}

/// Whether a session has a running turn.
pub(crate) fn is_working(status: Status) -> bool {
    matches!(status, Status::Running | Status::AwaitingPermission)
}
