//! Claude Code's transcripts: whether one exists to continue, and the cost it records. Any child can write them, so a helper
//! process reads them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use plexus_agent::Conversation;
use plexus_files::{FindTranscripts, Transcript};
use plexus_store::ResumePoint;

use super::owner::Owner;

/// A conversation to start with.
pub(super) struct Found {
    pub(super) conversation: Conversation,
    /// Its cost when its last process ended, in dollars.
    pub(super) spent_usd: f64,
}

impl Owner {
    /// Continues the conversation if Claude Code has a transcript of it, in the home of this environment. A child that was
    /// killed early leaves none, and resuming it would fail. A fork starts with part of another transcript.
    pub(super) async fn conversation(&self, env: &BTreeMap<OsString, OsString>) -> Result<Found, String> {
        let id = self.machine.id().to_string();
        let forked = self.machine.config().forked.clone();
        let ids = std::iter::once(id.clone()).chain(forked.iter().map(|forked| forked.session.to_string()));
        let mut transcripts = match projects(env) {
            Some(projects) => {
                let verb = FindTranscripts { projects, ids: ids.collect() };
                let found = self.parts.files.call(verb, None, &mut tokio::io::sink()).await;
                found.map_err(|error| format!("cannot search for its transcript: {error}"))?
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
            // Without it the agent would not know the conversation it is asked to continue.
            None => Err(format!(
                "it was forked from session {from}, and Claude Code no longer has the transcript of that \
                 session"
            )),
        }
    }
}

/// Where Claude Code keeps transcripts.
fn projects(env: &BTreeMap<OsString, OsString>) -> Option<PathBuf> {
    let get = |name: &str| env.get(&OsString::from(name)).map(PathBuf::from);
    let config = get("CLAUDE_CONFIG_DIR").or_else(|| get("HOME").map(|home| home.join(".claude")))?;
    Some(config.join("projects"))
}
