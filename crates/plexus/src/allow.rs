//! `plexus allow`: adds rules that allow calls, for one session and all below it or for every session. A rule also allows the open
//! calls that it matches, so they are shown first, as with `plexus approve --always`.

use std::path::Path;

use clap::Args;
use plexus_policy::{RuleEffect, RuleEntry};
use plexus_protocol::claudecode::SessionView;
use plexus_protocol::policy::{AddResult, PreviewResult};
use plexus_protocol::{Approval, ApprovalId, ApprovalKind};
use serde_json::json;

use crate::confirm_loss::YesArg;
use crate::durations::{left, seconds};
use crate::error::{ExpectedError, system};
use crate::escape::exact;
use crate::hub::{HubClient, JsonArg, block_on};
use crate::output;
use crate::plural::counted;
use crate::review::confirm::{Confirmed, confirm, is_interactive};
use crate::review::{self, Row, Tone};
use crate::rule_warnings::warning;
use crate::settings::DataDirArg;
use crate::terminal::{now, one_line};
use crate::typed::Typed;

/// Arguments of `plexus allow`.
#[derive(Debug, Args)]
#[command(
    after_help = "A rule has Claude Code's syntax, see docs/policy.md. A relative path is relative to the session's working directory, or \
    to the current directory without --session. If the rule matches open calls, they are shown and you confirm. A rule that allows everything, and one for an \
    unknown tool, need your confirmation or --yes.\n\n\
    Examples:\n  plexus allow 'Bash(npm test:*)'\n  plexus allow 'Edit(src/**)' --session fixer --for 1h\n  plexus rules"
)]
pub(crate) struct AllowArgs {
    /// The rules, such as 'Bash(npm test:*)'.
    #[arg(required = true, value_name = "RULE", value_parser = rule)]
    pub(crate) rules: Vec<RuleEntry>,
    /// Only for this session and all below it [default: every session].
    #[arg(short, long, value_name = "NAME")]
    pub(crate) session: Option<String>,
    /// How long the rules apply, such as 90s, 15m, 1h or 7d [default: until removed].
    #[arg(long = "for", value_name = "DURATION", value_parser = seconds)]
    pub(crate) seconds: Option<u64>,
    #[command(flatten)]
    pub(crate) yes: YesArg,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

fn rule(text: &str) -> Result<RuleEntry, String> {
    RuleEntry::parse(text, RuleEffect::Allow)
        .map_err(|error| format!("at byte {}: expected {}", error.at, error.expected))
}

/// Adds the rules.
pub(crate) fn run(args: &AllowArgs) -> Result<(), ExpectedError> {
    block_on(async {
        let here = std::env::current_dir().map_err(system)?;
        let hub = HubClient::reach(&args.data_dir).await?;
        let session = match &args.session {
            Some(name) => Some(hub.session(name).await?),
            None => None,
        };
        let base = session.as_ref().map_or(here.as_path(), |session| Path::new(&session.working_dir));
        // With absolute paths, a rule matches the same calls in the preview and afterwards.
        let rules: Vec<String> =
            args.rules.iter().map(|entry| entry.anchored(base, None).rule().to_string()).collect();
        let warnings: Vec<String> = args.rules.iter().filter_map(warning).collect();
        if !warnings.is_empty() {
            warnings.iter().for_each(|warning| output::say(&format!("plexus: warning: {warning}")));
            let question = if rules.len() == 1 { "Add the rule?" } else { "Add the rules?" };
            args.yes.confirm(question).await?;
        }
        let open = open_calls(&hub, &rules, session.as_ref()).await?;
        if !open.is_empty() {
            show(&hub, &rules, &open).await?;
        }
        let expires_at = args.seconds.map(|seconds| now().saturating_add(seconds));
        let given =
            rules.iter().map(|rule| json!({"rule": rule, "effect": "allow", "expires_at": expires_at}));
        let mut add = json!({"rules": given.collect::<Vec<_>>()});
        if let Some(session) = &session {
            add["session_id"] = json!(session.id);
        }
        let added: AddResult = hub.call_with_timeout("policy.add", add).await?;
        if args.json.json {
            output::json(&added);
            return Ok(());
        }
        let AddResult::Ok { rules, settled } = added;
        let scope = session
            .map_or("every session".to_owned(), |session| format!("{} and all below it", session.path));
        for rule in rules {
            let end = match rule.expires_at {
                None => String::new(),
                end => format!(", expires {}", left(end)),
            };
            let text = one_line(&exact(&rule.rule), 200);
            output::print(&format!("rule {}: {text} is allowed in {scope}{end}", rule.number));
        }
        if !settled.is_empty() {
            output::print(&format!("allowed {} that matched", calls(settled.len())));
        }
        Ok(())
    })
}

/// The open calls that one of the rules matches.
async fn open_calls(
    hub: &HubClient,
    rules: &[String],
    session: Option<&SessionView>,
) -> Result<Vec<ApprovalId>, ExpectedError> {
    let sessions = hub.all_sessions().await?;
    let scope = session.map(|top| below(&sessions, top));
    let in_scope = |approval: &Approval| {
        approval.kind != ApprovalKind::Budget
            && scope.as_ref().is_none_or(|scope| scope.contains(&approval.session_id))
    };
    let mut open = Vec::new();
    for approval in hub.pending().await?.into_iter().filter(in_scope) {
        for rule in rules {
            let asked = json!({"approval_id": approval.id, "rule": rule});
            let preview = hub.call_with_timeout("policy.preview", asked).await?;
            if matches!(preview, PreviewResult::Ok { covers: true, .. }) {
                open.push(approval.id);
                break;
            }
        }
    }
    Ok(open)
}

/// The ids of a session and of all below it, in a list with parents before their children.
pub(crate) fn below(sessions: &[SessionView], top: &SessionView) -> Vec<plexus_protocol::SessionId> {
    let from = sessions.iter().skip_while(|session| session.id != top.id);
    let mut tree: Vec<_> = vec![top.id];
    let Some(depth) = from.clone().next().map(|top| top.depth) else { return tree };
    tree.extend(from.skip(1).take_while(|session| session.depth > depth).map(|session| session.id));
    tree
}

/// Shows the open calls in full and asks whether to allow them.
async fn show(hub: &HubClient, rules: &[String], open: &[ApprovalId]) -> Result<(), ExpectedError> {
    let count = calls(open.len());
    if !is_interactive() {
        let first = open.first().map(ToString::to_string).unwrap_or_default();
        return Err(ExpectedError::Refused(format!(
            "this would also allow {count}, such as {first}; no rule was added. Answer them first, or use a terminal, which shows them"
        )));
    }
    let mut rows = vec![Row::new(Tone::Warn, &format!("This also allows {count}, with"))];
    rows.extend(rules.iter().map(|rule| Row::exact(Tone::Warn, "  ", rule)));
    for id in open {
        rows.push(Row::new(Tone::Warn, ""));
        rows.extend(review::rows(&hub.review(&id.to_string()).await?, now()));
    }
    match confirm(&mut Typed::new(), &rows, "Add the rule and allow these calls?").await {
        Confirmed::Yes => Ok(()),
        Confirmed::No => Err(ExpectedError::Interrupted("no rule was added".to_owned())),
    }
}

fn calls(count: usize) -> String {
    counted(count, "open call", "open calls")
}
