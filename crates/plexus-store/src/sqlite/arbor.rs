//! Conversation trees: adding to them and removing them. A node names its parent and an ancestor further up (`jump`), as
//! in a skew-binary list: whatever the length of a path, the node at a given depth is found in logarithmically many steps.
//! Long texts are kept once, under their hash, however often they are said.

use plexus_protocol::{NodeId, SessionId, TreeId};
use rusqlite::{OptionalExtension, Row};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::arbor_reads::put_long_back;
use super::changes::Applying;
use super::columns::{Json, Text, Word};
use super::sql;
use crate::{NodeRow, Refusal, StoreError};

/// A text from this length on is kept once.
const LONG: usize = 4 * 1024;
/// How much of a node can be found by searching.
const SEARCHED: usize = 16 * 1024;
/// How much of a node is shown to those who only look.
const PREVIEW: usize = 120;
/// How many nodes one step of a removal takes.
const STEP: u64 = 100;

/// What a new node has to know of one above it.
struct Above {
    ordinal: u64,
    depth: u64,
    jump: Option<u64>,
}

impl Applying<'_> {
    /// Begins a tree.
    pub(super) fn plant(&self, tree: TreeId, root: NodeId) -> Result<(), StoreError> {
        let ordinal: u64 = self.connection.prepare_cached(sql::NEXT_TREE)?.query_row([], |row| row.get(0))?;
        self.execute(
            "INSERT INTO trees (id, created_at, ordinal, nodes) VALUES (?1, ?2, ?3, 1)",
            (Text(tree), self.at, ordinal),
        )?;
        self.execute(
            "INSERT INTO nodes (id, tree, depth, role, preview, content, created_at) \
             VALUES (?1, ?2, 0, 'root', '', 'null', ?3)",
            (Text(root), Text(tree), self.at),
        )?;
        Ok(())
    }

    pub(super) fn add_node(&self, session: SessionId, node: &NodeRow) -> Result<(), StoreError> {
        self.known(session)?;
        let found = self.connection.prepare_cached(sql::NODE_ABOVE)?.query_row([Text(node.parent)], above);
        let parent = found.optional()?.ok_or(Refusal::NoSuchNode(node.parent))?;
        let jump = self.jump_from(&parent)?;
        let (content, long) = apart(node.content.clone(), "");
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
                self.at,
            ],
        )?;
        let ordinal = u64::try_from(self.connection.last_insert_rowid()).unwrap_or_default();
        self.keep_long(ordinal, &long)?;
        self.execute("UPDATE nodes SET children = children + 1 WHERE ordinal = ?1", [parent.ordinal])?;
        self.execute("UPDATE trees SET nodes = nodes + 1 WHERE id = ?1", [Text(node.tree)])?;
        self.index(ordinal, &node.content)?;
        self.execute("UPDATE sessions SET head = ?2 WHERE id = ?1", (Text(session), Text(node.id)))?;
        Ok(())
    }

    pub(super) fn extend_node(
        &self,
        node: NodeId,
        blocks: &[Value],
        uuid: Option<&str>,
    ) -> Result<(), StoreError> {
        let found = self
            .connection
            .prepare_cached("SELECT content, ordinal FROM nodes WHERE id = ?1")?
            .query_row([Text(node)], |row| Ok((row.get::<_, Json<Value>>(0)?.0, row.get::<_, u64>(1)?)))
            .optional()?;
        let (content, ordinal) =
            found.ok_or_else(|| StoreError::Unavailable(format!("there is no node {node} to extend")))?;
        let mut content = match content {
            Value::Array(content) => content,
            Value::Null => Vec::new(),
            single => vec![single],
        };
        let mut any_long = false;
        for block in blocks {
            let (block, long) = apart(block.clone(), &format!("/{}", content.len()));
            any_long |= !long.is_empty();
            self.keep_long(ordinal, &long)?;
            content.push(block);
        }
        self.execute(
            "UPDATE nodes SET content = ?2, uuid = coalesce(?3, uuid), long = max(long, ?4) WHERE ordinal = ?1",
            (ordinal, Json(&content), uuid, any_long),
        )?;
        let mut whole = Value::Array(content);
        put_long_back(self.connection, ordinal, &mut whole)?;
        self.index(ordinal, &whole)
    }

    /// One step of removing all of a tree but its root; nothing is done while a living session speaks in it.
    pub(super) fn remove_tree(&self, tree: TreeId) -> Result<usize, StoreError> {
        let living: bool =
            self.connection.prepare_cached(sql::TREE_LIVES)?.query_row([Text(tree)], |row| row.get(0))?;
        if living {
            return Ok(0);
        }
        let mut statement = self.connection.prepare_cached(sql::LAST_NODES)?;
        let last: Vec<(u64, Text<NodeId>, Text<NodeId>)> = statement
            .query_map((Text(tree), STEP), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<Result<_, _>>()?;
        for (ordinal, node, parent) in &last {
            self.drop_long(*ordinal)?;
            self.execute("DELETE FROM node_text WHERE rowid = ?1", [ordinal])?;
            self.execute(
                "UPDATE sessions SET head = ?2 WHERE tree = ?3 AND head = ?1",
                (node, parent, Text(tree)),
            )?;
            self.execute("DELETE FROM nodes WHERE ordinal = ?1", [ordinal])?;
            self.execute("UPDATE nodes SET children = children - 1 WHERE id = ?1", [parent])?;
        }
        self.execute("UPDATE trees SET nodes = nodes - ?2 WHERE id = ?1", (Text(tree), last.len()))?;
        Ok(last.len())
    }

    /// Two jumps of the same length are followed by one over both of them; else the next goes to the parent.
    fn jump_from(&self, parent: &Above) -> Result<u64, StoreError> {
        let find = |ordinal: u64| self.connection.prepare_cached(sql::JUMPED_TO)?.query_row([ordinal], above);
        let Some(first) = parent.jump.map(find).transpose()? else { return Ok(parent.ordinal) };
        let Some(second) = first.jump.map(find).transpose()? else { return Ok(parent.ordinal) };
        let alike = parent.depth - first.depth == first.depth - second.depth;
        Ok(if alike { second.ordinal } else { parent.ordinal })
    }

    fn keep_long(&self, node: u64, long: &[(String, String)]) -> Result<(), StoreError> {
        for (place, text) in long {
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

    fn drop_long(&self, node: u64) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare_cached(sql::LONG_OF_NODE)?;
        let hashes: Vec<String> = statement.query_map([node], |row| row.get(1))?.collect::<Result<_, _>>()?;
        self.execute("DELETE FROM node_contents WHERE node = ?1", [node])?;
        for hash in hashes {
            self.execute("UPDATE contents SET uses = uses - 1 WHERE hash = ?1", [&hash])?;
            self.execute("DELETE FROM contents WHERE hash = ?1 AND uses = 0", [&hash])?;
        }
        Ok(())
    }

    fn index(&self, ordinal: u64, content: &Value) -> Result<(), StoreError> {
        let mut text = String::new();
        gather(content, SEARCHED, &mut text);
        self.execute("DELETE FROM node_text WHERE rowid = ?1", [ordinal])?;
        self.execute("INSERT INTO node_text (rowid, text) VALUES (?1, ?2)", (ordinal, spaced(&text)))?;
        Ok(())
    }
}

fn above(row: &Row<'_>) -> rusqlite::Result<Above> {
    Ok(Above { ordinal: row.get(0)?, depth: row.get(1)?, jump: row.get(2)? })
}

/// Takes the long texts out of a content; where each belongs (a JSON pointer), and the text.
fn apart(mut content: Value, prefix: &str) -> (Value, Vec<(String, String)>) {
    let mut long = Vec::new();
    let mut left = vec![(prefix.to_owned(), &mut content)];
    while let Some((place, value)) = left.pop() {
        match value {
            Value::String(text) if text.len() >= LONG => long.push((place, std::mem::take(text))),
            Value::Array(values) => {
                left.extend(values.iter_mut().enumerate().map(|(i, value)| (format!("{place}/{i}"), value)));
            }
            Value::Object(fields) => left.extend(fields.iter_mut().map(|(name, value)| {
                (format!("{place}/{}", name.replace('~', "~0").replace('/', "~1")), value)
            })),
            _ => {}
        }
    }
    (content, long)
}

/// What a content says, up to a length: texts, inputs and results, not the names of fields or tools' ids.
fn gather(content: &Value, most: usize, text: &mut String) {
    let mut left = vec![content];
    while let Some(value) = left.pop() {
        match value {
            Value::String(said) => {
                let room = most.saturating_sub(text.len());
                text.push_str(&said[..said.floor_char_boundary(room)]);
                text.push(' ');
            }
            Value::Array(values) => left.extend(values.iter().rev()),
            Value::Object(fields) => {
                let said =
                    fields.iter().filter(|(name, _)| !matches!(name.as_str(), "type" | "id" | "tool_use_id"));
                left.extend(said.map(|(_, value)| value));
            }
            _ => {}
        }
        if text.len() >= most {
            return;
        }
    }
}

/// The beginning of what a content says, in one line.
fn preview(content: &Value) -> String {
    let mut text = String::new();
    gather(content, 4 * PREVIEW, &mut text);
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(PREVIEW).collect()
}

/// Puts every character of scripts that do not part words by spaces between spaces, so that each is a word to be found.
pub(super) fn spaced(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len());
    for character in text.chars() {
        let stands_alone = matches!(character,
            '\u{0E00}'..='\u{0EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}' | '\u{3040}'..='\u{30FF}'
            | '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}');
        if stands_alone {
            spaced.extend([' ', character, ' ']);
        } else {
            spaced.push(character);
        }
    }
    spaced
}
