//! Claude Code's own transcripts: whether there is one to go on with, and what it says the conversation has cost so far. They
//! are Claude Code's to write, and any child can write them as well; a helper process looks.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use plexus_agent::Conversation;
use plexus_files::{FindTranscripts, Transcript};
use plexus_store::{Change, ResumePoint};

use super::owner::Owner;

/// A conversation to go on with.
pub(super) struct Found {
    pub(super) conversation: Conversation,
    /// What it had cost when its last process ended, in dollars.
    spent_usd: f64,
}

impl Owner {
    /// Goes on with the conversation where Claude Code has a transcript of it, in the home of this environment. A child
    /// that was killed early leaves none, and to resume it would fail. One that was forked begins with part of another
    /// one's.
    pub(super) async fn conversation(&self, env: &BTreeMap<OsString, OsString>) -> Result<Found, String> {
        let id = self.row.id.to_string();
        let forked = self.row.config.forked.clone();
        let ids = std::iter::once(id.clone()).chain(forked.iter().map(|forked| forked.session.to_string()));
        let mut transcripts = match projects(env) {
            Some(projects) => {
                let verb = FindTranscripts { projects, ids: ids.collect() };
                let found = self.hub.files().call(verb, None, &mut tokio::io::sink()).await;
                found.map_err(|error| format!("its transcript cannot be looked for: {error}"))?
            }
            None => Vec::new(),
        }
        .into_iter();
        if let Some(Transcript { spent_usd }) = transcripts.next().flatten() {
            return Ok(Found { conversation: Conversation::Resume(id), spent_usd });
        }
        let Some(ResumePoint { session, uuid: at }) = forked else {
            return Ok(Found { conversation: Conversation::New(id), spent_usd: 0.0 });
        };
        let from = session.to_string();
        match transcripts.next().flatten() {
            Some(Transcript { spent_usd }) => {
                Ok(Found { conversation: Conversation::Fork { from, at, id }, spent_usd })
            }
            // Without it the agent would know nothing of what it is asked to go on with.
            None => Err(format!(
                "it was forked from session {from}, whose transcript Claude Code does not have any more"
            )),
        }
    }

    /// What the process that is about to start counts its cost from: newer versions go on where the transcript says that
    /// the conversation stood, older ones write nothing of it and begin anew.
    pub(super) fn begin_counting_cost(&mut self, found: &Found) -> Option<Change> {
        let progress = &mut self.turn.as_mut()?.progress;
        (progress.cost_before, progress.cost_now) = (found.spent_usd, found.spent_usd);
        Some(self.progress())
    }
}

/// Where Claude Code keeps transcripts.
fn projects(env: &BTreeMap<OsString, OsString>) -> Option<PathBuf> {
    let get = |name: &str| env.get(&OsString::from(name)).map(PathBuf::from);
    let config = get("CLAUDE_CONFIG_DIR").or_else(|| get("HOME").map(|home| home.join(".claude")))?;
    Some(config.join("projects"))
}
