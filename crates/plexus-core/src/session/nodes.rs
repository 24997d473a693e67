//! The conversation: what was said becomes nodes of the session's tree.

use plexus_claude::Block;
use plexus_protocol::NodeId;
use plexus_store::{Change, NodeRow};
use serde_json::{Value, json};

use super::owner::Owner;
use super::reading::Batch;

/// A message that has grown to this goes on in another node: what is added to a node is written with all of it.
const NODE_BYTES: u64 = 256 * 1024;

/// The assistant message being received.
#[derive(Debug)]
pub(super) struct Message {
    id: String,
    node: NodeId,
    bytes: u64,
}

impl Owner {
    /// One node per message, unless it is very long. Claude Code sends a message's blocks one by one under one id.
    pub(super) fn add_message(
        &mut self,
        id: Option<String>,
        role: &'static str,
        blocks: &[Block],
        batch: &mut Batch,
    ) {
        let content: Vec<Value> = blocks.iter().map(block_value).collect();
        if let (Some(id), Some(Message { id: current, node, bytes })) = (&id, &mut self.message)
            && id == current
            && *bytes < NODE_BYTES
        {
            *bytes += batch.line_bytes;
            // What the same batch adds to a message is one change: each one rewrites the message.
            let added = batch.changes.iter_mut().rev().find_map(|change| match change {
                Change::ExtendNode(extended, blocks) if extended == node => Some(blocks),
                Change::AddNode(_, added) if added.id == *node => added.content.as_array_mut(),
                _ => None,
            });
            match added {
                Some(blocks) => blocks.extend(content),
                None => batch.changes.push(Change::ExtendNode(*node, content)),
            }
            return;
        }
        let node = self.add_node(role, Value::Array(content), &mut batch.changes);
        self.message = id.map(|id| Message { id, node, bytes: batch.line_bytes });
    }

    /// Adds a message to the conversation.
    pub(super) fn add_node(
        &mut self,
        role: &'static str,
        content: Value,
        changes: &mut Vec<Change>,
    ) -> NodeId {
        let id = NodeId::random();
        let node = NodeRow { id, tree: self.row.tree, parent: self.row.head, role, content };
        self.row.head = id;
        changes.push(Change::AddNode(self.row.id, Box::new(node)));
        id
    }
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
