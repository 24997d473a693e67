//! Reads the conversation in a transcript of Claude Code, so that a session can continue it. A transcript is a tree of entries: the
//! conversation is the path to its last message. Only the newest messages are returned, because a transcript can have any size.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::find_transcript::{MAX_MESSAGE_BYTES, MAX_PROJECTS, SEARCHED, read_line};
use super::read_file::{FileError, open_regular};
use crate::request::{Input, Kind, Output, Request, Verb};

/// The maximum number of messages to return.
const MAX_MESSAGES: usize = 2000;
/// The maximum size of the returned messages, in bytes of their lines.
const MAX_BYTES: u64 = 8 * 1024 * 1024;
/// The maximum number of entries to remember. Entries before them are forgotten.
const MAX_ENTRIES: usize = 200_000;
/// The length after which Claude Code shortens the name of a project's directory.
const MAX_NAME: usize = 200;

/// Reads a conversation of Claude Code.
#[derive(Debug, Serialize, Deserialize)]
pub struct ReadTranscript {
    /// The directory `projects` of Claude Code.
    pub projects: PathBuf,
    /// The id of the conversation.
    pub id: String,
    /// The directory in which the conversation continues.
    pub working_dir: String,
}

/// The result of reading a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TranscriptRead {
    /// The newest messages, the oldest of them first. The last one is where Claude Code can resume.
    Conversation(Vec<TranscriptMessage>),
    /// The transcript has no message at which Claude Code can resume.
    Empty,
    /// The conversation belongs to another directory, which is named if the transcript names it.
    Elsewhere(Option<String>),
    /// No transcript has this id.
    None,
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TranscriptMessage {
    /// The id of its entry.
    pub uuid: String,
    /// The author.
    pub author: Author,
    /// The id that the entries of one message share.
    pub message_id: Option<String>,
    /// The content, as in the Claude API.
    pub content: Value,
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// The user, or a tool that returns its result.
    User,
    /// The model.
    Assistant,
}

impl From<ReadTranscript> for Request {
    fn from(verb: ReadTranscript) -> Self {
        Self::ReadTranscript(verb)
    }
}

impl Verb for ReadTranscript {
    type Answer = Result<TranscriptRead, FileError>;

    const KIND: Kind = Kind::Read;
    const MAX_BODY: u64 = 0;

    fn perform(self, _input: Input) -> (Self::Answer, Output) {
        (self.read(), Output::default())
    }
}

impl ReadTranscript {
    fn read(self) -> Result<TranscriptRead, FileError> {
        let name = format!("{}.jsonl", self.id);
        let projects = self.projects.read_dir().ok().into_iter().flatten().flatten().take(MAX_PROJECTS);
        let mut elsewhere = None;
        for project in projects.map(|project| project.path()) {
            let Ok(transcript) = open_regular(&project.join(&name)) else { continue };
            if is_project_of(&project, &self.working_dir) {
                return Conversation::scan(&transcript)?.messages(&transcript);
            }
            elsewhere = Some(transcript);
        }
        Ok(match elsewhere {
            Some(transcript) => TranscriptRead::Elsewhere(first_directory(&transcript)?),
            None => TranscriptRead::None,
        })
    }
}

/// Whether Claude Code keeps the transcripts of this working directory here. It replaces each UTF-16 unit of the path that is not an
/// ASCII letter or digit with `-`, and a hash replaces the end of a long name.
pub(super) fn is_project_of(project: &Path, working_dir: &str) -> bool {
    let mut name = String::new();
    for character in working_dir.chars() {
        if character.is_ascii_alphanumeric() {
            name.push(character);
        } else {
            name.extend(std::iter::repeat_n('-', character.len_utf16()));
        }
    }
    let project = project.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match name.get(..MAX_NAME) {
        Some(start) if name.len() > MAX_NAME => project.starts_with(start),
        _ => project == name,
    }
}

/// The directory in which the conversation started.
fn first_directory(transcript: &File) -> Result<Option<String>, FileError> {
    let mut reader = BufReader::new(transcript.take(SEARCHED));
    let mut line = Vec::new();
    while read_line(&mut reader, &mut line)? {
        if let Ok(Entry { cwd: Some(cwd), .. }) = serde_json::from_slice(&line) {
            return Ok(Some(cwd));
        }
    }
    Ok(None)
}

