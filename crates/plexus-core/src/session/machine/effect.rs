//! The inputs and effects of the state machine. An effect whose result matters names the step that takes the result.

use plexus_agent::Entry;
use plexus_claude::PermissionResult;
use plexus_protocol::{ApprovalId, Error, Object};
use plexus_store::{
    ApprovalRow, BudgetRow, CallRow, Change, Committed, RunKey, RunProcess, SessionConfig, StoreError,
};
use tokio::sync::oneshot;

use super::commands::TurnRequest;
use super::held_calls::AfterRelease;
use super::lines::AfterLines;
use super::recovery::Snapshot;
use super::request::RequestOrigin;
use super::settings::PendingRequest;
use super::turn::NewTurn;
use crate::hooks::{HookOutcome, HookRun};
use crate::session::Permitted;
use crate::session::{Command, PermitCommand};

/// What the machine takes.
pub(in crate::session) enum Input {
    /// The state that an earlier hub left.
    Recovered(Box<Snapshot>),
    /// A caller wants something.
    Command(Command),
    /// The child wrote these lines.
    Lines(Vec<Entry>),
    /// [`super::Machine::deadline`] has passed.
    Due,
    /// The child's process ended by itself.
    ProcessEnded,
    /// The journal has reached its limit.
    JournalFull,
    /// No effect is left to carry out.
    Idle,
    /// The result of [`Effect::Then`].
    Next(Next),
    /// The result of [`Effect::Commit`].
    Committed(AfterCommit, Box<Committed>),
    /// The result of [`Effect::TryCommit`].
    Tried(AfterTry, Result<(), StoreError>),
    /// The result of [`Effect::LoadBudget`].
    Budget(BudgetUse, Vec<BudgetRow>),
    /// The result of [`Effect::LoadHeldCalls`].
    HeldCalls(Vec<CallRow>),
    /// The result of [`Effect::LoadBudgetApproval`].
    BudgetApproval(Option<Box<ApprovalRow>>),
    /// The result of [`Effect::LoadOpenApprovals`].
    OpenApprovals(Vec<ApprovalRow>),
    /// The result of [`Effect::Prepare`].
    Prepared(Result<Box<Prepared>, StartFailure>),
    /// The result of [`Effect::Start`].
    Started(RunKey, Result<Started, String>),
    /// The result of [`Effect::CollectExit`].
    Exited(Cause, Exited),
    /// The commands of a callback have ended, some time after [`Effect::RunHooks`].
    HooksEnded(String, Box<HookOutcome>),
}

/// What the shell carries out.
pub(in crate::session) enum Effect {
    /// Appends a line to the child's stdin.
    Send(String),
    /// Commits, and tries until the store accepts it.
    Commit(Vec<Change>, AfterCommit),
    /// Commits once. The result, an error included, goes to the caller.
    TryCommit(Vec<Change>, AfterTry),
    /// Goes on with the next step once the effects before it are done.
    Then(Next),
    /// Loads the budgets that this session draws on.
    LoadBudget(BudgetUse),
    /// Loads these calls of a run, which the last commit held.
    LoadHeldCalls(RunKey, Vec<String>),
    /// Loads a budget approval that an earlier hub left.
    LoadBudgetApproval(ApprovalId),
    /// Loads the approvals that wait for this session.
    LoadOpenApprovals,
    /// Answers a caller.
    Reply(Reply),
    /// Publishes a token delta.
    Publish(Object),
    /// Reads the journal to its current end.
    ReadAll,
    /// Determines the configuration with which the next process starts.
    Prepare,
    /// Starts a keeper, which waits for [`Effect::Release`].
    Start(RunKey, Box<Prepared>),
    /// Lets the keeper start Claude Code.
    Release,
    /// Warns when the child runs without a sandbox.
    ReportSandbox,
    /// Closes the child's stdin.
    CloseStdin,
    /// Sends an interrupt and waits a moment for the end of the turn.
    InterruptBriefly(String),
    /// Kills the child at once.
    Kill,
    /// Ends the child and its process tree, however long it takes.
    StopProcess,
    /// Reads the rest of the journal and how the process ended.
    CollectExit(Cause),
    /// Removes what a run leaves: its secrets and its stray processes.
    CleanUp,
    /// Starts the commands of a callback, by its request id.
    RunHooks(String, Box<HookRun>),
    /// Ends the commands of these callbacks.
    CancelHooks(Vec<String>),
    /// A step at which a test can kill the hub.
    KillPoint(&'static str, &'static str),
}

