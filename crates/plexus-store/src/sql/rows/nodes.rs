//! Conversation trees in SQL. A node names its parent and an ancestor further up (`jump`), as in a skew-binary list, so that
//! the node at a given depth of any path is found in logarithmically many steps. A long text is stored once, under its hash.

use std::borrow::Cow;

use plexus_protocol::{NodeId, TreeId, UnixSeconds};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::super::arbor_reads::put_long_texts_back;
use super::super::columns::{Json, Text, Word};
use super::super::{Row, search_index, statements};
use super::SqlRows;
use crate::node_text::{as_blocks, preview};
use crate::rows::{LeafNode, NewNode, NodeRows, Stored};

/// A text of this length or more is stored once.
const LONG: usize = 4 * 1024;

/// The position of a node, as far as a new node below it depends on it.
struct Position {
    ordinal: u64,
    depth: u64,
    jump: Option<u64>,
}

/// A long text, and where in the content of its node it belongs: a JSON pointer.
struct LongText {
    place: String,
    text: String,
}

impl NodeRows for SqlRows<'_> {
    fn insert_tree(&mut self, tree: TreeId, root: NodeId, at: UnixSeconds) -> Stored<()> {
        let ordinal: u64 = self.value(self.database.dialect().next_tree, ())?;
        self.write(
            "INSERT INTO trees (id, created_at, ordinal, nodes) VALUES (?1, ?2, ?3, 1)",
            (Text(tree), at, ordinal),
        )?;
        self.write(
            "INSERT INTO nodes (id, tree, depth, role, preview, content, created_at) \
             VALUES (?1, ?2, 0, 'root', '', 'null', ?3)",
            (Text(root), Text(tree), at),
        )
    }

    fn tree_has_session(&self, tree: TreeId) -> Stored<bool> {
        self.value(statements::TREE_LIVES, [Text(tree)])
    }

    fn insert_node(&mut self, new: &NewNode<'_>) -> Stored<bool> {
        let NewNode { row: node, session, at } = new;
        let found = self.database.one(statements::NODE_ABOVE, [Text(node.parent)], position)?;
        let Some(parent) = found else { return Ok(false) };
        let jump = self.jump_from(&parent)?;
        let (content, long) = take_long_texts(&node.content, "");
        let ordinal: u64 = self.value(
            "INSERT INTO nodes (id, tree, parent, above, jump, depth, role, session, turn, uuid, preview, content, long, \
             created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) RETURNING ordinal",
            (
                Text(node.id),
                Text(node.tree),
                Text(node.parent),
                parent.ordinal,
                jump,
                parent.depth + 1,
                Word(node.role),
                Text(session),
                node.turn,
                &node.uuid,
                preview(&node.content),
                Json(&content),
                !long.is_empty(),
                at,
            ),
        )?;
        self.insert_long_texts(ordinal, &long)?;
        self.write("UPDATE nodes SET children = children + 1 WHERE ordinal = ?1", [parent.ordinal])?;
        self.write("UPDATE trees SET nodes = nodes + 1 WHERE id = ?1", [Text(node.tree)])?;
        Ok(true)
    }

    fn extend_node(&mut self, id: NodeId, blocks: &[Value], uuid: Option<&str>) -> Stored<bool> {
        let found = self.database.one(statements::NODE_CONTENT, [Text(id)], |row| {
            Ok((row.get::<Json<Value>>(0)?.0, row.get::<u64>(1)?))
        })?;
        let Some((content, ordinal)) = found else { return Ok(false) };
        let mut content = as_blocks(content);
        let mut any_long = false;
        for block in blocks {
            let (block, long) = take_long_texts(block, &format!("/{}", content.len()));
            any_long |= !long.is_empty();
            self.insert_long_texts(ordinal, &long)?;
            content.push(block.into_owned());
        }
        self.write(
            "UPDATE nodes SET content = ?2, uuid = coalesce(?3, uuid), long = (long OR ?4) WHERE ordinal = ?1",
            (ordinal, Json(&content), uuid, any_long),
        )?;
        search_index::replace(self.database, ordinal, || {
            let mut whole = Value::Array(content);
            put_long_texts_back(self.database, ordinal, &mut whole)?;
            Ok(whole)
        })?;
        Ok(true)
    }

    fn last_nodes(&self, tree: TreeId, limit: u64) -> Stored<Vec<LeafNode>> {
        self.database.all(statements::LAST_NODES, (Text(tree), limit), |row| {
            Ok(LeafNode { id: row.get::<Text<_>>(0)?.0, parent: row.get::<Text<_>>(1)?.0 })
        })
    }

    fn delete_node(&mut self, tree: TreeId, node: LeafNode) -> Stored<()> {
        let found = self.database.one(statements::NODE_ABOVE, [Text(node.id)], position)?;
        let Some(Position { ordinal, .. }) = found else { return Ok(()) };
        self.delete_long_texts(ordinal)?;
        search_index::remove(self.database, ordinal)?;
        self.write("DELETE FROM nodes WHERE ordinal = ?1", [ordinal])?;
        self.write("UPDATE nodes SET children = children - 1 WHERE id = ?1", [Text(node.parent)])?;
        self.write("UPDATE trees SET nodes = nodes - 1 WHERE id = ?1", [Text(tree)])
    }

    fn move_heads(&mut self, tree: TreeId, from: NodeId, to: NodeId) -> Stored<()> {
        self.write(
            "UPDATE sessions SET head = ?2 WHERE tree = ?3 AND head = ?1",
            (Text(from), Text(to), Text(tree)),
        )
    }
}

