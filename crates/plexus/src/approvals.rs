//! `plexus approvals`: prints the open approvals with their inputs, and resolves a prefix to an approval. A digest is printed only
//! with an input that is shown in full.

use std::collections::BTreeSet;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use plexus_protocol::{ApprovalStatus, AskedOf};
use serde_json::{Value, json};

use crate::answer_confirmation::ending;
use crate::error::ExpectedError;
use crate::hub::{HubClient, JsonArg, block_on};
use crate::output;
use crate::paint::Paint;
use crate::review::{self, Pager, Reviewed};
use crate::settings::DataDirArg;
use crate::terminal::{age, now, one_line, size};

/// The minimum length of a printed id.
const MIN_ID_LENGTH: usize = 8;
/// The minimum length of a prefix that finds a resolved approval.
const MIN_RESOLVED_ID_LENGTH: usize = 4;
/// How many of the latest resolved approvals are searched.
const RESOLVED: u64 = 1000;
/// How many lines of each approval the list shows.
const LINES: usize = 16;

/// Arguments of `plexus approvals`.
#[derive(Debug, Args)]
#[command(
    after_help = "The list shows the first lines of each approval, and its digest if it is shown in full. With an ID, that approval \
    is shown in full. --json prints every input in full, with its digest.\n\n\
    Examples:\n  plexus approvals\n  plexus approvals 3f0c\n  plexus approve 3f0c\n  plexus deny 3f0c -m \"not in this folder\""
)]
pub(crate) struct ApprovalsArgs {
    /// Show this approval in full, by any unambiguous prefix of its id.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

/// Prints the open approvals.
pub(crate) fn run(args: &ApprovalsArgs) -> Result<(), ExpectedError> {
    block_on(async {
        let hub = HubClient::reach(&args.data_dir).await?;
        if let Some(id) = &args.id {
            let found = find(&hub, id).await?;
            if args.json.json {
                output::json(&found.approval);
            } else {
                output::print(&block(&found, &[found.approval.id.to_string()], Shown::All));
            }
            return Ok(());
        }
        let ids: Vec<String> = hub.pending().await?.iter().map(|approval| approval.id.to_string()).collect();
        let mut open = Vec::new();
        for id in &ids {
            let found = hub.review(id).await?;
            // One may have been answered since the list was read.
            if found.approval.status == ApprovalStatus::Pending {
                open.push(found);
            }
        }
        if args.json.json {
            output::json(&open.iter().map(|found| &found.approval).collect::<Vec<_>>());
        } else if open.is_empty() {
            output::say("plexus: no open approvals");
        } else {
            let blocks: Vec<String> = open.iter().map(|found| block(found, &ids, Shown::First)).collect();
            output::print(&blocks.join("\n\n"));
            output::say(
                "plexus: `plexus approve ID` or `plexus deny ID -m WHY`; the first characters of an id are enough",
            );
        }
        Ok(())
    })
}

/// How much of an approval is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// Its first lines.
    First,
    /// All of it.
    All,
}

fn block(found: &Reviewed, ids: &[String], shown: Shown) -> String {
    let approval = &found.approval;
    let id = approval.id.to_string();
    let id = short(&id, ids);
    let asked = match approval.asked_of {
        AskedOf::Operator => "Asked you",
        AskedOf::Session { .. } | AskedOf::Parent { .. } => "Asked an agent",
    };
    let ago = age(now().saturating_sub(approval.created_at));
    let mut reading = Pager::of(&review::rows(found, now()), size().0);
    let paint = Paint::of(&std::io::stdout());
    let body = match shown {
        Shown::First => reading.page(LINES, paint),
        Shown::All => reading.page(usize::MAX, paint),
    };
    let end = match &approval.digest {
        _ if approval.status != ApprovalStatus::Pending => format!("no longer open: {}", ending(approval)),
        _ if !reading.all() => {
            format!("TRUNCATED: {}; `plexus approvals {id}` shows all", reading.progress())
        }
        Some(digest) => format!("digest {digest}"),
        None => String::new(),
    };
    format!("{id}  {asked} {ago} ago\n{body}\n{end}").trim_end().to_owned()
}

/// The shortest prefix of an id that is unambiguous.
pub(crate) fn short<'a>(id: &'a str, all: &[String]) -> &'a str {
    let alone = |length: &usize| all.iter().filter(|other| other.starts_with(&id[..*length])).count() <= 1;
    let length = (MIN_ID_LENGTH..id.len()).find(alone).unwrap_or(id.len());
    id.get(..length).unwrap_or(id)
}

/// The approval with this id or prefix, in full.
pub(crate) async fn find(hub: &HubClient, typed: &str) -> Result<Reviewed, ExpectedError> {
    let open: Vec<String> = hub.pending().await?.iter().map(|approval| approval.id.to_string()).collect();
    let id = match &*open.iter().filter(|id| id.starts_with(typed)).collect::<Vec<_>>() {
        [id] => (*id).clone(),
        [] if typed.parse::<plexus_protocol::ApprovalId>().is_ok() => typed.to_owned(),
        [] => resolved(hub, typed).await?,
        several => return Err(ambiguous(typed, several, &open)),
    };
    hub.review(&id).await
}

/// The id of a recently resolved approval with this prefix.
async fn resolved(hub: &HubClient, typed: &str) -> Result<String, ExpectedError> {
    let unknown = || {
        let typed = one_line(typed, 60);
        ExpectedError::Refused(format!(
            "no open approval has an id that starts with `{typed}`; `plexus approvals` lists the open approvals"
        ))
    };
    if typed.len() < MIN_RESOLVED_ID_LENGTH {
        return Err(unknown());
    }
    let latest = json!({"kind": "decision", "newest_first": true, "limit": RESOLVED});
    let found: Value = hub.call_with_timeout("audit.list", latest).await?;
    let rows = found["rows"].as_array().into_iter().flatten();
    let ids: BTreeSet<String> =
        rows.filter_map(|row| row["entry"]["approval_id"].as_str()).map(str::to_owned).collect();
    let ids: Vec<String> = ids.into_iter().collect();
    match &*ids.iter().filter(|id| id.starts_with(typed)).collect::<Vec<_>>() {
        [id] => Ok((*id).clone()),
        [] => Err(unknown()),
        several => Err(ambiguous(typed, several, &ids)),
    }
}

fn ambiguous(typed: &str, several: &[&String], all: &[String]) -> ExpectedError {
    let several: Vec<&str> = several.iter().map(|id| short(id, all)).collect();
    ExpectedError::Refused(format!("`{}` is ambiguous: {}", one_line(typed, 60), several.join(" or ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_shortened_to_an_unambiguous_prefix() {
        let all = ["0123456789ab".to_owned(), "0123456790ab".to_owned(), "ffffffffffff".to_owned()];
        assert_eq!(short(&all[0], &all), "012345678");
        assert_eq!(short(&all[2], &all), "ffffffff");
    }
}
