//! Copies all rows from one database to the other, a row at a time, so that the memory it needs does not depend on their number.

use std::ops::ControlFlow;

use super::Observer;
use super::tables::{Catalog, Counter, Replaced, TABLES, Table, check, select};
use crate::StoreError;
use crate::rows::Stored;
use crate::sql::{EachRow, Row};

/// How many rows are copied between two reports of the progress.
const REPORT_EVERY: u64 = 1024;

/// A database with access to whole tables.
pub(crate) trait Bulk {
    /// Its tables and their columns.
    fn catalog(&self) -> Stored<Catalog>;

    /// Passes each row of a query to `each`.
    fn each_row(&self, sql: &str, each: &mut EachRow<'_>) -> Stored<()>;

    /// Adds the rows that `rows` passes to a table. Returns how many the table got.
    fn fill(&self, table: &str, columns: &[String], rows: &mut Rows<'_>) -> Stored<u64>;

    /// The last number that was given to a row of a table, as far as the database remembers it.
    fn last_number(&self, table: &Table) -> Stored<u64>;

    /// Continues with the numbers of a table after this one.
    fn set_last_number(&self, table: &Table, number: u64) -> Stored<()>;
}

/// Passes rows to a function.
pub(crate) type Rows<'a> = dyn FnMut(&mut Add<'_>) -> Stored<()> + 'a;
/// Adds a row.
pub(crate) type Add<'a> = dyn FnMut(&Row<'_>) -> Stored<()> + 'a;

/// The progress of a migration.
pub(crate) struct Progress<'a> {
    observer: &'a mut dyn Observer,
    done: u64,
    total: u64,
}

impl<'a> Progress<'a> {
    /// The rows of `source` have to be copied, and its nodes added to the search index.
    pub(crate) fn new(observer: &'a mut dyn Observer, source: &dyn Bulk) -> Stored<Self> {
        let mut total = 0;
        for name in TABLES.iter().map(|table| table.name).chain(["nodes"]) {
            total += number(source, &format!("SELECT count(*) FROM \"{name}\""))?;
        }
        observer.progress(0, total);
        Ok(Self { observer, done: 0, total })
    }

    pub(crate) fn add(&mut self, rows: u64) {
        let reports = |done: u64| done / REPORT_EVERY;
        let before = self.done;
        self.done += rows;
        if reports(before) != reports(self.done) || self.done == self.total {
            self.observer.progress(self.done, self.total);
        }
    }
}

/// The only value of a query.
pub(crate) fn number(database: &dyn Bulk, sql: &str) -> Stored<u64> {
    let mut found = 0;
    database.each_row(sql, &mut |row| {
        found = row.get::<Option<u64>>(0)?.unwrap_or(0);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

/// Checks that nothing of the databases would be forgotten.
pub(crate) fn check_schemas(sqlite: &dyn Bulk, postgres: &dyn Bulk) -> Stored<()> {
    check(&sqlite.catalog()?, &postgres.catalog()?).map_err(StoreError::Unusable)
}

/// Copies all rows of all tables. Returns their number.
pub(crate) fn copy_tables(
    source: &dyn Bulk,
    target: &dyn Bulk,
    replaced: &Replaced<'_>,
    progress: &mut Progress<'_>,
) -> Stored<u64> {
    let catalog = target.catalog()?;
    let mut all = 0;
    for table in TABLES {
        let columns = catalog.get(table.name).map_or(&[][..], Vec::as_slice);
        let query = select(table.name, columns, replaced);
        let mut sent = 0_u64;
        let stored = target.fill(table.name, columns, &mut |add| {
            source.each_row(&query, &mut |row| {
                add(row)?;
                sent += 1;
                progress.add(1);
                Ok(ControlFlow::Continue(()))
            })
        })?;
        check_count(table.name, sent, stored)?;
        if table.counter != Counter::None {
            target.set_last_number(table, source.last_number(table)?)?;
        }
        all += stored;
    }
    Ok(all)
}

pub(crate) fn check_count(table: &str, sent: u64, stored: u64) -> Stored<()> {
    match sent == stored {
        true => Ok(()),
        false => {
            let why = format!("table `{table}` got {stored} of {sent} rows");
            Err(StoreError::Unusable(why))
        }
    }
}
