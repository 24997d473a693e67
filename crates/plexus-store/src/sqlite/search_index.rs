//! The search index of conversation nodes. It follows the nodes: a commit adds none to it, because that costs more than storing the node.
//! The writing thread adds them when it has nothing else to do, and before a search. Nodes are added in the order of their ordinals, so the
//! largest ordinal in the index tells which nodes are missing.

use rusqlite::{Connection, Result};
use serde_json::Value;

use super::arbor_reads::put_long_texts_back;
use super::columns::Json;
use super::reads::{all, one};
use super::sql;
use crate::node_text::searchable;

/// How many nodes one transaction adds: commits wait for it.
const BATCH: usize = 64;

/// Whether the index contains all nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coverage {
    Complete,
    Partial,
}

/// Adds the next nodes, in a transaction of its own.
pub(super) fn add_batch(connection: &Connection) -> Result<Coverage> {
    let missing = all(connection, sql::UNINDEXED_NODES, [BATCH], |row| {
        Ok((row.get::<_, u64>(0)?, row.get::<_, Json<Value>>(1)?.0, row.get::<_, bool>(2)?))
    })?;
    if missing.is_empty() {
        return Ok(Coverage::Complete);
    }
    let coverage = if missing.len() < BATCH { Coverage::Complete } else { Coverage::Partial };
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