/// A step after effects without a result.
pub(in crate::session) enum Next {
    StartTurn(Box<TurnRequest>),
    Permit(Box<PermitCommand>, RequestOrigin),
    PermitLost(ApprovalId),
    StopExternal { why: String, reply: oneshot::Sender<()> },
    Interrupt,
}

/// The step after a commit.
pub(in crate::session) enum AfterCommit {
    Nothing,
    Lines(Box<AfterLines>),
    HeldCallsReleased(Vec<AfterRelease>),
    TimeCounted,
}

/// The step after a commit that was tried once.
pub(in crate::session) enum AfterTry {
    StartTurn(Box<NewTurn>),
    Configure(Box<SessionConfig>, AfterConfigure),
    RegisterExternal { key: RunKey, token: String, reply: oneshot::Sender<Result<String, Error>> },
}

/// What follows when a new configuration is durable.
pub(in crate::session) enum AfterConfigure {
    Reply(oneshot::Sender<Result<(), Error>>),
    AskChild(PendingRequest),
}

/// Why budgets are loaded.
pub(in crate::session) enum BudgetUse {
    /// For the time limit of the running turn.
    TimeLimit,
    /// To determine whether the process was started under another cost budget, before this turn starts.
    CostBefore(Box<TurnRequest>),
}

/// An answer to a caller.
pub(in crate::session) enum Reply {
    Turn(oneshot::Sender<Result<u64, Error>>, Result<u64, Error>),
    Permit(oneshot::Sender<Permitted>, Permitted),
    Token(oneshot::Sender<Result<String, Error>>, Result<String, Error>),
    Changed(oneshot::Sender<Result<(), Error>>, Result<(), Error>),
    Done(oneshot::Sender<()>),
}

impl Reply {
    /// Sends it; a caller that is gone needs none.
    pub(in crate::session) fn send(self) {
        match self {
            Self::Turn(to, reply) => drop(to.send(reply)),
            Self::Permit(to, reply) => drop(to.send(reply)),
            Self::Token(to, reply) => drop(to.send(reply)),
            Self::Changed(to, reply) => drop(to.send(reply)),
            Self::Done(to) => drop(to.send(())),
        }
    }

    pub(super) fn permitted(to: oneshot::Sender<Permitted>, decision: PermissionResult) -> Effect {
        Effect::Reply(Self::Permit(to, Permitted::Decided(decision)))
    }
}

/// With what a process is started.
pub(in crate::session) struct Prepared {
    /// The hash of the token that speaks for the run.
    pub(in crate::session) token_hash: String,
    /// What the conversation had cost when its last process ended, in dollars.
    pub(in crate::session) spent_usd: f64,
    /// The cost budget of the session.
    pub(in crate::session) cost_budget: Option<BudgetRow>,
    /// What only the shell looks at.
    pub(in crate::session) launch: crate::session::start_process::LaunchPlan,
}

/// Why no process was started: the reason code of the failed turn, and the message for a person.
pub(in crate::session) struct StartFailure {
    pub(in crate::session) reason: &'static str,
    pub(in crate::session) message: String,
}

/// A process that was started.
pub(in crate::session) struct Started {
    /// The identity of its keeper.
    pub(in crate::session) identity: RunProcess,
    pub(in crate::session) cost_budget: Option<BudgetRow>,
}

/// Why a run ends.
#[derive(Debug)]
pub(in crate::session) enum Cause {
    /// Its process ended by itself.
    Ended,
    /// A caller or the hub stopped it.
    Stopped(String),
    /// It cannot continue: a reason code, and a message for a person.
    Failed(&'static str, String),
}

/// How a process ended.
pub(in crate::session) struct Exited {
    pub(in crate::session) exit: Option<plexus_agent::Exit>,
    /// The last lines of its stderr.
    pub(in crate::session) stderr: Vec<String>,
}
