//! What the store needs of a database: executing a statement, and the values of its rows.

use std::borrow::Cow;
use std::ops::ControlFlow;

use super::columns::{Column, FromColumn, ToColumn};
use super::known::Known;
use crate::rows::Stored;
use crate::{Committed, StoreError};

/// A connection to a database. A statement has numbered parameters (`?1`) and is prepared once per connection.
pub(crate) trait Database {
    /// Executes a statement. Returns the number of rows that it changed.
    fn execute(&self, sql: &'static str, params: &[&dyn ToColumn]) -> Stored<usize>;

    /// Passes each row of a query to `each`, until `each` breaks.
    fn query(&self, sql: &'static str, params: &[&dyn ToColumn], each: &mut EachRow<'_>) -> Stored<()>;

    /// Begins a transaction that writes. No other transaction writes until it has ended.
    fn begin(&self) -> Stored<()>;

    /// Replaces what others may have changed before the transaction began.
    fn update_known(&self, _known: &mut Known) {}

    /// Commits the transaction.
    fn commit(&self) -> Result<(), CommitError>;

    /// Records what the transaction has changed for other hubs that share the database.
    fn log(&self, _committed: &mut dyn Iterator<Item = &Committed>) -> Stored<()> {
        Ok(())
    }

    /// Executes a statement whose result nobody needs. A database may do so later, but in the order of the statements, and before COMMIT. A
    /// failure is returned by this call, by a later one, or by [`Database::wait_for_queued`].
    fn queue(&self, sql: &'static str, params: &[&dyn ToColumn]) -> Stored<()> {
        self.execute(sql, params).map(drop)
    }

    /// Waits until all queued statements are executed.
    fn wait_for_queued(&self) -> Stored<()> {
        Ok(())
    }

    /// Whether a transaction is open. A database may have ended it by itself after a failure.
    fn is_in_transaction(&self) -> bool;

    /// Whether the connection can be used again.
    fn is_usable(&self) -> bool {
        true
    }

    /// What the hash of a long text begins with. Equal texts are stored once per scope.
    fn content_scope(&self) -> &str {
        ""
    }

    /// The statements that each database writes in its own way.
    fn dialect(&self) -> &'static Dialect;
}

/// Why a transaction was not committed.
pub(crate) enum CommitError {
    /// Nothing was written.
    NotCommitted(StoreError),
    /// The connection failed before the answer. The [`Source`](super::Source) can find out whether the transaction with this id was committed.
    Unknown(String, StoreError),
}

impl CommitError {
    fn into_inner(self) -> StoreError {
        match self {
            Self::NotCommitted(error) | Self::Unknown(_, error) => error,
        }
    }
}

/// Receives a row.
pub(crate) type EachRow<'a> = dyn FnMut(&Row<'_>) -> Stored<ControlFlow<()>> + 'a;

/// The statements that each database writes in its own way.
pub(crate) struct Dialect {
    /// Begins a transaction that only reads: all its statements see the same state.
    pub(crate) begin_snapshot: &'static str,
    /// The number and the hash of the last audit entry.
    pub(crate) audit_head: &'static str,
    /// The ordinal of the next tree.
    pub(crate) next_tree: &'static str,
    /// How many events turn `?2` of session `?1` has.
    pub(crate) event_count: &'static str,
    /// The identity of session `?1`, and the number of the next event of its turn `?2`.
    pub(crate) end_of_turn: &'static str,
    /// The identity of session `?1`, whether it is archived, whether an approval of run `?2`, call `?3` and turn `?4` holds its key, and the number of the
    /// next event of the turn.
    pub(crate) before_approval: &'static str,
    /// Approval `?1`, the verdict of its call, and the number of the next event of its turn.
    pub(crate) approval_and_call: &'static str,
    /// How many audit entries were written, including those that someone has removed.
    pub(crate) written_audit_entries: &'static str,
    /// The nodes that contain words: `?1` the words, `?2` the tree or null, `?3` the node before which they are, `?4` how many.
    pub(crate) search: &'static str,
    /// The words as [`Dialect::search`] expects them.
    pub(crate) search_words: fn(&str) -> String,
    /// The first nodes that the search index does not contain.
    pub(crate) unindexed_nodes: &'static str,
    /// Has a row if the search index contains node `?1`.
    pub(crate) is_indexed: &'static str,
    /// A text as [`Dialect::add_to_index`] expects it.
    pub(crate) indexed_text: fn(String) -> String,
    /// Adds node `?1` with text `?2` to the search index.
    pub(crate) add_to_index: &'static str,
    /// The statements for hosts, if hubs can share the database.
    pub(crate) hosts: Option<HostStatements>,
}

