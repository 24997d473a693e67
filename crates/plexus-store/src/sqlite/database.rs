//! SQLite as a [`Database`], and its dialect.

use std::ops::ControlFlow;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Statement};

use crate::node_text::spaced;
use crate::rows::Stored;
use crate::sql::columns::{Column, Param, ToColumn};
use crate::sql::statements::{self, nodes};
use crate::sql::{ColumnRef, Columns, CommitError, Database, Dialect, EachRow, Row};

pub(crate) const DIALECT: Dialect = Dialect {
    begin_snapshot: "BEGIN",
    audit_head: statements::AUDIT_HEAD,
    next_tree: statements::NEXT_TREE,
    event_count: statements::EVENT_COUNT,
    end_of_turn: statements::END_OF_TURN,
    before_approval: statements::BEFORE_APPROVAL,
    approval_and_call: statements::APPROVAL_AND_CALL,
    written_audit_entries: "SELECT seq FROM sqlite_sequence WHERE name = 'audit'",
    search: SEARCH,
    search_words: phrases,
    unindexed_nodes: UNINDEXED_NODES,
    is_indexed: "SELECT 1 FROM node_text_docsize WHERE id = ?1",
    indexed_text: |text| text,
    add_to_index: "INSERT INTO node_text (rowid, text) VALUES (?1, ?2)",
    hosts: None,
};

const SEARCH: &str = nodes!(
    "JOIN node_text f ON f.rowid = n.ordinal WHERE f.text MATCH ?1 AND (?2 IS NULL OR n.tree = ?2) \
     AND f.rowid < coalesce((SELECT ordinal FROM nodes WHERE id = ?3), 9223372036854775807) \
     ORDER BY f.rowid DESC LIMIT ?4"
);

const UNINDEXED_NODES: &str = "SELECT ordinal, content, long FROM nodes \
    WHERE ordinal > (SELECT coalesce(max(id), 0) FROM node_text_docsize) ORDER BY ordinal LIMIT ?1";

/// Each word as a phrase of FTS5.
fn phrases(words: &str) -> String {
    let phrase = |word: &str| format!("\"{}\"", spaced(word).trim().replace('"', "\"\""));
    words.split_whitespace().map(phrase).collect::<Vec<_>>().join(" ")
}

impl Database for Connection {
    fn execute(&self, sql: &'static str, params: &[&dyn ToColumn]) -> Stored<usize> {
        let mut statement = self.prepare_cached(sql)?;
        bind(&mut statement, params)?;
        Ok(statement.raw_execute()?)
    }

    fn query(&self, sql: &'static str, params: &[&dyn ToColumn], each: &mut EachRow<'_>) -> Stored<()> {
        let mut statement = self.prepare_cached(sql)?;
        bind(&mut statement, params)?;
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            if each(&Row(row))? == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    fn begin(&self) -> Stored<()> {
        Database::execute(self, "BEGIN IMMEDIATE", &[]).map(drop)
    }

    fn commit(&self) -> Result<(), CommitError> {
        Database::execute(self, "COMMIT", &[]).map(drop).map_err(CommitError::NotCommitted)
    }

    fn is_in_transaction(&self) -> bool {
        !self.is_autocommit()
    }

    fn dialect(&self) -> &'static Dialect {
        &DIALECT
    }
}

fn bind(statement: &mut Statement<'_>, params: &[&dyn ToColumn]) -> Stored<()> {
    if params.len() != statement.parameter_count() {
        return Err(rusqlite::Error::InvalidParameterCount(params.len(), statement.parameter_count()).into());
    }
    for (i, param) in params.iter().enumerate() {
        statement.raw_bind_parameter(i + 1, param.to_column()?)?;
    }
    Ok(())
}

impl rusqlite::ToSql for Param<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = match self {
            Self::Null => ValueRef::Null,
            Self::Bool(value) => ValueRef::Integer(i64::from(*value)),
            Self::Int(value) => ValueRef::Integer(*value),
            Self::Real(value) => ValueRef::Real(*value),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
        };
        Ok(ToSqlOutput::Borrowed(value))
    }
}

impl Columns for rusqlite::Row<'_> {
    fn column(&self, column: ColumnRef<'_>) -> Stored<Column<'_>> {
        let value = match column {
            ColumnRef::Index(position) => self.get_ref(position)?,
            ColumnRef::Named(name) => self.get_ref(name)?,
        };
        match value {
            ValueRef::Null => Ok(Column::Null),
            ValueRef::Integer(value) => Ok(Column::Int(value)),
            ValueRef::Real(value) => Ok(Column::Real(value)),
            ValueRef::Text(text) => match str::from_utf8(text) {
                Ok(text) => Ok(Column::Text(text.into())),
                Err(error) => Err(column.unreadable(&error.to_string())),
            },
            ValueRef::Blob(_) => Err(column.unreadable("it is a blob")),
        }
    }
}
