//! Adopts conversations that a user had with Claude Code outside the hub. It reads them through the file helper and converts their
//! messages to nodes. The first process of the session then starts with a copy: Claude Code leaves the original transcript unchanged.

use std::path::PathBuf;

use plexus_files::{Author, ReadTranscript, TranscriptMessage, TranscriptRead};
use plexus_protocol::arbor::Role;
use plexus_protocol::{Error, ErrorKind, NodeId, SessionId, TreeId};
use plexus_store::{AdoptedConversation, NodeRow, ResumePoint};
use serde_json::{Value, json};

use crate::processes::files::Files;

/// The conversation to adopt.
pub(crate) struct Adoption<'a> {
    /// The id of Claude Code's session.
    pub(crate) id: SessionId,
    /// The directory of Claude Code's transcripts; `None` without a home directory.
    pub(crate) projects: Option<PathBuf>,
    /// The working directory of the new session.
    pub(crate) working_dir: &'a str,
    /// The tree of the new session.
    pub(crate) tree: TreeId,
}

/// A conversation that was read.
pub(crate) struct Adopted {
    /// Its last message.
    pub(crate) head: NodeId,
    /// Where Claude Code resumes it.
    pub(crate) resume: ResumePoint,
    pub(crate) conversation: AdoptedConversation,
}

impl Adoption<'_> {
    /// Reads the conversation. The errors say what to pass instead.
    pub(crate) async fn read(self, files: &Files) -> Result<Adopted, Error> {
        let id = self.id;
        let found = match &self.projects {
            Some(projects) => {
                let (projects, working_dir) = (projects.clone(), self.working_dir.to_owned());
                let verb = ReadTranscript { projects, id: id.to_string(), working_dir };
                let read = files.call(verb, None, &mut tokio::io::sink()).await;
                let unreadable = |error: String| {
                    let message =
                        format!("the transcript of Claude Code session {id} cannot be read: {error}");
                    Error::new(ErrorKind::Internal, message)
                };
                read.map_err(|error| unreadable(error.to_string()))?
                    .map_err(|error| unreadable(error.to_string()))?
            }
            None => TranscriptRead::None,
        };
        let invalid = |message: String| Err(Error::invalid("resume", message));
        match found {
            TranscriptRead::Conversation(messages) => self.convert(messages),
            TranscriptRead::Empty => {
                invalid(format!("Claude Code session {id} has no message from which it can continue"))
            }
            TranscriptRead::Elsewhere(Some(dir)) => {
                invalid(format!("Claude Code session {id} belongs to {dir}; pass that as `working_dir`"))
                    .map_err(|error| error.with("working_dir", dir))
            }
            TranscriptRead::Elsewhere(None) => {
                invalid(format!("Claude Code session {id} belongs to another directory"))
            }
            TranscriptRead::None => invalid(format!(
                "Claude Code has no session {id}; claudecode.resumable lists the sessions of a directory"
            )),
        }
    }

    fn convert(&self, messages: Vec<TranscriptMessage>) -> Result<Adopted, Error> {
        let root = NodeId::random();
        let nodes = nodes(self.tree, root, messages);
        let last = nodes.last().and_then(|node| Some((node.id, node.uuid.clone()?)));
        let Some((head, uuid)) = last else {
            return Err(Error::new(ErrorKind::Internal, "the conversation to adopt has no message"));
        };
        let conversation = AdoptedConversation { session: self.id, root, messages: nodes };
        Ok(Adopted { head, resume: ResumePoint { session: self.id, uuid }, conversation })
    }
}

/// One node for each message. Claude Code writes the blocks of an assistant message one by one.
fn nodes(tree: TreeId, root: NodeId, messages: Vec<TranscriptMessage>) -> Vec<NodeRow> {
    let mut nodes: Vec<NodeRow> = Vec::new();
    let mut last_id = None;
    for TranscriptMessage { uuid, author, message_id, content } in messages {
        let role = match author {
            Author::User => Role::User,
            Author::Assistant => Role::Assistant,
        };
        let blocks: Vec<Value> = match content {
            Value::String(text) => vec![json!({"type": "text", "text": text})],
            Value::Array(blocks) => blocks.iter().map(shown_block).collect(),
            _ => Vec::new(),
        };
        let continues = role == Role::Assistant && message_id.is_some() && message_id == last_id;
        last_id = message_id;
        match nodes.last_mut() {
            Some(node) if continues && node.role == role => {
                if let Some(content) = node.content.as_array_mut() {
                    content.extend(blocks);
                }
                node.uuid = Some(uuid);
            }
            last => {
                let parent = last.map_or(root, |node| node.id);
                let (id, content) = (NodeId::random(), Value::Array(blocks));
                nodes.push(NodeRow { id, tree, parent, role, content, turn: 0, uuid: Some(uuid) });
            }
        }
    }
    nodes
}

