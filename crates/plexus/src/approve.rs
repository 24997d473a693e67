//! `plexus approve`: lets a call through, as it is or with an input that was edited first. What is allowed is what was
//! read: the answer carries the digest of the input.

use std::io::IsTerminal as _;

use clap::Args;
use plexus_protocol::loopback::Answered;
use plexus_protocol::{Approval, ApprovalKind, ApprovalStatus, Object};
use serde_json::{Value, json};

use crate::approvals::find;
use crate::editor::{Draft, EditError, Edited};
use crate::error::{ExpectedError, system};
use crate::hub::{HubClient, JsonArg, block_on};
use crate::settings::DataDirArg;
use crate::terminal::{one_line, tool_line};
use crate::typed::Typed;
use crate::{output, remember};

/// Arguments of `plexus approve`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plexus approve 3f0c\n  plexus approve 3f0c --edit     change the input in $EDITOR first\n  \
    plexus approve 3f0c --always   and make a rule of it\n  \
    plexus approve 3f0c --answers '{\"Which colour?\": \"blue\"}'"
)]
pub(crate) struct ApproveArgs {
    /// The approval, by as much of its id as tells it from the others.
    pub(crate) id: String,
    /// A word to the agent.
    #[arg(short, long)]
    pub(crate) message: Option<String>,
    /// Open the input in $VISUAL or $EDITOR first; one that is left as it is approves the call as it is.
    #[arg(long)]
    pub(crate) edit: bool,
    /// Remember a rule, for this session and all below it: the one suggested, or this one.
    #[arg(long, value_name = "RULE", num_args = 0..=1, default_missing_value = "")]
    pub(crate) always: Option<String>,
    /// Answers to a question: a JSON object from its text to the answer.
    #[arg(long, value_name = "JSON")]
    pub(crate) answers: Option<String>,
    /// For a plan: the permission mode that follows.
    #[arg(long)]
    pub(crate) mode: Option<String>,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

/// Lets a call through.
pub(crate) fn run(args: &ApproveArgs) -> Result<(), ExpectedError> {
    block_on(async {
        let hub = HubClient::reach(&args.data_dir).await?;
        let approval = find(&hub, &args.id).await?;
        still_open(&approval)?;
        let mut answer = allow(&approval);
        if let Some(message) = &args.message {
            answer["message"] = json!(message);
        }
        if let Some(mode) = &args.mode {
            answer["mode"] = json!(mode);
        }
        if let Some(answers) = &args.answers {
            let answers: Object = serde_json::from_str(answers).map_err(|error| {
                ExpectedError::Usage(format!("--answers: this is no JSON object: {error}"))
            })?;
            answer["answers"] = Value::Object(answers);
        }
        if let Some(rule) = &args.always {
            answer["remember"] = json!({"rule": rule_for(&approval, rule)?});
        }
        if args.edit
            && let Edited::Changed(input) = edited(&approval).await?
        {
            answer["updated_input"] = Value::Object(input);
        }
        told(&hub.respond(answer).await?, &approval, "allowed", args.json)
    })
}

/// The answer that allows what was read.
pub(crate) fn allow(approval: &Approval) -> Value {
    let mut answer = json!({"approval_id": approval.id, "approve": true});
    if let Some(digest) = &approval.digest {
        answer["digest"] = json!(digest);
    }
    answer
}

/// What is opened in an editor: of a limit that ran out, how much more there is to be.
pub(crate) fn editable(approval: &Approval) -> Object {
    if approval.kind != ApprovalKind::Budget {
        return approval.input.clone();
    }
    let more = approval.input.get("more").cloned().unwrap_or_else(|| json!(1));
    Object::from_iter([("more".to_owned(), more)])
}

async fn edited(approval: &Approval) -> Result<Edited, ExpectedError> {
    let mut draft = Draft::of(&editable(approval)).map_err(system)?;
    let mut typed = Typed::new();
    loop {
        match draft.edit().await {
            Ok(edited) => return Ok(edited),
            Err(error @ EditError::Invalid(_)) if std::io::stdin().is_terminal() => {
                output::say(&format!(
                    "plexus: {error}\nPress Enter to edit it again, or type q to leave it open:"
                ));
                typed.forget();
                let line = tokio::select! {
                    line = typed.line() => line,
                    _ = tokio::signal::ctrl_c() => None,
                };
                if line.is_none_or(|line| line.trim() == "q") {
                    return Err(ExpectedError::Interrupted("left open".to_owned()));
                }
            }
            Err(error) => return Err(ExpectedError::Refused(format!("{error}; nothing was answered"))),
        }
    }
}

fn rule_for(approval: &Approval, given: &str) -> Result<String, ExpectedError> {
    if !given.is_empty() {
        return Ok(given.to_owned());
    }
    remember::suggested(approval).ok_or_else(|| {
        ExpectedError::Usage("no rule suggests itself here; give one: --always 'Bash(make:*)'".to_owned())
    })
}

/// An approval that is over says so, instead of asking for an answer that would come too late.
pub(crate) fn still_open(approval: &Approval) -> Result<(), ExpectedError> {
    match approval.status {
        ApprovalStatus::Pending => Ok(()),
        status => Err(ExpectedError::Refused(format!("it is over: {}", over(status)))),
    }
}

/// How an approval ended, in a word.
pub(crate) fn over(status: ApprovalStatus) -> &'static str {
    match status {
        ApprovalStatus::Pending => "open",
        ApprovalStatus::Allowed => "allowed",
        ApprovalStatus::Denied => "denied",
        ApprovalStatus::Expired => "expired",
        ApprovalStatus::Withdrawn => "withdrawn",
    }
}

/// Says what became of an answer.
pub(crate) fn told(
    answered: &Answered,
    approval: &Approval,
    done: &str,
    json: JsonArg,
) -> Result<(), ExpectedError> {
    if json.json {
        output::json(answered);
    }
    match answered {
        Answered::Ok { settled, .. } => {
            if !json.json {
                let what = tool_line(&approval.tool_name, &approval.input, 80);
                let also = if settled.is_empty() {
                    String::new()
                } else {
                    format!(" (and {} more by the rule)", settled.len())
                };
                let tool = one_line(&approval.tool_name, 40);
                output::print(&format!("{done}: {} {tool} {what}{also}", approval.session_name));
            }
            Ok(())
        }
        Answered::AlreadyResolved { status, .. } => {
            Err(ExpectedError::Refused(format!("somebody was first: it is {}", over(*status))))
        }
        Answered::Error { message, .. } => Err(ExpectedError::Refused(message.clone())),
    }
}
