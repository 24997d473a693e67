//! The row interface in SQL. It contains no rules; they are in `crate::domain`.

mod approvals;
mod authority;
mod budgets;
mod hosts;
mod nodes;
mod sessions;
mod templates;
mod turns;

use super::Database;
use super::columns::FromColumn;
use super::database::Params;
use super::known::Known;
use crate::rows::Stored;

/// The rows of a database, inside the transaction that the caller has opened.
pub(crate) struct SqlRows<'a> {
    database: &'a dyn Database,
    known: &'a mut Known,
}

impl<'a> SqlRows<'a> {
    pub(crate) fn new(database: &'a dyn Database, known: &'a mut Known) -> Self {
        Self { database, known }
    }

    /// Executes a statement whose result is not needed.
    fn write(&self, sql: &'static str, params: impl Params) -> Stored<()> {
        params.with(|params| self.database.queue(sql, params))
    }

    fn execute(&self, sql: &'static str, params: impl Params) -> Stored<usize> {
        self.database.run(sql, params)
    }

    /// The single value of a statement that always has a row.
    fn value<T: FromColumn>(&self, sql: &'static str, params: impl Params) -> Stored<T> {
        self.database.value(sql, params)
    }
}
