//! `plexus run`: creates a session for one prompt, follows it, and answers its approvals at the terminal. The session remains after
//! the turn. `given` parses arguments, `create` builds the parameters of the session, `resume` finds the Claude Code session to continue, `worktree` shows the changes of a session
//! with a worktree.

mod create;
pub(crate) mod given;
mod resume;
mod worktree;

use std::path::PathBuf;

use clap::Args;
use plexus_protocol::SessionId;
use plexus_protocol::claudecode::{CreateResult, Status};
use serde_json::{Value, json};

use crate::error::ExpectedError;
use crate::hub::{HubClient, JsonArg, block_on};
use crate::output;
use crate::settings::DataDirArg;
use crate::terminal_session::{OutputMode, Purpose, Start, TerminalSession, output_mode};
use crate::typed::Typed;
use create::NewSession;

/// Arguments of `plexus run`.
#[derive(Debug, Args)]
#[command(
    after_help = "At a terminal, approval requests are shown here, page by page if they are long. Type y to allow, n or n and a reason to deny, e to edit the input in $EDITOR \
    and confirm the change, a to allow and add a rule, s to skip it. Elsewhere they stay open, and a line on stderr says how to answer them.\n\n\
    Ctrl-C interrupts the turn. Ctrl-D, or a second Ctrl-C, exits and leaves the session running.\n\n\
    Exits with 0 when the turn is complete, 1 when it failed, 130 when it was interrupted or you left; other codes are in docs/cli.md.\n\n\
    The agent inherits the hub's environment, and from this shell: PATH, HOME, LANG, LC_*, TERM, ANTHROPIC_* and a few \
    more (docs/cli.md); --env adds one by name.\n\n\
    Examples:\n  plexus run \"Fix the failing test\"\n  plexus run --name fixer --dir ~/src/app --mode acceptEdits --env GITHUB_TOKEN \"Fix issue 12\"\n  \
    plexus run --worktree --budget 2 @task.md\n  plexus run --attach shot.png \"Why is the button cut off?\"\n  git diff | plexus run --detach --name review -\n  plexus run --resume 4b983b28-9d18-41fa-9871-3489783bd38c \"Now fix the tests\""
)]
pub(crate) struct RunArgs {
    /// The prompt; `-` reads it from stdin, `@FILE` from a file.
    #[arg(required_unless_present = "resume")]
    pub(crate) prompt: Option<String>,
    /// Attach this image, PDF document or text file to the prompt; may be repeated.
    #[arg(long, value_name = "FILE", visible_alias = "image")]
    pub(crate) attach: Vec<PathBuf>,
    /// The name of the session [default: a free one].
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// The working directory [default: the current one].
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,
    /// Run the agent on this host of a shared database, in the directory with the same path there; from this shell, only the variables named with --env are passed on.
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// Run the agent on the connected host with this label that has the most free slots; directory and variables as with --host. Repeat it to require several labels.
    #[arg(long = "label", value_name = "LABEL", conflicts_with = "host")]
    pub(crate) labels: Vec<String>,
    /// The model [default: Claude Code's own choice].
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// The permission mode: default, acceptEdits or plan.
    #[arg(long, value_parser = crate::modes::permission_mode)]
    pub(crate) mode: Option<String>,
    /// The policy for calls that no rule matches: own_course, ask_all, approvals, plan or allow_all.
    #[arg(long, value_parser = crate::modes::policy)]
    pub(crate) policy: Option<String>,
    /// Add this text to the system prompt of the agent.
    #[arg(long, value_name = "TEXT")]
    pub(crate) append_system_prompt: Option<String>,
    /// Pass this variable of the shell to the agent as well; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) env: Vec<String>,
    /// Work in a new git worktree and branch; at the end, show the changes and offer to commit or merge them.
    #[arg(long)]
    pub(crate) worktree: bool,
    /// The most that the session and all below it may cost, in dollars.
    #[arg(long, value_name = "USD", value_parser = given::budget)]
    pub(crate) budget: Option<f64>,
    /// Load the project's settings, MCP servers and agents in their current state.
    #[arg(long)]
    pub(crate) trust: bool,
    /// Load none of the servers and agents that you imported with `plexus import`.
    #[arg(long)]
    pub(crate) no_imported: bool,
    /// MCP servers for the agent: a JSON file with `mcpServers`, as Claude Code uses it.
    #[arg(long, value_name = "FILE")]
    pub(crate) mcp: Option<PathBuf>,
    /// Commands to run before and after tool calls: a JSON file with `hooks`, as in Claude Code's settings. They can deny calls, and never allow them.
    #[arg(long, value_name = "FILE")]
    pub(crate) hooks: Option<PathBuf>,
    /// Continue a copy of this Claude Code session, which you started yourself in the same directory; without an ID, list the recent ones and exit with code 2.
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "", conflicts_with = "worktree")]
    pub(crate) resume: Option<String>,
    /// Print the name of the session and exit; the agent continues in the background.
    #[arg(long)]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

