//! The search index of conversation nodes. It follows the nodes: a commit adds none to it, because that costs more than storing the node.
//! The writing thread adds them when it has nothing else to do, and before a search. Nodes are added in the order of their ordinals, so a
//! database can find those that are missing without comparing all of them.

use std::ops::ControlFlow;

use serde_json::Value;

use super::arbor_reads::put_long_texts_back;
use super::columns::Json;
use super::{Database, Row, statements};
use crate::node_text::searchable;
use crate::rows::Stored;

/// How many nodes one transaction adds: commits wait for it.
pub(crate) const BATCH: usize = 64;

/// The part of the nodes that is in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coverage {
    All,
    /// Those up to this ordinal.
    UpTo(u64),
}

impl Coverage {
    /// Whether the index contains the nodes up to this ordinal.
    pub(crate) fn includes(self, ordinal: u64) -> bool {
        match self {
            Self::All => true,
            Self::UpTo(last) => ordinal <= last,
        }
    }
}

/// The largest ordinal of a node.
pub(crate) fn last_node(database: &dyn Database) -> Stored<u64> {
    database.value(statements::LAST_NODE, ())
}

/// Adds the next nodes, in a transaction of its own.
pub(crate) fn add_batch(database: &dyn Database) -> Stored<Coverage> {
    let transaction = match database.one(database.dialect().unindexed_nodes, [1_u64], |_| Ok(()))? {
        Some(()) => database.transaction()?,
        None => return Ok(Coverage::All),
    };
    // Read in the transaction: another hub may have added them meanwhile.
    let missing = database.all(database.dialect().unindexed_nodes, [BATCH], |row| {
        Ok((row.get::<u64>(0)?, content_of(row), row.get::<bool>(2)?))
    })?;
    let coverage = match missing.last() {
        Some((last, ..)) if missing.len() == BATCH => Coverage::UpTo(*last),
        Some(_) => Coverage::All,
        None => return Ok(Coverage::All),
    };
    for (ordinal, mut content, long) in missing {
        if long {
            put_long_texts_back(database, ordinal, &mut content)?;
        }
        insert(database, ordinal, &content)?;
    }
    transaction.commit()?;
    Ok(coverage)
}

/// The content in the second column. A damaged node is not found, and all others are.
fn content_of(row: &Row<'_>) -> Value {
    row.get::<Json<Value>>(1).map_or(Value::Null, |Json(content)| content)
}

/// Passes the ordinal of each node, and its text for the index, to `each`.
pub(crate) fn each_searchable(
    database: &dyn Database,
    each: &mut dyn FnMut(i64, String) -> Stored<ControlFlow<()>>,
) -> Stored<()> {
    database.each("SELECT ordinal, content, long FROM nodes ORDER BY ordinal", (), |row| {
        let mut content = content_of(row);
        if row.get::<bool>(2)? {
            put_long_texts_back(database, row.get::<u64>(0)?, &mut content)?;
        }
        each(row.get(0)?, searchable(&content))
    })
}

/// Replaces the text of a node whose content has changed, if the node is in the index.
pub(crate) fn replace(
    database: &dyn Database,
    ordinal: u64,
    content: impl FnOnce() -> Stored<Value>,
) -> Stored<()> {
    if database.one(database.dialect().is_indexed, [ordinal], |_| Ok(()))?.is_some() {
        remove(database, ordinal)?;
        insert(database, ordinal, &content()?)?;
    }
    Ok(())
}

/// Removes a node, if it is in the index.
pub(crate) fn remove(database: &dyn Database, ordinal: u64) -> Stored<()> {
    database.run("DELETE FROM node_text WHERE rowid = ?1", [ordinal])?;
    Ok(())
}

fn insert(database: &dyn Database, ordinal: u64, content: &Value) -> Stored<()> {
    let dialect = database.dialect();
    database.run(dialect.add_to_index, (ordinal, (dialect.indexed_text)(searchable(content))))?;
    Ok(())
}
