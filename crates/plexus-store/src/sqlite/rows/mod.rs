//! The row interface in SQL. It contains no rules; they are in `crate::domain`.

mod approvals;
mod authority;
mod budgets;
mod nodes;
mod sessions;
mod templates;
mod turns;

use rusqlite::{Connection, Params};

use super::audit::Chain;
use crate::rows::Stored;

/// The rows of one SQLite connection, inside the transaction that the caller has opened.
pub(super) struct SqliteRows<'a> {
    connection: &'a Connection,
    chain: &'a mut Chain,
}

impl<'a> SqliteRows<'a> {
    pub(super) fn new(connection: &'a Connection, chain: &'a mut Chain) -> Self {
        Self { connection, chain }
    }

    fn execute(&self, sql: &str, params: impl Params) -> Stored<usize> {
        Ok(self.connection.prepare_cached(sql)?.execute(params)?)
    }

    /// The single value of a statement that always has a row.
    fn value<T: rusqlite::types::FromSql>(&self, sql: &str, params: impl Params) -> Stored<T> {
        Ok(self.connection.prepare_cached(sql)?.query_row(params, |row| row.get(0))?)
    }
}
