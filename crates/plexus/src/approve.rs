//! `plexus approve`: allows a call, unchanged or with an edited input. At a terminal it shows the whole call and asks for
//! confirmation. Elsewhere it requires the digest of the call. The answer carries that digest in both cases.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use plexus_policy::{RuleEffect, RuleEntry};
use plexus_protocol::loopback::Answered;
use plexus_protocol::{Approval, ApprovalKind, ApprovalStatus, Object};
use serde_json::{Value, json};

use crate::answer_confirmation::{self, Outcome};
use crate::approvals::find;
use crate::editor::{self, EditError, Editable, Edited};
use crate::error::ExpectedError;
use crate::hub::{HubClient, JsonArg, block_on};
use crate::review::confirm::{Confirmed, answers, confirm, is_interactive, line, prompt};
use crate::review::original::original;
use crate::review::question::questions;
use crate::review::{self, Reviewed};
use crate::rule_warnings::warning;
use crate::settings::DataDirArg;
use crate::terminal::{now, one_line};
use crate::typed::Typed;
use crate::{output, remember};

/// The explanation below a rule.
const RULE_ALLOWS: &str = "Calls that match the rule will be allowed without asking.";

/// Arguments of `plexus approve`.
#[derive(Debug, Args)]
#[command(
    after_help = "At a terminal, the whole call is shown and you confirm it; for a question, you type your answers. Elsewhere --digest is required: it identifies the call that you read. \
    `plexus approvals` prints the digest of each call that it shows in full.\n\n\
    Examples:\n  plexus approve 3f0c\n  plexus approve 3f0c --edit     edit the input in $EDITOR first\n  \
    plexus approve 3f0c --always   and add a rule for such calls\n  \
    plexus approve 3f0c --answers '{\"Which colour?\": \"blue\"}'\n  \
    plexus approve 3f0c --digest \"$(plexus approvals 3f0c --json | jq -r .digest)\"   for a script that has checked the call"
)]
pub(crate) struct ApproveArgs {
    /// The approval, by any unambiguous prefix of its id.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) id: String,
    /// A message to the agent.
    #[arg(short, long)]
    pub(crate) message: Option<String>,
    /// Edit the command or the new text (other inputs: as JSON) in $VISUAL or $EDITOR first, then confirm the changes. If you change nothing, nothing is answered. Needs a
    /// terminal; scripts pass another input with `plexus loopback respond --updated-input`.
    #[arg(long, conflicts_with = "digest")]
    pub(crate) edit: bool,
    /// Add a rule for this session and all below it: the suggested rule, or this one. It must match the call.
    #[arg(long, value_name = "RULE", num_args = 0..=1, default_missing_value = "")]
    pub(crate) always: Option<String>,
    /// Answers to a question: a JSON object from its text to the answer.
    #[arg(long, value_name = "JSON")]
    pub(crate) answers: Option<String>,
    /// Also set the permission mode of the session, such as after a plan.
    #[arg(long, value_parser = crate::modes::permission_mode)]
    pub(crate) mode: Option<String>,
    /// Allow the call with this digest without asking; fails if the approval is for another call.
    #[arg(long, value_name = "DIGEST")]
    pub(crate) digest: Option<String>,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

/// Allows a call.
pub(crate) fn run(args: &ApproveArgs) -> Result<(), ExpectedError> {
    block_on(async {
        if args.digest.is_none() && !is_interactive() {
            return Err(ExpectedError::Usage(no_terminal(args)));
        }
        if args.digest.is_some() && args.always.as_deref() == Some("") {
            let message = "with --digest, --always needs a rule, because a suggested rule would not be shown; for example --always 'Bash(make:*)'";
            return Err(ExpectedError::Usage(message.to_owned()));
        }
        let hub = HubClient::reach(&args.data_dir).await?;
        let reviewed = find(&hub, &args.id).await?;
        let approval = &reviewed.approval;
        still_open(approval)?;
        if approval.kind == ApprovalKind::Question && args.digest.is_some() && args.answers.is_none() {
            let message = "this is a question: answer it with --answers '{\"QUESTION\": \"ANSWER\"}'";
            return Err(ExpectedError::Usage(message.to_owned()));
        }
        let mut answer = answer(args, approval)?;
        match &args.digest {
            Some(digest) if approval.digest.as_ref() == Some(digest) => {
                if let Some(rule) = answer["remember"]["rule"].as_str() {
                    remember::check_alone(&hub, approval.id, rule).await?;
                }
            }
            Some(_) => {
                let message = "this digest belongs to another call; read this call with `plexus approvals`";
                return Err(ExpectedError::Refused(message.to_owned()));
            }
            None => confirm_at_terminal(args, &hub, &reviewed, &mut answer).await?,
        }
        let answered = hub.respond(answer.clone()).await?;
        if args.json.json {
            output::json(&with_input(&answered, &answer));
        }
        report(answer_confirmation::of(approval, &answer, &answered), args.json)
    })
}

fn no_terminal(args: &ApproveArgs) -> String {
    if args.edit {
        return "--edit needs a terminal for the editor and your confirmation. A script passes another input with \
                `plexus loopback respond --approval-id ID --approve true --digest DIGEST --updated-input JSON`"
            .to_owned();
    }
    "stdin is not a terminal: pass --digest with the digest of the call you read (`plexus approvals` prints it)".to_owned()
}

fn answer(args: &ApproveArgs, approval: &Approval) -> Result<Value, ExpectedError> {
    let mut answer = allow(approval);
    if let Some(message) = &args.message {
        answer["message"] = json!(message);
    }
    if let Some(mode) = &args.mode {
        answer["mode"] = json!(mode);
    }
    if let Some(answers) = &args.answers {
        let answers: Object = serde_json::from_str(answers).map_err(|error| {
            ExpectedError::Usage(format!("--answers: this is not a JSON object: {error}"))
        })?;
        answer["answers"] = Value::Object(answers);
    }
    if let Some(rule) = &args.always {
        answer["remember"] = json!({"rule": rule_for(approval, rule)?});
    }
    Ok(answer)
}

/// Shows the call, after an edit if requested, and asks for confirmation.
async fn confirm_at_terminal(
    args: &ApproveArgs,
    hub: &HubClient,
    reviewed: &Reviewed,
    answer: &mut Value,
) -> Result<(), ExpectedError> {
    let mut typed = Typed::new();
    let approval = &reviewed.approval;
    let others = match answer["remember"]["rule"].as_str() {
        Some(rule) => remember::check(hub, approval.id, rule).await?,
        None => Vec::new(),
    };
    let (mut rows, mut question) = (review::rows(reviewed, now()), "Allow it?".to_owned());
    if args.edit {
        let before = Editable::of(approval);
        let input = edited(hub, &before, &mut typed).await?;
        rows = vec![review::Row::new(review::Tone::Strong, &review::approval::title(&original(approval).0))];
        rows.extend(review::change::rows_of_edit(approval, &before.input, &input));
        question = "Allow it with this input?".to_owned();
        answer["updated_input"] = Value::Object(input);
    }
    if let Some(rule) = answer["remember"]["rule"].as_str() {
        let lines = ["rule for this session and all below it:", RULE_ALLOWS];
        let [name, what] = lines.map(|line| review::Row::new(review::Tone::Warn, line));
        rows.extend([name, review::Row::exact(review::Tone::Warn, "  ", rule), what]);
        let entry = RuleEntry::parse(rule, RuleEffect::Allow).ok();
        rows.extend(entry.as_ref().and_then(warning).map(|it| review::Row::new(review::Tone::Warn, &it)));
        for other in others {
            let line = "The rule also allows this call, which is open now:";
            rows.extend([
                review::Row::new(review::Tone::Warn, ""),
                review::Row::new(review::Tone::Warn, line),
            ]);
            rows.extend(review::rows(&hub.review(&other.to_string()).await?, now()));
        }
    }
    if let Some(mode) = answer["mode"].as_str() {
        let (name, mode) = (approval.session_label(), one_line(mode, 40));
        let line = format!("This also sets the permission mode of {name} to {mode}, for all later calls.");
        rows.push(review::Row::new(review::Tone::Warn, &line));
        question = format!("Allow it and set the mode {mode}?");
    }
    if let Some(given) = answer["answers"].as_object() {
        rows.push(review::Row::new(review::Tone::Strong, "your answers:"));
        rows.extend(given.iter().flat_map(|(question, answer)| review::approval::field(question, answer)));
        question = "Send these answers?".to_owned();
    } else if approval.kind == ApprovalKind::Question && !args.edit {
        let asked = questions(&approval.input);
        if asked.is_empty() {
            let message = "the questions in this input cannot be read: add `answers` to the input with --edit, or use `plexus deny`";
            return Err(ExpectedError::Refused(message.to_owned()));
        }
        let given = answers(&mut typed, &rows, &asked).await.ok_or_else(|| left_open(""))?;
        answer["answers"] = Value::Object(given);
        return Ok(());
    }
    match confirm(&mut typed, &rows, &question).await {
        Confirmed::Yes => Ok(()),
        Confirmed::No => Err(left_open("")),
    }
}

/// The hub's answer, and the input that runs if it was edited.
fn with_input(answered: &Answered, answer: &Value) -> Value {
    let mut shown = json!(answered);
    if matches!(answered, Answered::Ok { .. }) && answer["updated_input"].is_object() {
        shown["updated_input"] = answer["updated_input"].clone();
    }
    shown
}

fn left_open(why: &str) -> ExpectedError {
    ExpectedError::Interrupted(format!("{why}nothing was answered; the approval stays open"))
}

/// The answer that allows this call.
pub(crate) fn allow(approval: &Approval) -> Value {
    let mut answer = json!({"approval_id": approval.id, "approve": true});
    if let Some(digest) = &approval.digest {
        answer["digest"] = json!(digest);
    }
    answer
}

async fn edited(hub: &HubClient, before: &Editable, typed: &mut Typed) -> Result<Object, ExpectedError> {
    let mut again: Option<String> = None;
    loop {
        match editor::edit(&hub.dir, before, again.as_deref()).await {
            Ok(Edited::Changed(input)) => return Ok(input),
            Ok(Edited::Same) => return Err(left_open("the input was not changed: ")),
            Err(EditError::Invalid { why, text }) => {
                output::say(&format!("plexus: {}", one_line(&why, 200)));
                typed.discard();
                prompt("Press Enter to edit it again, or n to cancel: ");
                if line(typed).await.is_none_or(|line| matches!(line.as_str(), "n" | "q")) {
                    return Err(left_open(""));
                }
                again = Some(text);
            }
            Err(error) => {
                let message = format!("{error}; nothing was answered; the approval stays open");
                return Err(ExpectedError::Refused(message));
            }
        }
    }
}

fn rule_for(approval: &Approval, given: &str) -> Result<String, ExpectedError> {
    if !given.is_empty() {
        return Ok(given.to_owned());
    }
    remember::suggested(approval).ok_or_else(|| {
        ExpectedError::Usage(
            "no rule can be suggested for this call; name one: --always 'Bash(make:*)'".to_owned(),
        )
    })
}

/// Fails if the approval is already resolved.
pub(crate) fn still_open(approval: &Approval) -> Result<(), ExpectedError> {
    match approval.status {
        ApprovalStatus::Pending => Ok(()),
        _ => {
            Err(ExpectedError::Refused(format!("no longer open: {}", answer_confirmation::ending(approval))))
        }
    }
}

/// Prints the outcome of an answer.
pub(crate) fn report(outcome: Outcome, json: JsonArg) -> Result<(), ExpectedError> {
    match outcome {
        Outcome::Done(done) => {
            if !json.json {
                output::print(&done);
            }
            Ok(())
        }
        Outcome::TooLate(why) | Outcome::Refused(why) => Err(ExpectedError::Refused(why)),
    }
}
