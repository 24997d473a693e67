//! The store in SQL, for every database that speaks it: `statements` has the SQL, `reads`, `arbor_reads`, `authority_reads`,
//! `history_reads` and `audit` read, and `rows` is the row interface inside a transaction. A [`Database`] executes the statements.
//! The domain rules are in `crate::domain`.

mod arbor_reads;
pub(crate) mod audit;
mod authority_reads;
pub(crate) mod columns;
mod database;
mod history_reads;
mod known;
mod readers;
mod reads;
mod row_readers;
mod rows;
mod search_index;
mod source;
pub(crate) mod statements;
mod store;
mod timing;
mod writer;

pub(crate) use database::{
    ColumnRef, Columns, CommitError, Database, Dialect, EachRow, HostStatements, Params, Row,
};
pub(crate) use known::Known;
pub(crate) use rows::SqlRows;
pub(crate) use search_index::{BATCH as INDEX_BATCH, Coverage, add_batch, each_searchable};
pub(crate) use source::{Connection, Source};
pub use store::SqlStore;

use crate::StoreError;

fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".to_owned())
}

pub(crate) fn panicked() -> StoreError {
    StoreError::Unavailable("internal error in the store; see the log".to_owned())
}
