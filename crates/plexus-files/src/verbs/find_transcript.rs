//! Finds the transcript of Claude Code with which a process can start, and the cost of the conversation in it. It reads
//! only the end of a transcript for the cost, and keeps only a part of it in memory, because an agent can write a transcript of any size.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::read_file::{FileError, open_regular};
use crate::request::{Input, Kind, Output, Request, Verb};

/// The number of bytes to read from the end of a transcript.
const END: u64 = 64 * 1024 * 1024;
/// The longest line that can contain a cost, in bytes.
const MAX_LINE_BYTES: usize = 256 * 1024;
/// The maximum number of projects to search.
pub(super) const MAX_PROJECTS: usize = 100_000;
/// The start of a line that contains the cost of a conversation. A process writes one when it exits.
const COST: &[u8] = br#"{"type":"cost-state""#;

/// The maximum number of bytes to search for an entry.
pub(super) const SEARCHED: u64 = 1024 * 1024 * 1024;
/// The longest line with a message, in bytes.
pub(super) const MAX_MESSAGE_BYTES: u64 = 32 * 1024 * 1024;
/// The number of messages before an entry at which a conversation can resume instead.
const MAX_RECENT: usize = 64;

/// Finds the transcript with which a process can start.
#[derive(Debug, Serialize, Deserialize)]
pub struct FindTranscript {
    /// The directory `projects` of Claude Code.
    pub projects: PathBuf,
    /// The id of the conversation.
    pub id: String,
    /// The entries of other conversations that it may start from, the best one first.
    pub entries: Vec<TranscriptEntry>,
}

/// An entry of a transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranscriptEntry {
    /// The id of the conversation.
    pub id: String,
    /// The id of the entry.
    pub uuid: String,
}

/// The transcript with which a process can start. `spent_usd` is the cost of its conversation when the last process of that
/// conversation exited, in dollars; 0 if the transcript does not contain it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields are described above")]
pub enum FoundTranscript {
    /// The transcript of the conversation itself.
    Own { spent_usd: f64 },
    /// A transcript that contains one of the entries.
    Entry { entry: TranscriptEntry, spent_usd: f64 },
    /// No transcript.
    None,
}

impl From<FindTranscript> for Request {
    fn from(verb: FindTranscript) -> Self {
        Self::FindTranscript(verb)
    }
}

impl Verb for FindTranscript {
    type Answer = FoundTranscript;

    const KIND: Kind = Kind::Read;
    const MAX_BODY: u64 = 0;

    fn perform(self, _input: Input) -> (Self::Answer, Output) {
        (self.find(), Output::default())
    }
}

impl FindTranscript {
    fn find(self) -> FoundTranscript {
        if let Some(transcript) = find(&self.projects, &self.id) {
            return FoundTranscript::Own { spent_usd: spent(transcript).unwrap_or(0.0) };
        }
        for of_one in self.entries.chunk_by(|one, other| one.id == other.id) {
            if let Some(transcript) = find(&self.projects, &of_one[0].id)
                && let Ok(Some(entry)) = resume_entry(&transcript, of_one)
            {
                return FoundTranscript::Entry { entry, spent_usd: spent(transcript).unwrap_or(0.0) };
            }
        }
        FoundTranscript::None
    }
}

fn find(projects: &Path, id: &str) -> Option<File> {
    let name = format!("{id}.jsonl");
    let projects = projects.read_dir().ok()?.flatten().take(MAX_PROJECTS);
    projects.map(|project| project.path().join(&name)).find_map(|path| open_regular(&path).ok())
}

/// Where to resume a conversation that should continue after the first of these entries that the transcript contains. A process that is
/// killed can lose the last entries. Claude Code refuses to resume at a call without a result, so such a call is left out.
fn resume_entry(
    transcript: &File,
    entries: &[TranscriptEntry],
) -> Result<Option<TranscriptEntry>, FileError> {
    let mut recent: VecDeque<Message> = VecDeque::new();
    let mut best: Option<(usize, VecDeque<Message>)> = None;
    let mut reader = BufReader::new(transcript.take(SEARCHED));
    let mut line = Vec::new();
    while read_line(&mut reader, &mut line)? {
        let Some((message, results)) = Message::parse(&line) else { continue };
        let known = best.iter_mut().flat_map(|(_, messages)| messages).chain(&mut recent);
        known.for_each(|message| message.calls.retain(|call| !results.contains(call)));
        let wanted = entries.iter().position(|entry| entry.uuid == message.uuid);
        recent.push_back(message);
        if recent.len() > MAX_RECENT {
            recent.pop_front();
        }
        if let Some(index) = wanted.filter(|index| best.as_ref().is_none_or(|(best, _)| index < best)) {
            best = Some((index, recent.clone()));
        }
    }
    let messages = best.map(|(_, messages)| messages).unwrap_or_default();
    let complete = messages.into_iter().rev().find(|message| message.calls.is_empty());
    Ok(complete.map(|message| TranscriptEntry { id: entries[0].id.clone(), uuid: message.uuid }))
}

