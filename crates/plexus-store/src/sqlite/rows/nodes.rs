//! Conversation trees in SQL. A node names its parent and an ancestor further up (`jump`), as in a skew-binary list, so that
//! the node at a given depth of any path is found in logarithmically many steps. A long text is stored once, under its hash.

use std::borrow::Cow;

use plexus_protocol::{NodeId, TreeId, UnixSeconds};
use rusqlite::Row;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::super::arbor_reads::put_long_texts_back;
use super::super::columns::{Json, Text, Word};
use super::super::{reads, search_index, sql};
use super::SqliteRows;
use crate::StoreError;
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

impl NodeRows for SqliteRows<'_> {
    fn insert_tree(&mut self, tree: TreeId, root: NodeId, at: UnixSeconds) -> Stored<()> {
        let ordinal: u64 = self.value(sql::NEXT_TREE, [])?;
        self.execute(
            "INSERT INTO trees (id, created_at, ordinal, nodes) VALUES (?1, ?2, ?3, 1)",
            (Text(tree), at, ordinal),
        )?;
        self.execute(
            "INSERT INTO nodes (id, tree, depth, role, preview, content, created_at) \
             VALUES (?1, ?2, 0, 'root', '', 'null', ?3)",
            (Text(root), Text(tree), at),
        )?;
        Ok(())
    }

    fn tree_has_session(&self, tree: TreeId) -> Stored<bool> {
        self.value(sql::TREE_LIVES, [Text(tree)])
    }

    fn insert_node(&mut self, new: &NewNode<'_>) -> Stored<bool> {
        let NewNode { row: node, session, at } = new;
        let found = reads::one(self.connection, sql::NODE_ABOVE, [Text(node.parent)], position)?;
        let Some(parent) = found else { return Ok(false) };
        let jump = self.jump_from(&parent)?;
        let (content, long) = take_long_texts(&node.content, "");
        self.execute(
            "INSERT INTO nodes (id, tree, parent, above, jump, depth, role, session, turn, uuid, preview, content, long, \
             created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
            rusqlite::params![
                Text(node.id),
                Text(node.tree),
                Text(node.parent),
                parent.ordinal,
                jump,
                parent.depth + 1,
                Word(node.role),
                Text(session),
                node.turn,
                node.uuid,
                preview(&node.content),
                Json(&content),
                !long.is_empty(),
                at,
            ],
        )?;
        let ordinal = u64::try_from(self.connection.last_insert_rowid()).unwrap_or_default();
        self.insert_long_texts(ordinal, &long)?;
        self.execute("UPDATE nodes SET children = children + 1 WHERE ordinal = ?1", [parent.ordinal])?;
        self.execute("UPDATE trees SET nodes = nodes + 1 WHERE id = ?1", [Text(node.tree)])?;
        Ok(true)
    }

    fn extend_node(&mut self, id: NodeId, blocks: &[Value], uuid: Option<&str>) -> Stored<bool> {
        let found = reads::one(self.connection, sql::NODE_CONTENT, [Text(id)], |row| {
            Ok((row.get::<_, Json<Value>>(0)?.0, row.get::<_, u64>(1)?))
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
        self.execute(
            "UPDATE nodes SET content = ?2, uuid = coalesce(?3, uuid), long = max(long, ?4) WHERE ordinal = ?1",
            (ordinal, Json(&content), uuid, any_long),
        )?;
        search_index::replace(self.connection, ordinal, || {
            let mut whole = Value::Array(content);
            put_long_texts_back(self.connection, ordinal, &mut whole)?;
            Ok(whole)
        })?;
        Ok(true)
    }

    fn last_nodes(&self, tree: TreeId, limit: u64) -> Stored<Vec<LeafNode>> {
        Ok(reads::all(self.connection, sql::LAST_NODES, (Text(tree), limit), |row| {
            Ok(LeafNode { id: row.get::<_, Text<_>>(0)?.0, parent: row.get::<_, Text<_>>(1)?.0 })
        })?)
    }

    fn delete_node(&mut self, tree: TreeId, node: LeafNode) -> Stored<()> {
        let found = reads::one(self.connection, sql::NODE_ABOVE, [Text(node.id)], position)?;
        let Some(Position { ordinal, .. }) = found else { return Ok(()) };
        self.delete_long_texts(ordinal)?;
        search_index::remove(self.connection, ordinal)?;
        self.execute("DELETE FROM nodes WHERE ordinal = ?1", [ordinal])?;
        self.execute("UPDATE nodes SET children = children - 1 WHERE id = ?1", [Text(node.parent)])?;
        self.execute("UPDATE trees SET nodes = nodes - 1 WHERE id = ?1", [Text(tree)])?;
        Ok(())
    }

    fn move_heads(&mut self, tree: TreeId, from: NodeId, to: NodeId) -> Stored<()> {
        self.execute(
            "UPDATE sessions SET head = ?2 WHERE tree = ?3 AND head = ?1",
            (Text(from), Text(to), Text(tree)),
        )?;
        Ok(())
    }
}

impl SqliteRows<'_> {
    /// Two jumps of the same length are followed by one over both of them; otherwise the next one goes to the parent.
    fn jump_from(&self, parent: &Position) -> Result<u64, StoreError> {
        let find =
            |ordinal: u64| self.connection.prepare_cached(sql::JUMPED_TO)?.query_row([ordinal], position);
        let Some(first) = parent.jump.map(find).transpose()? else { return Ok(parent.ordinal) };
        let Some(second) = first.jump.map(find).transpose()? else { return Ok(parent.ordinal) };
        let same_length = parent.depth - first.depth == first.depth - second.depth;
        Ok(if same_length { second.ordinal } else { parent.ordinal })
    }

    fn insert_long_texts(&self, node: u64, long: &[LongText]) -> Stored<()> {
        for LongText { place, text } in long {
            let hash: String =
                Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
            self.execute(
                "INSERT INTO contents (hash, body, uses) VALUES (?1, ?2, 1) ON CONFLICT DO UPDATE SET uses = uses + 1",
                (&hash, text),
            )?;
            self.execute(
                "INSERT INTO node_contents (node, place, hash) VALUES (?1, ?2, ?3)",
                (node, place, &hash),
            )?;
        }
        Ok(())
    }

    fn delete_long_texts(&self, node: u64) -> Stored<()> {
        let hashes: Vec<String> = reads::all(self.connection, sql::LONG_OF_NODE, [node], |row| row.get(1))?;
        self.execute("DELETE FROM node_contents WHERE node = ?1", [node])?;
        for hash in hashes {
            self.execute("UPDATE contents SET uses = uses - 1 WHERE hash = ?1", [&hash])?;
            self.execute("DELETE FROM contents WHERE hash = ?1 AND uses = 0", [&hash])?;
        }
        Ok(())
    }
}

fn position(row: &Row<'_>) -> rusqlite::Result<Position> {
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
