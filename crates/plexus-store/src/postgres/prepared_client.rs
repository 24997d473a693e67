//! A connection that tasks share. It prepares each statement once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, Statement};

/// The parameters of a statement.
type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A client, and the statements that it has prepared.
pub(super) struct PreparedClient {
    client: Client,
    statements: Mutex<HashMap<&'static str, Statement>>,
}

impl PreparedClient {
    pub(super) fn new(client: Client) -> Self {
        Self { client, statements: Mutex::default() }
    }

    pub(super) async fn execute(&self, sql: &'static str, params: Params<'_>) -> Result<u64, Error> {
        self.client.execute(&self.prepared(sql).await?, params).await
    }

    pub(super) async fn query(&self, sql: &'static str, params: Params<'_>) -> Result<Vec<Row>, Error> {
        self.client.query(&self.prepared(sql).await?, params).await
    }

    pub(super) async fn query_one(&self, sql: &'static str, params: Params<'_>) -> Result<Row, Error> {
        self.client.query_one(&self.prepared(sql).await?, params).await
    }

    pub(super) async fn query_opt(
        &self,
        sql: &'static str,
        params: Params<'_>,
    ) -> Result<Option<Row>, Error> {
        self.client.query_opt(&self.prepared(sql).await?, params).await
    }

    /// Executes several statements without parameters, in one transaction. They are not prepared.
    pub(super) async fn batch_execute(&self, statements: &str) -> Result<(), Error> {
        self.client.batch_execute(statements).await
    }

    async fn prepared(&self, sql: &'static str) -> Result<Statement, Error> {
        if let Some(known) = self.statements().get(sql) {
            return Ok(known.clone());
        }
        let statement = self.client.prepare(sql).await?;
        self.statements().insert(sql, statement.clone());
        Ok(statement)
    }

    fn statements(&self) -> std::sync::MutexGuard<'_, HashMap<&'static str, Statement>> {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