/// The fields of an entry that place it in the conversation.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    uuid: Option<String>,
    #[serde(default)]
    parent_uuid: Option<String>,
    /// The entry before a compaction.
    #[serde(default)]
    logical_parent_uuid: Option<String>,
    #[serde(default)]
    is_sidechain: bool,
    /// Set if Claude Code added the message by itself and does not show it.
    #[serde(default)]
    is_meta: bool,
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    message: Option<MessageId>,
}

#[derive(Deserialize)]
struct MessageId {
    #[serde(default)]
    id: Option<String>,
}

/// An entry that was read, and where.
struct Placed {
    uuid: String,
    parent: Option<String>,
    offset: u64,
    length: u64,
    /// Set if it is a message of the conversation itself. Sub-agents and Claude Code add other entries.
    author: Option<Author>,
    message_id: Option<String>,
}

/// The entries of a transcript, in their order.
#[derive(Default)]
struct Conversation {
    entries: Vec<Placed>,
}

impl Conversation {
    fn scan(transcript: &File) -> Result<Self, FileError> {
        let mut found = Self::default();
        let mut reader = BufReader::new(transcript.take(SEARCHED));
        let (mut line, mut offset) = (Vec::new(), 0);
        while read_line(&mut reader, &mut line)? {
            let start = offset;
            // The position of the reader, also after a line that was too long and skipped.
            offset = SEARCHED - reader.get_ref().limit() - reader.buffer().len() as u64;
            let Ok(entry) = serde_json::from_slice::<Entry>(&line) else { continue };
            let Some(uuid) = entry.uuid else { continue };
            let author = match entry.kind.as_str() {
                _ if entry.is_sidechain || entry.is_meta => None,
                "user" => Some(Author::User),
                "assistant" => Some(Author::Assistant),
                _ => None,
            };
            if found.entries.len() == MAX_ENTRIES {
                found.entries.drain(..MAX_ENTRIES / 2);
            }
            found.entries.push(Placed {
                uuid,
                parent: entry.parent_uuid.or(entry.logical_parent_uuid),
                offset: start,
                length: line.len() as u64,
                author,
                message_id: entry.message.and_then(|message| message.id),
            });
        }
        Ok(found)
    }

    /// The uuids of the last message and of all entries before it on its path.
    fn path(&self) -> HashSet<&str> {
        let by_uuid: HashMap<&str, &Placed> =
            self.entries.iter().map(|entry| (entry.uuid.as_str(), entry)).collect();
        let mut path = HashSet::new();
        let mut at = self.entries.iter().rev().find(|entry| entry.author.is_some());
        while let Some(entry) = at {
            if !path.insert(entry.uuid.as_str()) {
                break;
            }
            at = entry.parent.as_deref().and_then(|parent| by_uuid.get(parent).copied());
        }
        path
    }

    /// The newest messages of the conversation up to the last one at which Claude Code can resume. It refuses to resume at a call
    /// without a result.
    fn messages(&self, transcript: &File) -> Result<TranscriptRead, FileError> {
        let mut kept = self.path();
        let mut calls: HashSet<String> = HashSet::new();
        let mut message_ids: HashSet<&str> = HashSet::new();
        let mut messages = Vec::new();
        let mut bytes_off_path = 0;
        for entry in &self.entries[self.first(&kept)..] {
            let Some(author) = entry.author else { continue };
            // Calls of one message and their results branch off the path.
            let on_path = kept.contains(entry.uuid.as_str());
            if !on_path {
                let is_below = entry.parent.as_deref().is_some_and(|parent| kept.contains(parent));
                bytes_off_path += if is_below { entry.length } else { 0 };
                if !is_below || bytes_off_path > MAX_BYTES {
                    continue;
                }
            }
            let Some(message) = read_message(transcript, entry, author)? else { continue };
            let same_message = entry.message_id.as_deref().is_some_and(|id| message_ids.contains(id));
            let results = ids(&message.content, "tool_result", "tool_use_id");
            let result_of_a_call = !results.is_empty() && results.iter().all(|id| calls.contains(id));
            if !on_path && !same_message && !result_of_a_call {
                continue;
            }
            kept.insert(entry.uuid.as_str());
            message_ids.extend(entry.message_id.as_deref());
            calls.extend(ids(&message.content, "tool_use", "id"));
            messages.push(message);
        }
        let results: HashSet<String> =
            messages.iter().flat_map(|message| ids(&message.content, "tool_result", "tool_use_id")).collect();
        let is_finished = |message: &TranscriptMessage| {
            ids(&message.content, "tool_use", "id").iter().all(|call| results.contains(call))
        };
        let end = messages.iter().rposition(is_finished).map_or(0, |last| last + 1);
        messages.truncate(end);
        Ok(if messages.is_empty() { TranscriptRead::Empty } else { TranscriptRead::Conversation(messages) })
    }

