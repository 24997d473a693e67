//! Whole tables of PostgreSQL, for a migration: reads all rows of one, and adds many rows with COPY.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::pin::{Pin, pin};

use bytes::Bytes;
use futures::{SinkExt as _, StreamExt as _};
use tokio_postgres::CopyInSink;

use super::super::columns::{Encoded, PgRow};
use super::super::text;
use super::PgConnection;
use crate::StoreError;
use crate::migrate::copy::{Bulk, Rows, number};
use crate::migrate::tables::{Catalog, Counter, Table, column_list};
use crate::rows::Stored;
use crate::sql::columns::Column;
use crate::sql::{ColumnRef, Database, EachRow, Row};

/// How many bytes are sent at once.
const CHUNK_BYTES: usize = 64 * 1024;
/// How many rows one COPY adds: the server remembers all of them until it has checked their foreign keys.
const ROWS_PER_COPY: u64 = 50_000;

const CATALOG: &str = "SELECT c.relname::TEXT, a.attname::TEXT FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid \
    WHERE c.relnamespace = to_regnamespace('plexus') AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped \
    ORDER BY c.relname, a.attnum";

impl Bulk for PgConnection {
    fn catalog(&self) -> Stored<Catalog> {
        let mut catalog = Catalog::new();
        let database: &dyn Database = self;
        for (table, column) in database.all(CATALOG, (), |row| Ok((row.get::<String>(0)?, row.get(1)?)))? {
            catalog.entry(table).or_default().push(column);
        }
        Ok(catalog)
    }

    fn each_row(&self, sql: &str, each: &mut EachRow<'_>) -> Stored<()> {
        let rows = self.wait(self.client.query_raw(sql, Vec::<Encoded>::new()))?;
        let mut rows = pin!(rows);
        while let Some(row) = self.wait(async { rows.next().await.transpose() })? {
            if each(&Row(&PgRow(row)))? == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    fn fill(&self, table: &str, columns: &[String], rows: &mut Rows<'_>) -> Stored<u64> {
        let sql = format!("COPY \"{table}\" ({}) FROM STDIN", column_list(columns));
        let mut copy = Copy { connection: self, sql, sink: None, chunk: String::new(), sent: 0, stored: 0 };
        rows(&mut |row| copy.add(row, columns.len()))?;
        copy.finish()?;
        Ok(copy.stored)
    }

    fn last_number(&self, table: &Table) -> Stored<u64> {
        match table.counter {
            Counter::Head(head) => number(self, &format!("SELECT number FROM \"{head}\"")),
            // A sequence that was never used has a last value, too.
            Counter::Sequence(column) => number(
                self,
                &format!(
                    "SELECT pg_sequence_last_value(pg_get_serial_sequence('plexus.{}', '{column}')::REGCLASS)",
                    table.name
                ),
            ),
            Counter::None => Ok(0),
        }
    }

    fn set_last_number(&self, table: &Table, number: u64) -> Stored<()> {
        if number == 0 {
            return Ok(());
        }
        match table.counter {
            Counter::Head(head) => {
                self.batch(&format!("DELETE FROM \"{head}\"; INSERT INTO \"{head}\" VALUES ({number})"))
            }
            Counter::Sequence(column) => self.batch(&format!(
                "SELECT setval(pg_get_serial_sequence('plexus.{}', '{column}'), {number})",
                table.name
            )),
            Counter::None => Ok(()),
        }
    }
}

/// A COPY of many rows, in the text format of PostgreSQL.
struct Copy<'a> {
    connection: &'a PgConnection,
    sql: String,
    sink: Option<Pin<Box<CopyInSink<Bytes>>>>,
    /// Rows that are not sent yet.
    chunk: String,
    /// How many rows the current COPY has.
    sent: u64,
    stored: u64,
}

impl Copy<'_> {
    fn add(&mut self, row: &Row<'_>, columns: usize) -> Stored<()> {
        for i in 0..columns {
            if i > 0 {
                self.chunk.push('\t');
            }
            write_value(&mut self.chunk, &row.0.column(ColumnRef::Index(i))?);
        }
        self.chunk.push('\n');
        self.sent += 1;
        match self.sent == ROWS_PER_COPY {
            true => self.finish(),
            false if self.chunk.len() >= CHUNK_BYTES => self.send(),
            false => Ok(()),
        }
    }

    fn send(&mut self) -> Stored<()> {
        let connection = self.connection;
        let sink = match &mut self.sink {
            Some(sink) => sink,
            none => none.insert(Box::pin(connection.wait(connection.client.copy_in(&self.sql))?)),
        };
        let chunk = Bytes::from(std::mem::take(&mut self.chunk));
        connection.wait(sink.send(chunk))
    }

    fn finish(&mut self) -> Stored<()> {
        if self.sent > 0 {
            self.send()?;
        }
        if let Some(mut sink) = self.sink.take() {
            let stored = self.connection.wait(sink.as_mut().finish())?;
            if stored != self.sent {
                return Err(StoreError::Unusable(format!(
                    "PostgreSQL stored {stored} of {} rows",
                    self.sent
                )));
            }
            self.stored += stored;
        }
        self.sent = 0;
        Ok(())
    }
}

/// Appends a value in the text format of COPY.
fn write_value(out: &mut String, value: &Column<'_>) {
    // Writing to a string cannot fail.
    let _ = match value {
        Column::Null => out.write_str("\\N"),
        Column::Int(value) => write!(out, "{value}"),
        // As many digits as are needed to read the same number.
        Column::Real(value) => write!(out, "{value:?}"),
        Column::Text(text) => {
            let encoded = text::encode(text);
            let mut rest = &*encoded;
            while let Some(at) = rest.find(['\\', '\t', '\n', '\r']) {
                let (plain, special) = rest.split_at(at);
                out.push_str(plain);
                out.push_str(match special.as_bytes().first() {
                    Some(b'\t') => "\\t",
                    Some(b'\n') => "\\n",
                    Some(b'\r') => "\\r",
                    _ => "\\\\",
                });
                rest = special.get(1..).unwrap_or_default();
            }
            out.write_str(rest)
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_escaped() {
        let written = |value: Column<'_>| {
            let mut out = String::new();
            write_value(&mut out, &value);
            out
        };
        assert_eq!(written(Column::Null), "\\N");
        assert_eq!(written(Column::Int(-7)), "-7");
        assert_eq!(written(Column::Real(0.1)), "0.1");
        assert_eq!(written(Column::Text("\\N a\tb\nc\rd\\.".into())), "\\\\N a\\tb\\nc\\rd\\\\.");
        assert_eq!(written(Column::Text("\0ü".into())), "\u{1}0ü");
    }
}
