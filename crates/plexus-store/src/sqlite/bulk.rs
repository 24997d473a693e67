//! Whole tables of a file, for a migration: reads all rows of one, and adds many rows.

use std::ops::ControlFlow;

use rusqlite::{Connection, OptionalExtension as _};

use crate::migrate::copy::{Bulk, Rows};
use crate::migrate::tables::{Catalog, Counter, SEARCH_INDEX, Table, column_list};
use crate::rows::Stored;
use crate::sql::columns::Param;
use crate::sql::{ColumnRef, EachRow, Row};

/// How many rows one transaction adds: they stay in the write-ahead log until it ends.
const ROWS_PER_TRANSACTION: u64 = 20_000;

impl Bulk for Connection {
    fn catalog(&self) -> Stored<Catalog> {
        let mut columns = self.prepare(
            "SELECT s.name, c.name FROM sqlite_schema s JOIN pragma_table_info(s.name) c WHERE s.type = 'table' \
             AND s.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY s.name, c.cid",
        )?;
        let mut catalog = Catalog::new();
        let mut rows = columns.query([])?;
        while let Some(row) = rows.next()? {
            let table: String = row.get(0)?;
            // The search index has tables of its own.
            if !table.starts_with(SEARCH_INDEX) {
                catalog.entry(table).or_default().push(row.get(1)?);
            }
        }
        Ok(catalog)
    }

    fn each_row(&self, sql: &str, each: &mut EachRow<'_>) -> Stored<()> {
        let mut statement = self.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            if each(&Row(row))? == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    fn fill(&self, table: &str, columns: &[String], rows: &mut Rows<'_>) -> Stored<u64> {
        let values = (1..=columns.len()).map(|i| format!("?{i}")).collect::<Vec<_>>().join(", ");
        let sql = format!("INSERT INTO \"{table}\" ({}) VALUES ({values})", column_list(columns));
        let mut insert = self.prepare(&sql)?;
        let mut added = 0_u64;
        self.execute_batch("BEGIN IMMEDIATE")?;
        rows(&mut |row| {
            for i in 0..columns.len() {
                let value: Param<'_> = row.0.column(ColumnRef::Index(i))?.into();
                insert.raw_bind_parameter(i + 1, value)?;
            }
            added += insert.raw_execute()? as u64;
            if added.is_multiple_of(ROWS_PER_TRANSACTION) {
                self.execute_batch("COMMIT; BEGIN IMMEDIATE")?;
            }
            Ok(())
        })?;
        self.execute_batch("COMMIT")?;
        Ok(added)
    }

    fn last_number(&self, table: &Table) -> Stored<u64> {
        let remembered: Option<u64> = self
            .query_row("SELECT seq FROM sqlite_sequence WHERE name = ?1", [table.name], |row| row.get(0))
            .optional()?;
        let largest = match table.counter {
            Counter::Sequence(column) => format!("SELECT max(\"{column}\") FROM \"{}\"", table.name),
            Counter::Head(_) | Counter::None => return Ok(remembered.unwrap_or(0)),
        };
        let largest: Option<u64> = self.query_row(&largest, [], |row| row.get(0))?;
        Ok(remembered.max(largest).unwrap_or(0))
    }

    fn set_last_number(&self, table: &Table, number: u64) -> Stored<()> {
        // Only a table with AUTOINCREMENT remembers it.
        let creates: String =
            self.query_row("SELECT sql FROM sqlite_schema WHERE name = ?1", [table.name], |row| row.get(0))?;
        if number == 0 || !creates.contains("AUTOINCREMENT") {
            return Ok(());
        }
        let set = "UPDATE sqlite_sequence SET seq = ?2 WHERE name = ?1";
        if Connection::execute(self, set, (table.name, number))? == 0 {
            let add = "INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)";
            Connection::execute(self, add, (table.name, number))?;
        }
        Ok(())
    }
}