impl SqlRows<'_> {
    /// Two jumps of the same length are followed by one over both of them; otherwise the next one goes to the parent.
    fn jump_from(&self, parent: &Position) -> Stored<u64> {
        let find = |ordinal: u64| self.database.only(statements::JUMPED_TO, [ordinal], position);
        let Some(first) = parent.jump.map(find).transpose()? else { return Ok(parent.ordinal) };
        let Some(second) = first.jump.map(find).transpose()? else { return Ok(parent.ordinal) };
        let same_length = parent.depth - first.depth == first.depth - second.depth;
        Ok(if same_length { second.ordinal } else { parent.ordinal })
    }

    fn insert_long_texts(&self, node: u64, long: &[LongText]) -> Stored<()> {
        for LongText { place, text } in long {
            let digest = Sha256::digest(text.as_bytes());
            let mut hash = self.database.content_scope().to_owned();
            hash.extend(digest.iter().map(|byte| format!("{byte:02x}")));
            self.write(
                "INSERT INTO contents (hash, body, uses) VALUES (?1, ?2, 1) ON CONFLICT (hash) DO UPDATE SET uses = contents.uses + 1",
                (&hash, text),
            )?;
            self.write(
                "INSERT INTO node_contents (node, place, hash) VALUES (?1, ?2, ?3)",
                (node, place, &hash),
            )?;
        }
        Ok(())
    }

    fn delete_long_texts(&self, node: u64) -> Stored<()> {
        let hashes: Vec<String> = self.database.all(statements::LONG_OF_NODE, [node], |row| row.get(1))?;
        self.write("DELETE FROM node_contents WHERE node = ?1", [node])?;
        for hash in hashes {
            self.write("UPDATE contents SET uses = uses - 1 WHERE hash = ?1", [&hash])?;
            self.write("DELETE FROM contents WHERE hash = ?1 AND uses = 0", [&hash])?;
        }
        Ok(())
    }
}

fn position(row: &Row<'_>) -> Stored<Position> {
    Ok(Position { ordinal: row.get(0)?, depth: row.get(1)?, jump: row.get(2)? })
}

/// The content without its long texts, and those texts.
fn take_long_texts<'a>(content: &'a Value, prefix: &str) -> (Cow<'a, Value>, Vec<LongText>) {
    let mut long = Vec::new();
    if !has_long_text(content) {
        return (Cow::Borrowed(content), long);
    }
    let mut content = content.clone();
    let mut left = vec![(prefix.to_owned(), &mut content)];
    while let Some((place, value)) = left.pop() {
        match value {
            Value::String(text) if text.len() >= LONG => {
                long.push(LongText { place, text: std::mem::take(text) });
            }
            Value::Array(values) => {
                left.extend(values.iter_mut().enumerate().map(|(i, value)| (format!("{place}/{i}"), value)));
            }
            Value::Object(fields) => left.extend(fields.iter_mut().map(|(name, value)| {
                (format!("{place}/{}", name.replace('~', "~0").replace('/', "~1")), value)
            })),
            _ => {}
        }
    }
    (Cow::Owned(content), long)
}

fn has_long_text(content: &Value) -> bool {
    let mut left = vec![content];
    while let Some(value) = left.pop() {
        match value {
            Value::String(text) if text.len() >= LONG => return true,
            Value::Array(values) => left.extend(values),
            Value::Object(fields) => left.extend(fields.values()),
            _ => {}
        }
    }
    false
}
