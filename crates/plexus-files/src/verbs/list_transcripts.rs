//! Lists the recent conversations of Claude Code in a directory, so that a person can choose the one to continue.

use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::find_transcript::{MAX_PROJECTS, read_line};
use super::read_file::open_regular;
use super::read_transcript::is_project_of;
use crate::request::{Input, Kind, Output, Request, Verb};

/// The maximum number of transcripts to search.
const MAX_TRANSCRIPTS: usize = 100_000;
/// The number of bytes to search for the first prompt.
const SEARCHED: u64 = 1024 * 1024;
/// The maximum length of a prompt to return, in characters.
const MAX_CHARS: usize = 200;

/// Lists the recent conversations of a directory, the newest first.
#[derive(Debug, Serialize, Deserialize)]
pub struct ListTranscripts {
    /// The directory `projects` of Claude Code.
    pub projects: PathBuf,
    /// The working directory of the conversations.
    pub working_dir: String,
    /// The maximum number of conversations.
    pub limit: usize,
}

/// A conversation of Claude Code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedTranscript {
    /// Its id.
    pub id: String,
    /// When its transcript was last changed, in seconds since 1970.
    pub modified_at: u64,
    /// The start of its first prompt.
    pub first_prompt: String,
}

impl From<ListTranscripts> for Request {
    fn from(verb: ListTranscripts) -> Self {
        Self::ListTranscripts(verb)
    }
}

impl Verb for ListTranscripts {
    type Answer = Vec<ListedTranscript>;

    const KIND: Kind = Kind::Read;
    const MAX_BODY: u64 = 0;

    fn perform(self, _input: Input) -> (Self::Answer, Output) {
        (self.list(), Output::default())
    }
}

impl ListTranscripts {
    fn list(self) -> Vec<ListedTranscript> {
        let projects = self.projects.read_dir().ok().into_iter().flatten().flatten().take(MAX_PROJECTS);
        let projects =
            projects.map(|project| project.path()).filter(|path| is_project_of(path, &self.working_dir));
        let files = projects.filter_map(|project| project.read_dir().ok()).flatten().flatten();
        let mut files: Vec<(SystemTime, PathBuf)> = files
            .take(MAX_TRANSCRIPTS)
            .filter(|file| file.path().extension().is_some_and(|extension| extension == "jsonl"))
            .filter_map(|file| Some((file.metadata().ok()?.modified().ok()?, file.path())))
            .collect();
        files.sort_unstable_by(|one, other| other.cmp(one));
        files.iter().filter_map(|(modified, path)| listed(*modified, path)).take(self.limit).collect()
    }
}

/// A conversation, unless it has no prompt.
fn listed(modified: SystemTime, path: &Path) -> Option<ListedTranscript> {
    Some(ListedTranscript {
        id: path.file_stem()?.to_str()?.to_owned(),
        modified_at: modified.duration_since(UNIX_EPOCH).ok()?.as_secs(),
        first_prompt: first_prompt(&open_regular(path).ok()?)?,
    })
}

fn first_prompt(transcript: &File) -> Option<String> {
    let mut reader = BufReader::new(transcript.take(SEARCHED));
    let mut line = Vec::new();
    while read_line(&mut reader, &mut line).ok()? {
        let Ok(entry) = serde_json::from_slice::<Value>(&line) else { continue };
        if entry["type"] != "user" || entry["isMeta"] == true || entry["isSidechain"] == true {
            continue;
        }
        let content = &entry["message"]["content"];
        let texts = content.as_array().map(Vec::as_slice).unwrap_or_default();
        let text = content.as_str().or_else(|| texts.iter().find_map(|block| block["text"].as_str()));
        if let Some(text) = text {
            return Some(text.chars().take(MAX_CHARS).collect());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_newest_conversations_of_the_directory_are_listed_with_their_first_prompts() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, second: u64, lines: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, lines).unwrap();
            let time = UNIX_EPOCH + Duration::from_secs(second);
            File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
        };
        let said = |text: &str| format!("{{\"type\":\"user\",\"message\":{{\"content\":\"{text}\"}}}}\n");
        let meta = "{\"type\":\"user\",\"isMeta\":true,\"message\":{\"content\":\"caveat\"}}\n";
        write("-work/old.jsonl", 10, &said("old"));
        write("-work/oldest.jsonl", 9, &said("oldest"));
        write("-work/new.jsonl", 20, &[meta, &said(&"ä".repeat(300)), &said("later")].concat());
        write("-work/without.jsonl", 30, meta);
        write("-work/notes.md", 31, &said("no transcript"));
        write("-other/elsewhere.jsonl", 40, &said("elsewhere"));
        let verb = |limit| ListTranscripts {
            projects: dir.path().to_owned(),
            working_dir: "/work".to_owned(),
            limit,
        };
        let listed = verb(2).list();
        let found: Vec<_> =
            listed.iter().map(|one| (one.id.as_str(), one.modified_at, one.first_prompt.as_str())).collect();
        assert_eq!(found, [("new", 20, "ä".repeat(MAX_CHARS).as_str()), ("old", 10, "old")]);
        assert_eq!(verb(9).list().len(), 3);
        assert_eq!(ListTranscripts { projects: "/none".into(), ..verb(9) }.list(), []);
    }
}