/// Reads the next line, or nothing of it if it is too long.
pub(super) fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let read = reader.take(MAX_MESSAGE_BYTES).read_until(b'\n', line)?;
    if line.last() != Some(&b'\n') && read as u64 == MAX_MESSAGE_BYTES {
        line.clear();
        reader.skip_until(b'\n')?;
    }
    Ok(read > 0)
}

/// A message in a transcript.
#[derive(Debug, Clone)]
struct Message {
    uuid: String,
    /// Its calls without a result.
    calls: Vec<String>,
}

impl Message {
    /// Parses a line. Also returns the ids of the calls whose results it contains.
    fn parse(line: &[u8]) -> Option<(Self, Vec<String>)> {
        let line: Value = serde_json::from_slice(line).ok()?;
        let is_message = matches!(line["type"].as_str(), Some("user" | "assistant"));
        if !is_message || line["isSidechain"] == true {
            return None;
        }
        let blocks = line["message"]["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        let ids = |kind: &str, id: &str| {
            let blocks = blocks.iter().filter(|block| block["type"] == kind);
            blocks.filter_map(|block| block[id].as_str()).map(str::to_owned).collect()
        };
        let message = Self { uuid: line["uuid"].as_str()?.to_owned(), calls: ids("tool_use", "id") };
        Some((message, ids("tool_result", "tool_use_id")))
    }
}

/// The cost that the last exited process reported.
fn spent(mut transcript: File) -> Result<f64, FileError> {
    let from = transcript.metadata()?.len().saturating_sub(END);
    transcript.seek(SeekFrom::Start(from))?;
    let mut transcript = transcript.take(END);
    // If the read starts inside the file, the first line is incomplete.
    let mut lines = Lines { line: Vec::new(), too_long: from > 0, last: 0.0 };
    let mut piece = vec![0; 64 * 1024];
    loop {
        match transcript.read(&mut piece)? {
            0 => break,
            read => lines.feed(&piece[..read]),
        }
    }
    lines.end();
    Ok(lines.last)
}

/// A line reader for transcripts. It buffers only the current line.
struct Lines {
    line: Vec<u8>,
    too_long: bool,
    last: f64,
}

impl Lines {
    fn feed(&mut self, mut piece: &[u8]) {
        while let Some(end) = piece.iter().position(|&byte| byte == b'\n') {
            self.push(&piece[..end]);
            self.end();
            piece = &piece[end + 1..];
        }
        self.push(piece);
    }

    fn push(&mut self, part: &[u8]) {
        self.too_long |= self.line.len() + part.len() > MAX_LINE_BYTES;
        if self.too_long {
            self.line.clear();
        } else {
            self.line.extend_from_slice(part);
        }
    }