/// Runs one turn.
pub(crate) fn run(args: &RunArgs) -> Result<(), ExpectedError> {
    block_on(async {
        let session = NewSession::read(args)?;
        let output_mode = output_mode(args.json);
        let hub = HubClient::reach(&args.data_dir).await?;
        let resume = match &args.resume {
            Some(given) => Some(resume::session(&hub, &session.dir, given).await?),
            None => None,
        };
        let CreateResult::Created { id, cursor, .. } =
            hub.call("claudecode.create", session.params(resume)?).await?;
        if args.detach {
            say_created(id, &session.name, output_mode);
            return Ok(());
        }
        let status = follow(&hub, id, &session.name, cursor.unwrap_or_default(), output_mode).await?;
        if output_mode != OutputMode::Json && args.worktree {
            let ended = worktree::Ended { id, name: &session.name, dir: &session.dir };
            worktree::finish(&hub, &ended, output_mode, &mut Typed::new()).await?;
        }
        outcome(status)
    })
}

/// Reports a session that continues in the background.
fn say_created(id: SessionId, name: &str, output_mode: OutputMode) {
    match output_mode {
        OutputMode::Json => {
            output::json_line(&json!({"type": "created", "session_id": id, "name": name}));
        }
        OutputMode::Terminal | OutputMode::Plain => {
            output::say(&format!("plexus: {name} runs; `plexus attach {name}` follows it"));
            output::print(name);
        }
    }
}

/// Follows the first turn of a session to its end.
async fn follow(
    hub: &HubClient,
    id: SessionId,
    name: &str,
    cursor: u64,
    output_mode: OutputMode,
) -> Result<Status, ExpectedError> {
    if output_mode != OutputMode::Json {
        output::say(&format!(
            "plexus: session {name}; `plexus attach {name}` follows it from another terminal"
        ));
    }
    let start = Start {
        id,
        name: name.to_owned(),
        purpose: Purpose::Turn(1),
        turn: 1,
        status: Status::Running,
        cost_usd: 0.0,
        own_turn: Some(1),
        cursor,
    };
    let status = TerminalSession::new(hub, &start, output_mode).run(&start).await?;
    if output_mode == OutputMode::Json {
        output::json_line(
            &json!({"type": "ended", "session_id": id, "name": name, "turn": 1, "status": status}),
        );
    }
    Ok(status)
}

/// The outcome of a turn as the outcome of this process.
pub(crate) fn outcome(status: Status) -> Result<(), ExpectedError> {
    match status {
        Status::Failed => Err(ExpectedError::Refused("the turn failed".to_owned())),
        Status::Interrupted => Err(ExpectedError::Interrupted("the turn was interrupted".to_owned())),
        Status::Complete | Status::Idle | Status::Running | Status::AwaitingPermission => Ok(()),
    }
}

fn free_name() -> String {
    let id: Value = json!(SessionId::random());
    format!("run-{}", id.as_str().and_then(|id| id.get(..6)).unwrap_or("session"))
}