/// The statements for host `?1`.
pub(crate) struct HostStatements {
    /// Its state.
    pub(crate) state: &'static str,
    /// Sets its state to `?2`.
    pub(crate) set_state: &'static str,
    /// Raises its epoch.
    pub(crate) fence: &'static str,
    /// Its sessions that are not deleted, oldest first.
    pub(crate) sessions: &'static str,
    /// The run with token hash `?2` that has not ended. A hub accepts only the agents of its own host.
    pub(crate) run_of_token: &'static str,
    /// Its pending approvals, oldest first.
    pub(crate) pending_approvals: &'static str,
    /// How many slots it has and how many are in use; no row if it has no limit.
    pub(crate) slots: &'static str,
    /// For each host, how many sessions and pending approvals it has, and the oldest of these.
    pub(crate) tallies: &'static str,
}

/// A row of a result.
pub(crate) struct Row<'a>(pub(crate) &'a dyn Columns);

/// The columns of one row.
pub(crate) trait Columns {
    /// The value in a column.
    fn column(&self, column: ColumnRef<'_>) -> Stored<Column<'_>>;
}

/// A column, by its position or its name.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ColumnRef<'a> {
    Index(usize),
    Named(&'a str),
}

impl ColumnRef<'_> {
    /// The error for a value that Plexus cannot have written.
    pub(crate) fn unreadable(self, why: &str) -> StoreError {
        let column = match self {
            Self::Index(position) => format!("column {position}"),
            Self::Named(name) => format!("column {name}"),
        };
        StoreError::Unusable(format!("the database contains a row that cannot be read: {column}: {why}"))
    }
}

impl From<usize> for ColumnRef<'_> {
    fn from(position: usize) -> Self {
        Self::Index(position)
    }
}

impl<'a> From<&'a str> for ColumnRef<'a> {
    fn from(name: &'a str) -> Self {
        Self::Named(name)
    }
}

impl Row<'_> {
    /// The value in a column.
    pub(crate) fn get<'p, T: FromColumn>(&self, column: impl Into<ColumnRef<'p>>) -> Stored<T> {
        let column = column.into();
        let value = self.0.column(column)?;
        T::from_column(value).map_err(|why| column.unreadable(&why.to_string()))
    }

    /// The text in a column, without a copy.
    pub(crate) fn text<'p>(&self, column: impl Into<ColumnRef<'p>>) -> Stored<Cow<'_, str>> {
        let column = column.into();
        match self.0.column(column)? {
            Column::Text(text) => Ok(text),
            other => Err(column.unreadable(&format!("{other:?} is not a text"))),
        }
    }
}

/// Parameters of a statement: nothing, an array, or a tuple.
pub(crate) trait Params {
    fn with<T>(&self, bind: impl FnOnce(&[&dyn ToColumn]) -> T) -> T;
}

impl Params for () {
    fn with<T>(&self, bind: impl FnOnce(&[&dyn ToColumn]) -> T) -> T {
        bind(&[])
    }
}

impl<P: ToColumn, const N: usize> Params for [P; N] {
    fn with<T>(&self, bind: impl FnOnce(&[&dyn ToColumn]) -> T) -> T {
        bind(&self.each_ref().map(|param| param as &dyn ToColumn))
    }
}

