//! The conversation with which a process starts: a new one, its own, or part of another one for a fork or an adopted conversation. It depends on the transcripts
//! of Claude Code. Any child can write them, so a helper process reads them.

use std::collections::BTreeMap;
use std::ffi::OsString;

use plexus_agent::Conversation;
use plexus_files::{FindTranscript, FoundTranscript, TranscriptEntry};
use plexus_store::ResumePoint;

use super::owner::Owner;
use crate::processes::environment::claude_projects;

/// The maximum number of last messages that a fork may omit.
const MAX_LOST_MESSAGES: usize = 20;

/// A conversation to start with.
pub(super) struct Found {
    pub(super) conversation: Conversation,
    /// Its cost when its last process ended, in dollars.
    pub(super) spent_usd: f64,
}

impl Owner {
    /// Continues the conversation if Claude Code has a transcript of it, in the home of this environment. A child that was
    /// killed early leaves none, and resuming it would fail. A fork starts with part of another transcript: up to its last message
    /// there. A child that is killed loses the messages that it has not yet written, so the fork starts with the last message that is there.
    pub(super) async fn conversation(&self, env: &BTreeMap<OsString, OsString>) -> Result<Found, String> {
        let id = self.machine.id().to_string();
        let forked = self.machine.config().forked.clone();
        let entries = match &forked {
            Some(_) => self.entries_before_the_fork().await?,
            None => Vec::new(),
        };
        let found = match claude_projects(env) {
            Some(projects) => {
                let verb = FindTranscript { projects, id: id.clone(), entries };
                let found = self.parts.files.call(verb, None, &mut tokio::io::sink()).await;
                found.map_err(|error| format!("cannot search for its transcript: {error}"))?
            }
            None => FoundTranscript::None,
        };
        match (found, forked) {
            (FoundTranscript::Own { spent_usd }, _) => {
                Ok(Found { conversation: Conversation::Resume(id), spent_usd })
            }
            (FoundTranscript::Entry { entry: TranscriptEntry { id: from, uuid: at }, spent_usd }, _) => {
                Ok(Found { conversation: Conversation::Fork { from, at, id }, spent_usd })
            }
            (FoundTranscript::None, None) => {
                Ok(Found { conversation: Conversation::New(id), spent_usd: 0.0 })
            }
            // Without it the agent would not know the conversation it is asked to continue.
            (FoundTranscript::None, Some(ResumePoint { session, .. })) => Err(format!(
                "it continues session {session}, and Claude Code no longer has the transcript of that session"
            )),
        }
    }

    async fn entries_before_the_fork(&self) -> Result<Vec<TranscriptEntry>, String> {
        let points = self.parts.store.resume_points(self.machine.beginning(), MAX_LOST_MESSAGES + 1).await;
        let points = points
            .map_err(|error| format!("cannot read the fork point of this session: {error}"))?
            .into_iter();
        Ok(points.map(|point| TranscriptEntry { id: point.session.to_string(), uuid: point.uuid }).collect())
    }
}