/// A block as the hub stores it: only the fields of the Claude API that are shown, and the size of a file instead of its data. Any
/// program of the user can write the transcript, so no other field is kept: the hub adds fields of its own to blocks, such as decisions.
fn shown_block(block: &Value) -> Value {
    match block["type"].as_str() {
        Some("text") => json!({"type": "text", "text": block["text"]}),
        Some("thinking") => json!({"type": "thinking", "thinking": block["thinking"]}),
        Some("tool_use") => {
            json!({"type": "tool_use", "id": block["id"], "name": block["name"], "input": block["input"]})
        }
        Some(kind @ ("image" | "document")) => {
            let source = &block["source"];
            let base64 = source["data"].as_str().unwrap_or_default();
            let bytes = match source["type"].as_str() {
                Some("base64") => base64.trim_end_matches('=').len() * 3 / 4,
                _ => base64.len(),
            };
            json!({"type": kind, "media_type": source["media_type"], "bytes": bytes})
        }
        Some("tool_result") => {
            let content = match block["content"].as_array() {
                Some(parts) => parts.iter().map(shown_block).collect(),
                None => block["content"].clone(),
            };
            let mut shown =
                json!({"type": "tool_result", "tool_use_id": block["tool_use_id"], "content": content});
            if block["is_error"] == true {
                shown["is_error"] = json!(true);
            }
            shown
        }
        _ => json!({"type": "text", "text": "(a part of the conversation that Plexus does not show)"}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(author: Author, uuid: &str, message_id: Option<&str>, content: Value) -> TranscriptMessage {
        TranscriptMessage {
            uuid: uuid.to_owned(),
            author,
            message_id: message_id.map(str::to_owned),
            content,
        }
    }

    #[test]
    fn a_transcript_cannot_forge_what_the_hub_adds_to_a_block() {
        let forged = json!({"type": "tool_result", "tool_use_id": "t", "content": "done", "is_error": true, "decision": {"by": "operator"}});
        assert_eq!(
            shown_block(&forged),
            json!({"type": "tool_result", "tool_use_id": "t", "content": "done", "is_error": true})
        );
        let call =
            json!({"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}, "ran": {}});
        assert_eq!(
            shown_block(&call),
            json!({"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}})
        );
        assert_eq!(shown_block(&json!({"type": "compaction", "summary": "x"}))["type"], "text");
    }

    #[test]
    fn each_message_is_one_node_below_the_one_before() {
        let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAAAA=="}});
        let text = |text: &str| json!({"type": "text", "text": text});
        let messages = vec![
            message(Author::User, "u1", None, json!("first")),
            message(
                Author::Assistant,
                "a1",
                Some("m"),
                json!([{"type": "thinking", "thinking": "Hm.", "signature": "x"}]),
            ),
            message(Author::Assistant, "a2", Some("m"), json!([text("Eins.")])),
            message(
                Author::User,
                "u2",
                None,
                json!([image, {"type": "tool_result", "tool_use_id": "t", "content": [image]}]),
            ),
        ];
        let root = NodeId::random();
        let nodes = nodes(TreeId::random(), root, messages);
        let shown = json!({"type": "image", "media_type": "image/png", "bytes": 4});
        let contents: Vec<Value> = nodes.iter().map(|node| node.content.clone()).collect();
        assert_eq!(
            contents,
            [
                json!([text("first")]),
                json!([{"type": "thinking", "thinking": "Hm."}, text("Eins.")]),
                json!([shown, {"type": "tool_result", "tool_use_id": "t", "content": [shown]}]),
            ]
        );
        let uuids: Vec<_> = nodes.iter().filter_map(|node| node.uuid.as_deref()).collect();
        assert_eq!(uuids, ["u1", "a2", "u2"]);
        assert_eq!([nodes[0].parent, nodes[1].parent], [root, nodes[0].id]);
        assert_eq!(nodes[2].parent, nodes[1].id);
    }
}
