//! `claudecode.resumable`: lists the Claude Code sessions of a directory that `claudecode.create` can continue. They are the user's
//! own conversations, so only the operator may list them.

use std::sync::Arc;

use plexus_files::ListTranscripts;
use plexus_protocol::claudecode::{ResumableParams, ResumableResult, ResumableSession};
use plexus_protocol::{Error, ErrorKind, visible};

use super::create::{check_working_dir, projects_of};
use crate::Hub;
use crate::callers::access::{Admitted, Needs};
use crate::hub::Method;
use crate::method::Audience;

const DEFAULT_LIMIT: u64 = 20;
const MAX_LIMIT: u64 = 100;

pub(super) fn method() -> Method {
    Method::new(
        "claudecode.resumable",
        "Lists the recent Claude Code sessions of a directory, which claudecode.create can `resume`.",
        Audience::Programs,
        Needs::Rule,
        resumable,
    )
    .repeatable()
}

async fn resumable(
    hub: Arc<Hub>,
    _caller: Admitted,
    params: ResumableParams,
) -> Result<ResumableResult, Error> {
    let limit = params.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Error::invalid("limit", format!("must be between 1 and {MAX_LIMIT}")));
    }
    let working_dir = check_working_dir(&hub, &params.working_dir).await?.path;
    let Some(projects) = projects_of(&hub, None)? else {
        return Ok(ResumableResult::Ok { sessions: Vec::new() });
    };
    let limit = usize::try_from(limit).unwrap_or_default();
    let verb = ListTranscripts { projects, working_dir, limit };
    let listed = hub.files().call(verb, None, &mut tokio::io::sink()).await;
    let listed = listed.map_err(|error| {
        Error::new(ErrorKind::Internal, format!("Claude Code's sessions cannot be listed: {error}"))
    })?;
    // The name of a transcript is a UUID. Files with other names are not transcripts.
    let sessions = listed.into_iter().filter_map(|one| {
        let first_prompt = visible(&one.first_prompt).unwrap_or(one.first_prompt);
        Some(ResumableSession { id: one.id.parse().ok()?, modified_at: one.modified_at, first_prompt })
    });
    Ok(ResumableResult::Ok { sessions: sessions.collect() })
}
