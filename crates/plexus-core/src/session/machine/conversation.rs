//! The conversation tree of the session. Messages, decisions about calls and the outcomes of turns become its nodes.

use std::sync::Arc;

use plexus_claude::{Assistant, Block, User};
use plexus_protocol::arbor::Role;
use plexus_protocol::{Event, NodeId, Object};
use plexus_store::{Change, NodeRow, TurnStatus};
use serde_json::{Value, json};

use super::Machine;
use super::lines::Batch;
use crate::attachments::{Attachment, Attachments};

/// The size at which a message continues in another node. An extended node is rewritten as a whole.
const NODE_BYTES: u64 = 256 * 1024;

/// The assistant message being received.
#[derive(Debug)]
pub(super) struct Message {
    id: String,
    node: NodeId,
    bytes: u64,
}

impl Machine {
    /// Adds an assistant message: one node, unless it is very long. Claude Code sends the blocks of a message one by one.
    pub(super) fn add_assistant_message(&mut self, message: &Assistant, batch: &mut Batch) {
        let content: Vec<Value> = message.blocks.iter().map(block_value).collect();
        if let (Some(id), Some(Message { id: current, node, bytes })) =
            (&message.message_id, &mut self.message)
            && id == current
            && *bytes < NODE_BYTES
        {
            *bytes += batch.line_bytes();
            extend(*node, content, message.uuid.clone(), &mut batch.changes);
            return;
        }
        let node =
            self.add_node(Role::Assistant, Value::Array(content), message.uuid.clone(), &mut batch.changes);
        let bytes = batch.line_bytes();
        self.message = message.message_id.clone().map(|id| Message { id, node, bytes });
    }

    /// Adds results of tools, each with the decision about its call.
    pub(super) fn add_results(&mut self, blocks: &[Block], batch: &mut Batch) {
        let content = blocks.iter().map(|block| {
            let mut value = block_value(block);
            if let Block::ToolResult { tool_use_id, .. } = block
                && let Some(decision) = self.decision_of(tool_use_id)
            {
                value["decision"] = decision;
            }
            value
        });
        let content = Value::Array(content.collect());
        self.message = None;
        self.add_node(Role::User, content, None, &mut batch.changes);
    }

    /// Adds a prompt and its files. The node stores the bytes of the files; they are kept in memory until the child has read them.
    pub(super) fn add_prompt(
        &mut self,
        text: &str,
        attachments: &Attachments,
        changes: &mut Vec<Change>,
    ) -> NodeId {
        let mut content = vec![json!({"type": "text", "text": text})];
        content.extend(attachments.iter().map(Attachment::block));
        let node = self.add_node(Role::User, Value::Array(content), None, changes);
        if !attachments.is_empty() {
            self.unread_files.insert(node, Attachments::clone(attachments));
        }
        node
    }

    /// Adds the summary with which Claude Code has replaced the conversation so far. A fork resumes at its entry of the transcript:
    /// Claude Code no longer finds the entries before it.
    pub(super) fn add_summary(&mut self, user: &User, details: &Object, batch: &mut Batch) {
        let texts = user.blocks.iter().filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            _ => None,
        });
        let summary = texts.collect::<Vec<_>>().join("\n");
        let content = json!([{"type": "compaction", "summary": summary, "details": details}]);
        self.message = None;
        self.add_node(Role::User, content, user.uuid.clone(), &mut batch.changes);
    }

    /// Adds the outcome of the running turn.
    pub(super) fn add_outcome(&mut self, status: TurnStatus, last: &mut Event, changes: &mut Vec<Change>) {
        let mut outcome = serde_json::to_value(&*last).unwrap_or_default();
        if let Some(outcome) = outcome.as_object_mut() {
            outcome.retain(|name, _| !matches!(name.as_str(), "type" | "new_head" | "stderr"));
            outcome.insert("status".to_owned(), json!(status));
        }
        self.add_node(Role::Outcome, outcome, None, changes);
        if let Event::Complete { new_head, .. } = last {
            *new_head = self.head();
        }
    }

    fn add_node(
        &mut self,
        role: Role,
        content: Value,
        uuid: Option<String>,
        changes: &mut Vec<Change>,
    ) -> NodeId {
        let (id, turn) = (NodeId::random(), self.event_turn());
        let node = NodeRow { id, tree: self.row.tree, parent: self.row.head, role, content, turn, uuid };
        self.row.head = id;
        changes.push(Change::AddNode(self.row.id, Arc::new(node)));
        id
    }
}

/// Extends a message with one change per batch: each change rewrites the message.
fn extend(node: NodeId, content: Vec<Value>, uuid: Option<String>, changes: &mut Vec<Change>) {
    for change in changes.iter_mut().rev() {
        match change {
            Change::ExtendNode { node: extended, blocks, uuid: last } if *extended == node => {
                blocks.extend(content);
                *last = uuid.or(last.take());
                return;
            }
            Change::AddNode(_, added) if added.id == node => {
                let added = Arc::make_mut(added);
                added.uuid = uuid.or(added.uuid.take());
                if let Some(blocks) = added.content.as_array_mut() {
                    blocks.extend(content);
                }
                return;
            }
            _ => {}
        }
    }
    changes.push(Change::ExtendNode { node, blocks: content, uuid });
}

fn block_value(block: &Block) -> Value {
    match block {
        Block::Text { text } => json!({"type": "text", "text": text}),
        Block::Thinking { text } => json!({"type": "thinking", "thinking": text}),
        Block::ToolUse { id, name, input } => {
            json!({"type": "tool_use", "id": id, "name": name, "input": input})
        }
        Block::ToolResult { tool_use_id, content, is_error } => {
            json!({"type": "tool_result", "tool_use_id": tool_use_id, "content": content, "is_error": is_error})
        }
        Block::Other { kind, data } => json!({"type": kind, "data": data}),
    }
}
