//! The search index of conversation nodes. It follows the nodes: a commit adds none to it, because that costs more than storing the node.
//! The writing thread adds them when it has nothing else to do, and before a search. Nodes are added in the order of their ordinals, so the
//! largest ordinal in the index shows which nodes are missing.

use rusqlite::{Connection, Result};
use serde_json::Value;

use super::arbor_reads::put_long_texts_back;
use super::columns::Json;
use super::reads::{all, one};
use super::sql;
use crate::node_text::searchable;

/// How many nodes one transaction adds: commits wait for it.
const BATCH: usize = 64;

/// The part of the nodes that is in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coverage {
    All,
    /// Those up to this ordinal.
    UpTo(u64),
}

impl Coverage {
    /// Whether the index contains the nodes up to this ordinal.
    pub(super) fn includes(self, ordinal: u64) -> bool {
        match self {
            Self::All => true,
            Self::UpTo(last) => ordinal <= last,
        }
    }
}

/// The largest ordinal of a node.
pub(super) fn last_node(connection: &Connection) -> Result<u64> {
    connection.prepare_cached(sql::LAST_NODE)?.query_row([], |row| row.get(0))
}

/// Adds the next nodes, in a transaction of its own.
pub(super) fn add_batch(connection: &Connection) -> Result<Coverage> {
    let missing = all(connection, sql::UNINDEXED_NODES, [BATCH], |row| {
        // A damaged node is not found, and all others are.
        let content = row.get::<_, Json<Value>>(1).map_or(Value::Null, |Json(content)| content);
        Ok((row.get::<_, u64>(0)?, content, row.get::<_, bool>(2)?))
    })?;
    let coverage = match missing.last() {
        Some((last, ..)) if missing.len() == BATCH => Coverage::UpTo(*last),
        Some(_) => Coverage::All,
        None => return Ok(Coverage::All),
    };
    let transaction = connection.unchecked_transaction()?;
    for (ordinal, mut content, long) in missing {
        if long {
            put_long_texts_back(connection, ordinal, &mut content)?;
        }
        insert(connection, ordinal, &content)?;
    }
    transaction.commit()?;
    Ok(coverage)
}

/// Replaces the text of a node whose content has changed, if the node is in the index.
pub(super) fn replace(
    connection: &Connection,
    ordinal: u64,
    content: impl FnOnce() -> Result<Value>,
) -> Result<()> {
    if one(connection, sql::IS_INDEXED, [ordinal], |_| Ok(()))?.is_some() {
        remove(connection, ordinal)?;
        insert(connection, ordinal, &content()?)?;
    }
    Ok(())
}

/// Removes a node, if it is in the index.
pub(super) fn remove(connection: &Connection, ordinal: u64) -> Result<()> {
    connection.prepare_cached("DELETE FROM node_text WHERE rowid = ?1")?.execute([ordinal])?;
    Ok(())
}

fn insert(connection: &Connection, ordinal: u64, content: &Value) -> Result<()> {
    connection
        .prepare_cached("INSERT INTO node_text (rowid, text) VALUES (?1, ?2)")?
        .execute((ordinal, searchable(content)))?;
    Ok(())
}