macro_rules! tuples {
    ($(($($name:ident)+))+) => {$(
        impl<$($name: ToColumn),+> Params for ($($name,)+) {
            #[expect(non_snake_case, reason = "a variable for each type")]
            fn with<T>(&self, bind: impl FnOnce(&[&dyn ToColumn]) -> T) -> T {
                let ($($name,)+) = self;
                bind(&[$($name),+])
            }
        }
    )+};
}

tuples! {
    (A B)
    (A B C)
    (A B C D)
    (A B C D E)
    (A B C D E F)
    (A B C D E F G)
    (A B C D E F G H)
    (A B C D E F G H I)
    (A B C D E F G H I J)
    (A B C D E F G H I J K L M N)
}

impl dyn Database + '_ {
    /// Executes a statement. Returns the number of rows that it changed.
    pub(crate) fn run(&self, sql: &'static str, params: impl Params) -> Stored<usize> {
        params.with(|params| self.execute(sql, params))
    }

    /// Passes each row to `each`, until `each` breaks.
    pub(crate) fn each(
        &self,
        sql: &'static str,
        params: impl Params,
        mut each: impl FnMut(&Row<'_>) -> Stored<ControlFlow<()>>,
    ) -> Stored<()> {
        params.with(|params| self.query(sql, params, &mut each))
    }

    /// The first row, if there is one.
    pub(crate) fn one<T>(
        &self,
        sql: &'static str,
        params: impl Params,
        mut map: impl FnMut(&Row<'_>) -> Stored<T>,
    ) -> Stored<Option<T>> {
        let mut found = None;
        self.each(sql, params, |row| {
            found = Some(map(row)?);
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    /// The first row of a statement that always has one.
    pub(crate) fn only<T>(
        &self,
        sql: &'static str,
        params: impl Params,
        map: impl FnMut(&Row<'_>) -> Stored<T>,
    ) -> Stored<T> {
        let found = self.one(sql, params, map)?;
        found.ok_or_else(|| StoreError::Unavailable(format!("the database has no row for: {sql}")))
    }

    /// The single value of a statement that always has a row.
    pub(crate) fn value<T: FromColumn>(&self, sql: &'static str, params: impl Params) -> Stored<T> {
        self.only(sql, params, |row| row.get(0))
    }

    /// All rows. If hubs share the database, those that can be read: see [`Self::readable`].
    pub(crate) fn all<T>(
        &self,
        sql: &'static str,
        params: impl Params,
        mut map: impl FnMut(&Row<'_>) -> Stored<T>,
    ) -> Stored<Vec<T>> {
        let mut found = Vec::new();
        self.each(sql, params, |row| {
            found.extend(self.readable(map(row))?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }

    /// Leaves out a row that cannot be read, if hubs share the database: one host must not keep the others from reading all other rows.
    pub(crate) fn readable<T>(&self, row: Stored<T>) -> Stored<Option<T>> {
        match row {
            Err(StoreError::Unusable(why)) if self.dialect().hosts.is_some() => {
                tracing::error!(why, "a row is left out");
                Ok(None)
            }
            row => row.map(Some),
        }
    }

    /// Begins a transaction that only reads. Its statements see the same state, until the returned value is dropped.
    pub(crate) fn snapshot(&self) -> Stored<Transaction<'_>> {
        self.run(self.dialect().begin_snapshot, ())?;
        Ok(Transaction(self))
    }

    /// Begins a transaction that writes. It is rolled back if the returned value is dropped.
    pub(crate) fn transaction(&self) -> Stored<Transaction<'_>> {
        self.begin()?;
        Ok(Transaction(self))
    }
}

/// A transaction. It is rolled back if it is dropped.
pub(crate) struct Transaction<'a>(&'a (dyn Database + 'a));

impl Transaction<'_> {
    pub(crate) fn commit(self) -> Stored<()> {
        self.0.commit().map_err(CommitError::into_inner)
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if self.0.is_in_transaction() {
            // If this fails, the transaction stays open, and the connection is not used again.
            let _ = self.0.run("ROLLBACK", ());
        }
    }
}
