//! The tables that a migration copies, and what the two databases have beside them. The columns are read from both databases, which must agree: a
//! table or a column that only one of them has is an error, unless it is named here.

use std::collections::BTreeMap;

/// The columns of each table of a database, in their order.
pub(crate) type Catalog = BTreeMap<String, Vec<String>>;

/// A table of both databases.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) counter: Counter,
}

/// Where PostgreSQL keeps the last number that it has given to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counter {
    /// No number is given by the database.
    None,
    /// In the sequence of this column.
    Sequence(&'static str),
    /// In the only row of this table.
    Head(&'static str),
}

const fn table(name: &'static str, counter: Counter) -> Table {
    Table { name, counter }
}

/// The tables, each after those that its foreign keys refer to.
pub(crate) const TABLES: &[Table] = &[
    table("trees", Counter::None),
    table("nodes", Counter::Sequence("ordinal")),
    table("contents", Counter::None),
    table("node_contents", Counter::None),
    table("sessions", Counter::Sequence("ordinal")),
    table("runs", Counter::None),
    table("turns", Counter::None),
    table("events", Counter::None),
    table("approvals", Counter::None),
    table("asked_before", Counter::None),
    table("calls", Counter::Sequence("ordinal")),
    table("permit_streams", Counter::None),
    table("positions", Counter::None),
    table("budgets", Counter::None),
    table("budget_waits", Counter::None),
    table("rules", Counter::Sequence("number")),
    table("tokens", Counter::Sequence("number")),
    table("templates", Counter::None),
    table("feed", Counter::Head("feed_head")),
    table("audit", Counter::Head("audit_head")),
];

/// The search index, which the target creates from the nodes.
pub(crate) const SEARCH_INDEX: &str = "node_text";

/// The tables of PostgreSQL that are not copied: what concerns the hubs that share it, counters, and the search index.
const ONLY_POSTGRES: &[&str] = &[
    "schema_version",
    "writer",
    "hosts",
    "host_roles",
    "host_ancestors",
    "leases",
    "commits",
    "presence",
    "commands",
    "feed_head",
    "audit_head",
    SEARCH_INDEX,
];

/// A column that has no equal in the other database.
pub(crate) struct OwnColumn {
    pub(crate) table: &'static str,
    pub(crate) column: &'static str,
}

/// Whether the search index contains the node. SQLite finds that out in another way.
pub(crate) const INDEXED: OwnColumn = OwnColumn { table: "nodes", column: "indexed" };
/// The host whose role has written an audit entry. Only a database that hosts share has roles.
pub(crate) const AUDIT_HOST: OwnColumn = OwnColumn { table: "audit", column: "host" };
/// The columns that SQLite does not have.
const ONLY_POSTGRES_COLUMNS: &[OwnColumn] = &[INDEXED, AUDIT_HOST];
/// The host of a session, which is NULL in SQLite.
pub(crate) const HOST: OwnColumn = OwnColumn { table: "sessions", column: "host" };

/// The expression that replaces a column.
pub(crate) type Replaced<'a> = [(&'a OwnColumn, String)];

/// A query for all rows of a table, with these columns.
pub(crate) fn select(table: &str, columns: &[String], replaced: &Replaced<'_>) -> String {
    let expression = |column: &String| {
        let replaced = replaced.iter().find(|(own, _)| own.table == table && own.column == column);
        replaced.map_or_else(|| format!("\"{column}\""), |(_, expression)| expression.clone())
    };
    let expressions: Vec<String> = columns.iter().map(expression).collect();
    format!("SELECT {} FROM \"{table}\"", expressions.join(", "))
}

/// The columns of a table, as SQL writes them.
pub(crate) fn column_list(columns: &[String]) -> String {
    columns.iter().map(|column| format!("\"{column}\"")).collect::<Vec<_>>().join(", ")
}

/// Checks that the databases have the same tables and columns, except those that are named here. Otherwise something would be lost.
pub(crate) fn check(sqlite: &Catalog, postgres: &Catalog) -> Result<(), String> {
    let known: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
    let unknown =
        |table: &&String, more: &[&str]| !known.contains(&table.as_str()) && !more.contains(&table.as_str());
    if let Some(table) = sqlite.keys().find(|table| unknown(table, &[])) {
        return Err(format!("the file has a table `{table}` that a migration does not copy"));
    }
    if let Some(table) = postgres.keys().find(|table| unknown(table, ONLY_POSTGRES)) {
        return Err(format!("PostgreSQL has a table `{table}` that a migration does not copy"));
    }
    for table in known {
        let columns_of = |catalog: &Catalog| {
            let mut columns = catalog.get(table).cloned().unwrap_or_default();
            let is_own = |column: &String| {
                ONLY_POSTGRES_COLUMNS.iter().any(|own| own.table == table && own.column == *column)
            };
            columns.retain(|column| !is_own(column));
            columns.sort_unstable();
            columns
        };
        let (in_file, in_postgres) = (columns_of(sqlite), columns_of(postgres));
        if in_file.is_empty() || in_file != in_postgres {
            return Err(format!(
                "table `{table}` has the columns {in_file:?} in the file, and {in_postgres:?} in PostgreSQL"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same() -> (Catalog, Catalog) {
        let columns = || vec!["a".to_owned(), "b".to_owned()];
        let catalog: Catalog = TABLES.iter().map(|table| (table.name.to_owned(), columns())).collect();
        let mut postgres = catalog.clone();
        postgres.get_mut("nodes").unwrap().push("indexed".to_owned());
        postgres.insert("hosts".to_owned(), columns());
        (catalog, postgres)
    }

    #[test]
    fn a_table_or_a_column_that_is_not_copied_is_an_error() {
        let (sqlite, postgres) = same();
        assert_eq!(check(&sqlite, &postgres), Ok(()));
        for (in_sqlite, added) in [(true, "added"), (false, "added"), (true, "hosts")] {
            let (mut sqlite, mut postgres) = same();
            let catalog = if in_sqlite { &mut sqlite } else { &mut postgres };
            catalog.insert(added.to_owned(), vec!["a".to_owned()]);
            assert!(check(&sqlite, &postgres).unwrap_err().contains(added));
        }
        for in_sqlite in [true, false] {
            let (mut sqlite, mut postgres) = same();
            let catalog = if in_sqlite { &mut sqlite } else { &mut postgres };
            catalog.get_mut("events").unwrap().push("added".to_owned());
            assert!(check(&sqlite, &postgres).unwrap_err().contains("added"));
            let (mut sqlite, mut postgres) = same();
            let catalog = if in_sqlite { &mut sqlite } else { &mut postgres };
            catalog.remove("rules");
            assert!(check(&sqlite, &postgres).unwrap_err().contains("rules"));
        }
    }

    #[test]
    fn a_column_can_be_replaced() {
        let columns = ["id".to_owned(), "host".to_owned()];
        let replaced = [(&HOST, "NULL".to_owned())];
        assert_eq!(select("sessions", &columns, &replaced), "SELECT \"id\", NULL FROM \"sessions\"");
        assert_eq!(select("other", &columns, &replaced), "SELECT \"id\", \"host\" FROM \"other\"");
    }
}
