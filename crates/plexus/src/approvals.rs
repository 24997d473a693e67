//! `plexus approvals`: what waits for an answer, and how an id that was typed in part is taken for a whole one.

use clap::Args;
use plexus_protocol::{Approval, AskedOf};

use crate::error::ExpectedError;
use crate::hub::{HubClient, JsonArg, block_on};
use crate::output;
use crate::settings::DataDirArg;
use crate::table::{Align, Table};
use crate::terminal::{age, now, one_line, tool_line};

/// How much of an id is shown at least.
const SHORTEST: usize = 8;

/// Arguments of `plexus approvals`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  plexus approvals\n  plexus approve 3f0c\n  plexus deny 3f0c -m \"not in this folder\""
)]
pub(crate) struct ApprovalsArgs {
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

/// Shows what is open.
pub(crate) fn run(args: &ApprovalsArgs) -> Result<(), ExpectedError> {
    block_on(async {
        let hub = HubClient::reach(&args.data_dir).await?;
        let open = hub.pending().await?;
        if args.json.json {
            output::json(&open);
        } else if open.is_empty() {
            output::say("plexus: nothing waits for an answer");
        } else {
            output::print(&shown(&open, now()));
            output::say(
                "plexus: `plexus approve ID`, or `plexus deny ID -m why`; the first letters of an id will do",
            );
        }
        Ok(())
    })
}

fn shown(open: &[Approval], now: u64) -> String {
    let ids: Vec<String> = open.iter().map(|approval| approval.id.to_string()).collect();
    let mut table = Table::new(&[
        ("ID", Align::Left),
        ("SESSION", Align::Left),
        ("AGE", Align::Right),
        ("ASKED OF", Align::Left),
        ("TOOL", Align::Left),
        ("INPUT", Align::Left),
    ]);
    for (approval, id) in open.iter().zip(&ids) {
        table.row([
            short(id, &ids).to_owned(),
            approval.session_name.to_string(),
            age(now.saturating_sub(approval.created_at)),
            match approval.asked_of {
                AskedOf::Operator => "you",
                AskedOf::Session { .. } => "session",
                AskedOf::Parent { .. } => "agent",
            }
            .to_owned(),
            one_line(&approval.tool_name, 40),
            tool_line(&approval.tool_name, &approval.input, 80),
        ]);
    }
    table.to_string()
}

/// As much of an id as tells it from the others.
pub(crate) fn short<'a>(id: &'a str, all: &[String]) -> &'a str {
    let alone = |length: &usize| all.iter().filter(|other| other.starts_with(&id[..*length])).count() <= 1;
    let length = (SHORTEST..id.len()).find(alone).unwrap_or(id.len());
    id.get(..length).unwrap_or(id)
}

/// The open approval whose id begins so.
pub(crate) async fn find(hub: &HubClient, typed: &str) -> Result<Approval, ExpectedError> {
    let open: Vec<String> = hub.pending().await?.iter().map(|approval| approval.id.to_string()).collect();
    let id = match &*open.iter().filter(|id| id.starts_with(typed)).collect::<Vec<_>>() {
        [id] => (*id).clone(),
        [] if typed.parse::<plexus_protocol::ApprovalId>().is_ok() => typed.to_owned(),
        [] => {
            return Err(ExpectedError::Refused(format!(
                "no open approval's id begins with `{}`",
                one_line(typed, 60)
            )));
        }
        several => {
            let several: Vec<&str> = several.iter().map(|id| short(id, &open)).collect();
            return Err(ExpectedError::Refused(format!(
                "`{}` could be {}",
                one_line(typed, 60),
                several.join(" or ")
            )));
        }
    };
    // In full, with the digest that says what was seen.
    hub.approval(&id).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_shown_by_as_much_as_tells_it_from_the_others() {
        let all = ["0123456789ab".to_owned(), "0123456790ab".to_owned(), "ffffffffffff".to_owned()];
        assert_eq!(short(&all[0], &all), "012345678");
        assert_eq!(short(&all[2], &all), "ffffffff");
    }
}
