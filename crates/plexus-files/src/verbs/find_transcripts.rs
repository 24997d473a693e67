//! Finds Claude Code's transcripts, and the cost of each conversation in them. It reads only the end of a transcript,
//! and only lines that can contain a cost, because an agent can write a transcript of any size.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
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
const MAX_PROJECTS: usize = 100_000;
/// The start of a line that contains the cost of a conversation. A process writes one when it exits.
const COST: &[u8] = br#"{"type":"cost-state""#;

/// Finds the transcripts of conversations.
#[derive(Debug, Serialize, Deserialize)]
pub struct FindTranscripts {
    /// The directory `projects` of Claude Code.
    pub projects: PathBuf,
    /// The ids of the conversations.
    pub ids: Vec<String>,
}

/// An existing transcript.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Transcript {
    /// The cost of the conversation when its last process exited, in dollars; 0 if the transcript does not contain it.
    pub spent_usd: f64,
}

impl From<FindTranscripts> for Request {
    fn from(verb: FindTranscripts) -> Self {
        Self::FindTranscripts(verb)
    }
}

impl Verb for FindTranscripts {
    /// The transcript of each id, if it exists.
    type Answer = Vec<Option<Transcript>>;

    const KIND: Kind = Kind::Read;
    const MAX_BODY: u64 = 0;

    fn perform(self, _input: Input) -> (Self::Answer, Output) {
        let find = |id: &String| {
            let transcript = find(&self.projects, &format!("{id}.jsonl"))?;
            Some(Transcript { spent_usd: spent(transcript).unwrap_or(0.0) })
        };
        (self.ids.iter().map(find).collect(), Output::default())
    }
}

fn find(projects: &Path, name: &str) -> Option<File> {
    let projects = projects.read_dir().ok()?.flatten().take(MAX_PROJECTS);
    projects.map(|project| project.path().join(name)).find_map(|path| open_regular(&path).ok())
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
        assert!(find(dir.path(), "a.jsonl").is_none() && find(&dir.path().join("none"), "a.jsonl").is_none());
        for project in ["one", "two"] {
            std::fs::create_dir(dir.path().join(project)).unwrap();
        }
        std::fs::create_dir(dir.path().join("one/a.jsonl")).unwrap();
        assert!(find(dir.path(), "a.jsonl").is_none(), "a folder is not a transcript");
        std::fs::write(dir.path().join("two/a.jsonl"), "").unwrap();
        assert!(find(dir.path(), "a.jsonl").is_some());
    }
}