    /// The index of the first message on the path to return.
    fn first(&self, path: &HashSet<&str>) -> usize {
        let (mut count, mut bytes, mut first) = (0, 0, self.entries.len());
        for (index, entry) in self.entries.iter().enumerate().rev() {
            if entry.author.is_none() || !path.contains(entry.uuid.as_str()) {
                continue;
            }
            bytes += entry.length;
            if count > 0 && (count == MAX_MESSAGES || bytes > MAX_BYTES) {
                break;
            }
            (count, first) = (count + 1, index);
        }
        first
    }
}

fn read_message(
    mut transcript: &File,
    entry: &Placed,
    author: Author,
) -> Result<Option<TranscriptMessage>, FileError> {
    transcript.seek(SeekFrom::Start(entry.offset))?;
    let mut line = Vec::new();
    transcript.take(entry.length.min(MAX_MESSAGE_BYTES)).read_to_end(&mut line)?;
    let Ok(mut line) = serde_json::from_slice::<Value>(&line) else { return Ok(None) };
    let content = line["message"]["content"].take();
    Ok(Some(TranscriptMessage {
        uuid: entry.uuid.clone(),
        author,
        message_id: entry.message_id.clone(),
        content,
    }))
}

/// The ids in the blocks of this kind.
fn ids(content: &Value, kind: &str, id: &str) -> Vec<String> {
    let blocks = content.as_array().map(Vec::as_slice).unwrap_or_default();
    let blocks = blocks.iter().filter(|block| block["type"] == kind);
    blocks.filter_map(|block| block[id].as_str()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const WORK: &str = "/home/a/my.project";

    fn line(kind: &str, uuid: &str, parent: Option<&str>, content: Value) -> String {
        json!({"type": kind, "uuid": uuid, "parentUuid": parent, "cwd": WORK, "message": {"id": format!("of {uuid}"), "content": content}})
            .to_string()
            + "\n"
    }

    fn call(id: &str) -> Value {
        json!([{"type": "tool_use", "id": id, "name": "Bash", "input": {}}])
    }

    fn result(id: &str) -> Value {
        json!([{"type": "tool_result", "tool_use_id": id, "content": "done"}])
    }

    fn read(lines: &[String]) -> TranscriptRead {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().join("-home-a-my-project");
        std::fs::create_dir(&project).unwrap();
        std::fs::write(project.join("a.jsonl"), lines.concat()).unwrap();
        read_in(dir.path(), "a", WORK)
    }

    fn read_in(projects: &Path, id: &str, working_dir: &str) -> TranscriptRead {
        let (id, working_dir) = (id.to_owned(), working_dir.to_owned());
        ReadTranscript { projects: projects.to_owned(), id, working_dir }.read().unwrap()
    }

    fn uuids(read: TranscriptRead) -> Vec<String> {
        match read {
            TranscriptRead::Conversation(messages) => {
                messages.into_iter().map(|message| message.uuid).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_conversation_is_the_path_to_the_last_message() {
        let lines = [
            "not JSON\n".to_owned(),
            line("user", "u1", None, json!("first")),
            line("attachment", "x", Some("u1"), json!(null)),
            line("assistant", "a1", Some("x"), json!([{"type": "text", "text": "Eins."}])),
            // The user went back to `a1` and entered another prompt.
            line("user", "u2", Some("a1"), json!("abandoned")),
            line("assistant", "a2", Some("u2"), json!([])),
            line("user", "u3", Some("a1"), json!("second")),
            "{\"type\":\"user\",\"uuid\":\"m\",\"parentUuid\":\"u3\",\"isMeta\":true}\n".to_owned(),
            "{\"type\":\"user\",\"uuid\":\"s\",\"parentUuid\":null,\"isSidechain\":true}\n".to_owned(),
        ];
        assert_eq!(uuids(read(&lines)), ["u1", "a1", "u3"]);
    }

    #[test]
    fn parallel_calls_and_their_results_belong_to_the_conversation() {
        let calls = |uuid: &str, parent: &str, id: &str| {
            line("assistant", uuid, Some(parent), call(id)).replace(&format!("of {uuid}"), "one message")
        };
        let lines = [
            line("user", "u1", None, json!("go")),
            calls("a1", "u1", "c1"),
            calls("a2", "a1", "c2"),
            line("user", "r1", Some("a1"), result("c1")),
            line("user", "r2", Some("a2"), result("c2")),
            line("assistant", "a3", Some("r1"), json!([])),
        ];
        assert_eq!(uuids(read(&lines)), ["u1", "a1", "a2", "r1", "r2", "a3"]);
    }

    #[test]
    fn a_call_without_a_result_at_the_end_is_left_out() {
        let lines = [
            line("user", "u1", None, json!("go")),
            line("assistant", "a1", Some("u1"), call("c1")),
            line("user", "r1", Some("a1"), result("c1")),
            line("assistant", "a2", Some("r1"), call("c2")),
        ];
        assert_eq!(uuids(read(&lines)), ["u1", "a1", "r1"]);
        assert_eq!(read(&[line("assistant", "a", None, call("c"))]), TranscriptRead::Empty);
        assert_eq!(read(&[]), TranscriptRead::Empty);
    }

    #[test]
    fn a_compacted_conversation_includes_the_messages_before_the_compaction() {
        let boundary = json!({"type": "system", "uuid": "b", "parentUuid": null, "logicalParentUuid": "u1"});
        let lines = [
            line("user", "u1", None, json!("first")),
            boundary.to_string() + "\n",
            line("user", "u2", Some("b"), json!("summary")),
        ];
        assert_eq!(uuids(read(&lines)), ["u1", "u2"]);
    }

    #[test]
    fn only_the_newest_messages_of_a_long_conversation_are_returned() {
        let mut lines = vec![line("user", "0", None, json!("x".repeat(4096)))];
        for number in 1..=MAX_MESSAGES + 100 {
            let parent = (number - 1).to_string();
            lines.push(line("user", &number.to_string(), Some(&parent), json!("x")));
        }
        let found = uuids(read(&lines));
        assert_eq!((found.len(), found[0].as_str()), (MAX_MESSAGES, "101"));
        let large = |uuid: &str, parent| line("user", uuid, parent, json!("x".repeat(MAX_BYTES as usize)));
        assert_eq!(uuids(read(&[large("u1", None), large("u2", Some("u1"))])), ["u2"]);
    }

    #[test]
    fn a_conversation_of_another_directory_is_named_with_that_directory() {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().join("-home-a-my-project");
        std::fs::create_dir(&project).unwrap();
        std::fs::write(project.join("a.jsonl"), line("user", "u1", None, json!("first"))).unwrap();
        assert_eq!(read_in(dir.path(), "a", "/tmp"), TranscriptRead::Elsewhere(Some(WORK.to_owned())));
        assert_eq!(read_in(dir.path(), "b", WORK), TranscriptRead::None);
        assert_eq!(read_in(&dir.path().join("none"), "a", WORK), TranscriptRead::None);
    }

    #[test]
    fn the_directory_of_a_project_has_the_name_that_claude_code_gives_it() {
        let long = format!("/{}", "x".repeat(300));
        let shortened = format!("-{}-1a2b3c", "x".repeat(199));
        for (working_dir, name) in [
            ("/tmp/ä b_c.d", "-tmp---b-c-d"),
            ("/tmp/\u{1f600}", "-tmp---"),
            (long.as_str(), shortened.as_str()),
        ] {
            assert!(is_project_of(&Path::new("/p").join(name), working_dir), "{working_dir}");
        }
        assert!(!is_project_of(Path::new("/p/-tmp-a"), "/tmp/ab"));
    }
}
