//! Claude Code's own transcripts: whether there is one to go on with, and what it says the conversation has cost so far. They
//! are Claude Code's to write; the hub only looks.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use plexus_agent::Conversation;
use plexus_store::{Change, ResumePoint};
use serde_json::Value;

use super::owner::Owner;
use crate::environment::environment;

/// What a line begins with that tells what a conversation has cost. A process writes one when it ends.
const COST: &[u8] = br#"{"type":"cost-state""#;

impl Owner {
    /// Goes on with the conversation where Claude Code has a transcript of it. A child that was killed early leaves
    /// none, and to resume it would fail. One that was forked begins with part of another one's.
    pub(super) fn conversation(&self, env: &BTreeMap<OsString, OsString>) -> io::Result<Conversation> {
        let id = self.row.id.to_string();
        if transcript(env, &id).is_some() {
            return Ok(Conversation::Resume(id));
        }
        let Some(ResumePoint { session, uuid: at }) = self.row.config.forked.clone() else {
            return Ok(Conversation::New(id));
        };
        let from = session.to_string();
        if transcript(env, &from).is_none() {
            // Without it the agent would know nothing of what it is asked to go on with.
            let why = format!(
                "it was forked from session {from}, whose transcript Claude Code does not have any more"
            );
            return Err(io::Error::new(io::ErrorKind::NotFound, why));
        }
        Ok(Conversation::Fork { from, at, id })
    }

    /// What the process that is about to start counts its cost from: newer versions go on where the transcript says that
    /// the conversation stood, older ones write nothing of it and begin anew.
    pub(super) async fn begin_counting_cost(&mut self) -> Option<Change> {
        let env = environment(self.hub.settings(), self.row.id, &self.row.config.env);
        let from = match self.conversation(&env).ok()? {
            Conversation::New(_) => None,
            Conversation::Resume(id) | Conversation::Fork { from: id, .. } => transcript(&env, &id),
        };
        let spent = match from {
            Some(path) => tokio::task::spawn_blocking(move || spent(&path)).await.ok()?.unwrap_or(0.0),
            None => 0.0,
        };
        let progress = &mut self.turn.as_mut()?.progress;
        (progress.cost_before, progress.cost_now) = (spent, spent);
        Some(self.progress())
    }
}

/// The transcript of the conversation with this id, in the home of this environment.
fn transcript(env: &BTreeMap<OsString, OsString>, id: &str) -> Option<PathBuf> {
    let get = |name: &str| env.get(&OsString::from(name)).map(PathBuf::from);
    let config = get("CLAUDE_CONFIG_DIR").or_else(|| get("HOME").map(|home| home.join(".claude")))?;
    let name = format!("{id}.jsonl");
    let projects = std::fs::read_dir(config.join("projects")).ok()?;
    projects.flatten().map(|project| project.path().join(&name)).find(|path| path.is_file())
}

/// What the last process that ended had counted up to.
fn spent(transcript: &Path) -> io::Result<f64> {
    let mut lines = BufReader::new(File::open(transcript)?);
    let (mut line, mut last) = (Vec::new(), 0.0);
    while lines.read_until(b'\n', &mut line)? > 0 {
        if line.starts_with(COST)
            && let Ok(state) = serde_json::from_slice::<Value>(&line)
        {
            last = state["totalCostUSD"].as_f64().unwrap_or(last);
        }
        line.clear();
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_spent_is_what_the_last_process_said() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("t.jsonl");
        let lines = "{\"type\":\"user\"}\n{\"type\":\"cost-state\",\"totalCostUSD\":0.5}\n{\"type\":\"user\",\"x\":\"cost-state\"}\n\
                     {\"type\":\"cost-state\",\"totalCostUSD\":1.25}\n{\"type\":\"cost-state\",\"totalCo";
        std::fs::write(&path, lines).expect("written");
        assert_eq!(spent(&path).expect("read"), 1.25);
        std::fs::write(&path, "{\"type\":\"user\"}\n").expect("written");
        assert_eq!(spent(&path).expect("read"), 0.0);
    }
}