    fn end(&mut self) {
        if !self.too_long
            && self.line.starts_with(COST)
            && let Ok(state) = serde_json::from_slice::<Value>(&self.line)
        {
            self.last = state["totalCostUSD"].as_f64().unwrap_or(self.last);
        }
        self.line.clear();
        self.too_long = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::io::Write as _;

    fn spent_in(content: &[u8], after: u64) -> f64 {
        let mut file = tempfile::tempfile().unwrap();
        file.seek(SeekFrom::Start(after)).unwrap();
        file.write_all(content).unwrap();
        spent(file).unwrap()
    }

    #[test]
    fn the_cost_is_the_one_that_the_last_process_reported() {
        let lines = "{\"type\":\"user\"}\n{\"type\":\"cost-state\",\"totalCostUSD\":0.5}\n{\"type\":\"user\",\"x\":\"cost-state\"}\n\
                     {\"type\":\"cost-state\",\"totalCostUSD\":1.25}\n{\"type\":\"cost-state\",\"totalCo";
        assert_eq!(spent_in(lines.as_bytes(), 0), 1.25);
        assert_eq!(spent_in(b"{\"type\":\"user\"}\n", 0), 0.0);
        assert_eq!(
            spent_in(b"{\"type\":\"cost-state\",\"totalCostUSD\":2.5}", 0),
            2.5,
            "without an end of line"
        );
    }

    #[test]
    fn only_the_end_is_read_and_long_lines_are_skipped() {
        let cost = b"{\"type\":\"cost-state\",\"totalCostUSD\":1.5}\n";
        assert_eq!(spent_in(&[b"\n", &cost[..]].concat(), 3 * END), 1.5);
        assert_eq!(spent_in(cost, 3 * END), 0.0, "the rest of a line without an end");
        let long = [
            &b"{\"type\":\"cost-state\",\"x\":\""[..],
            &vec![b'x'; MAX_LINE_BYTES],
            b"\",\"totalCostUSD\":9}\n",
        ];
        assert_eq!(spent_in(&[&cost[..], &long.concat()].concat(), 0), 1.5);
        let mut early = tempfile::tempfile().unwrap();
        early.write_all(cost).unwrap();
        early.set_len(3 * END).unwrap();
        assert_eq!(spent(early).unwrap(), 0.0, "too far from the end");
    }

    #[test]
    fn a_transcript_is_found_in_any_project() {
        let dir = tempfile::tempdir().unwrap();
        assert!(find(dir.path(), "a").is_none() && find(&dir.path().join("none"), "a").is_none());
        for project in ["one", "two"] {
            std::fs::create_dir(dir.path().join(project)).unwrap();
        }
        std::fs::create_dir(dir.path().join("one/a.jsonl")).unwrap();
        assert!(find(dir.path(), "a").is_none(), "a folder is not a transcript");
        std::fs::write(dir.path().join("two/a.jsonl"), "").unwrap();
        assert!(find(dir.path(), "a").is_some());
    }

    #[test]
    fn a_fork_starts_from_the_best_entry_that_was_not_lost() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("project")).unwrap();
        let write = |id: &str, text: &str| {
            std::fs::write(dir.path().join("project").join(id).with_extension("jsonl"), text).unwrap();
        };
        let entry = |id: &str, uuid: &str| TranscriptEntry { id: id.to_owned(), uuid: uuid.to_owned() };
        let find = |id: &str, entries: &[(&str, &str)]| {
            let entries = entries.iter().map(|(id, uuid)| entry(id, uuid)).collect();
            FindTranscript { projects: dir.path().to_owned(), id: id.to_owned(), entries }.find()
        };
        let said = |uuid: &str| format!("{{\"type\":\"assistant\",\"uuid\":\"{uuid}\"}}\n");
        let calls = |uuid: &str, call: &str| {
            let block = json!([{"type": "tool_use", "id": call}]);
            json!({"type": "assistant", "uuid": uuid, "message": {"content": block}}).to_string() + "\n"
        };
        let result = |uuid: &str, call: &str| {
            let block = json!([{"type": "tool_result", "tool_use_id": call}]);
            json!({"type": "user", "uuid": uuid, "message": {"content": block}}).to_string() + "\n"
        };
        let long = "x".repeat(MAX_MESSAGE_BYTES as usize + 9) + "\n";
        let lines = [
            said("u1"),
            long,
            calls("u2", "c2"),
            calls("u3", "c3"),
            result("r2", "c2"),
            calls("u4", "c4"),
            "{\"type\":\"attachment\",\"uuid\":\"u5\"}\n{\"type\":\"cost-state\",\"totalCostUSD\":2}\n"
                .to_owned(),
        ];
        write("a", &lines.concat());
        write("b", &said("v1"));
        let found =
            |id: &str, uuid: &str, spent_usd| FoundTranscript::Entry { entry: entry(id, uuid), spent_usd };
        assert_eq!(find("c", &[("a", "lost"), ("a", "u2"), ("a", "u1")]), found("a", "u2", 2.0));
        assert_eq!(find("c", &[("a", "u1"), ("a", "u2")]), found("a", "u1", 2.0));
        // Neither `u3` nor `u4` has a result.
        assert_eq!(find("c", &[("a", "u4"), ("a", "u1")]), found("a", "r2", 2.0));
        assert_eq!(find("c", &[("a", "u3"), ("a", "u1")]), found("a", "u2", 2.0));
        assert_eq!(find("c", &[("lost", "w"), ("a", "u5"), ("b", "v1")]), found("b", "v1", 0.0));
        assert_eq!(find("c", &[("a", "lost"), ("b", "v2")]), FoundTranscript::None);
        assert_eq!(find("a", &[("b", "v1")]), FoundTranscript::Own { spent_usd: 2.0 });
    }
}
