//! A connection to PostgreSQL that a thread uses without `async`. The connection has its own runtime, which the thread drives while it waits, so
//! a statement costs no switch between threads.
//!
//! A statement whose result nobody needs is only queued. It is sent with the next one whose result is needed, at the latest with COMMIT, which
//! fails if a queued one has failed. So a transaction waits once per read, not once per statement.

mod bulk;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::poll_fn;
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::StreamExt as _;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, Statement};

use super::columns::{Encoded, PgRow};
use super::connector::Connector;
use super::dialect::{DIALECT, translate};
use super::errors::{describe, is_end_of_connection, refused};
use super::membership::{Membership, WriteTransaction};
use crate::rows::Stored;
use crate::sql::columns::{Json, ToColumn};
use crate::sql::{CommitError, Database, Dialect, EachRow, Known, Row};
use crate::{Changed, Committed, Role, StoreError};

/// How long the database may take to answer a statement before the connection counts as lost.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// The same for a migration, which may have to build an index of a large table.
const PATIENCE: Duration = Duration::from_secs(6 * 3600);
/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Records what the transaction has changed, for the hubs of other hosts. Records are numbered without gaps.
const LOG: &str = "WITH next AS (UPDATE writer SET number = number + 1 RETURNING number) \
    INSERT INTO commits (number, host, changed, at) \
    SELECT number, ?1, ?2, (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT FROM next";

/// A runtime that can be dropped anywhere, also by a task of another one.
struct OwnRuntime(Option<Runtime>);

impl OwnRuntime {
    fn new() -> Result<Self, StoreError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let failed = |error| StoreError::Unavailable(format!("cannot start a runtime: {error}"));
        Ok(Self(Some(runtime.map_err(failed)?)))
    }

    /// Runs the connection until the future is ready.
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        #[expect(clippy::expect_used, reason = "only `drop` takes it")]
        let runtime = self.0.as_ref().expect("a runtime");
        runtime.block_on(future)
    }
}

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// A statement that was queued.
type Queued = Pin<Box<dyn Future<Output = Result<u64, Error>> + Send>>;

/// A connection, and the state of its transaction.
pub(super) struct PgConnection {
    runtime: OwnRuntime,
    client: Arc<Client>,
    statements: RefCell<HashMap<&'static str, Statement>>,
    queued: RefCell<Vec<Queued>>,
    in_transaction: Cell<bool>,
    lost: Cell<bool>,
    /// For a connection that writes.
    membership: Option<Arc<Membership>>,
    /// The latest transaction that writes.
    transaction: RefCell<WriteTransaction>,
    answer_timeout: Duration,
    content_scope: String,
}

impl PgConnection {
    /// Connects, and executes `setup`.
    pub(super) fn open(connector: &Connector, setup: &str) -> Result<Self, StoreError> {
        Self::open_within(connector, setup, ANSWER_TIMEOUT)
    }

    /// Connects for transactions that write.
    pub(super) fn open_writer(
        connector: &Connector,
        setup: &str,
        membership: Arc<Membership>,
        role: Role,
    ) -> Result<Self, StoreError> {
        let content_scope = role.content_scope(&membership.host);
        Ok(Self { membership: Some(membership), content_scope, ..Self::open(connector, setup)? })
    }

    /// Connects for statements that may take long.
    pub(super) fn open_patient(connector: &Connector, setup: &str) -> Result<Self, StoreError> {
        Self::open_within(connector, setup, PATIENCE)
    }

    fn open_within(connector: &Connector, setup: &str, answer_timeout: Duration) -> Result<Self, StoreError> {
        let runtime = OwnRuntime::new()?;
        let connect = async {
            let (client, connection) = connector.connect().await?;
            tokio::spawn(async {
                if let Err(error) = connection.await {
                    tracing::warn!(error = describe(&error), "a connection to the database ended");
                }
            });
            client.batch_execute(setup).await?;
            Ok::<_, Error>(client)
        };
        let connected = runtime.block_on(async { timeout(CONNECT_TIMEOUT, connect).await });
        let client = connected.map_err(|_| no_answer(CONNECT_TIMEOUT))?.map_err(|error| refused(&error))?;
        Ok(Self {
            runtime,
            client: Arc::new(client),
            statements: RefCell::default(),
            queued: RefCell::default(),
            in_transaction: Cell::new(false),
            lost: Cell::new(false),
            membership: None,
            transaction: RefCell::default(),
            answer_timeout,
            content_scope: String::new(),
        })
    }

    /// Executes several statements without parameters.
    pub(super) fn batch(&self, sql: &str) -> Stored<()> {
        self.wait(self.client.batch_execute(sql))
    }

    /// Executes COMMIT. In a transaction in which a statement has failed, COMMIT rolls back and reports success; SELECT fails.
    pub(super) fn execute_commit(&self) -> Stored<()> {
        self.batch("SELECT 1; COMMIT")
    }

    /// Sends a request behind the queued ones and waits for the results of all. Returns the first error.
    fn wait<T>(&self, request: impl Future<Output = Result<T, Error>>) -> Stored<T> {
        let queued = self.queued.take();
        let all = async {
            let mut request = pin!(request);
            // Requests are sent in the order in which they are polled first.
            let early = poll_fn(|context| Poll::Ready(request.as_mut().poll(context))).await;
            let mut failed = None;
            for earlier in queued {
                failed = failed.or(earlier.await.err());
            }
            let result = match early {
                Poll::Ready(result) => result,
                Poll::Pending => request.await,
            };
            failed.map_or(result, Err)
        };
        match self.runtime.block_on(async { timeout(self.answer_timeout, all).await }) {
            Ok(result) => result.map_err(|error| self.failed(&error)),
            Err(_) => {
                self.lost.set(true);
                Err(no_answer(self.answer_timeout))
            }
        }
    }

    fn failed(&self, error: &Error) -> StoreError {
        if is_end_of_connection(error) {
            self.lost.set(true);
        }
        // After these errors a retry cannot succeed: bad data, a violated constraint, wrong SQL, a limit of PostgreSQL.
        match error.code().and_then(|code| code.code().get(..2)) {
            _ if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => StoreError::Unusable(format!(
                "the role of this host is not allowed to do this; use a hub whose role owns the tables ({})",
                describe(error)
            )),
            Some("22" | "23" | "42" | "54") => StoreError::Unusable(describe(error)),
            _ => StoreError::Unavailable(describe(error)),
        }
    }

    /// Prepares a statement, once.
    fn prepared(&self, sql: &'static str) -> Stored<Statement> {
        if let Some(known) = self.statements.borrow().get(sql) {
            return Ok(known.clone());
        }
        let statement = self.wait(self.client.prepare(&translate(sql)))?;
        self.statements.borrow_mut().insert(sql, statement.clone());
        Ok(statement)
    }

    /// A rollback also undoes the queued statements: their failures do not matter any more.
    fn discard_queued_results(&self, sql: &str) {
        if sql.starts_with("ROLLBACK") {
            let _ = self.wait_for_queued();
        }
    }

    fn membership(&self) -> Stored<&Membership> {
        let reads_only = || StoreError::Unavailable("this connection only reads".to_owned());
        self.membership.as_deref().ok_or_else(reads_only)
    }

    /// Notes what a statement does to the transaction.
    fn track_transaction(&self, sql: &str) {
        match sql.split(' ').next() {
            Some("BEGIN") => self.in_transaction.set(true),
            Some("ROLLBACK") if sql == "ROLLBACK" => self.in_transaction.set(false),
            _ => {}
        }
    }
}

impl Database for PgConnection {
    fn execute(&self, sql: &'static str, params: &[&dyn ToColumn]) -> Stored<usize> {
        self.discard_queued_results(sql);
        let statement = self.prepared(sql)?;
        let params = Encoded::all(params)?;
        let changed = self.wait(self.client.execute_raw(&statement, params))?;
        self.track_transaction(sql);
        Ok(usize::try_from(changed).unwrap_or(usize::MAX))
    }

    fn queue(&self, sql: &'static str, params: &[&dyn ToColumn]) -> Stored<()> {
        self.discard_queued_results(sql);
        let statement = self.prepared(sql)?;
        let params = Encoded::all(params)?;
        let client = Arc::clone(&self.client);
        let mut request: Queued = Box::pin(async move { client.execute_raw(&statement, params).await });
        let first = self.runtime.block_on(poll_fn(|context| Poll::Ready(request.as_mut().poll(context))));
        self.track_transaction(sql);
        match first {
            Poll::Ready(result) => result.map(drop).map_err(|error| self.failed(&error)),
            Poll::Pending => {
                self.queued.borrow_mut().push(request);
                Ok(())
            }
        }
    }

    fn query(&self, sql: &'static str, params: &[&dyn ToColumn], each: &mut EachRow<'_>) -> Stored<()> {
        let statement = self.prepared(sql)?;
        let params = Encoded::all(params)?;
        let rows = self.wait(self.client.query_raw(&statement, params))?;
        let mut rows = pin!(rows);
        while let Some(row) = self.wait(async { rows.next().await.transpose() })? {
            if each(&Row(&PgRow(row)))? == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    fn wait_for_queued(&self) -> Stored<()> {
        self.wait(async { Ok(()) })
    }

    fn begin(&self) -> Stored<()> {
        self.queue("BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE", &[]).map_err(super::later)?;
        // `fence` waits for BEGIN and for the writer lock, and fails if this hub may no longer write. Nothing is written before that.
        // Every error here is retryable, because agents wait for the database.
        self.transaction.replace(self.membership()?.fence(self).map_err(super::later)?);
        Ok(())
    }

    fn update_known(&self, known: &mut Known) {
        self.transaction.borrow().update(known);
    }

    fn log(&self, committed: &mut dyn Iterator<Item = &Committed>) -> Stored<()> {
        let host = &self.membership()?.host;
        let changed = Json(Changed::by(committed));
        self.queue(LOG, &[&host.as_str(), &changed])?;
        self.transaction.borrow_mut().record();
        Ok(())
    }

    fn commit(&self) -> Result<(), CommitError> {
        let membership = self.membership().map_err(CommitError::NotCommitted)?;
        let transaction = self.transaction.take();
        let ended = self.execute_commit();
        self.in_transaction.set(ended.is_err());
        match ended {
            Ok(()) => {
                membership.committed(transaction);
                Ok(())
            }
            Err(error) if self.lost.get() => {
                let id = transaction.id().to_owned();
                membership.uncertain(transaction);
                Err(CommitError::Unknown(id, error))
            }
            Err(error) => Err(CommitError::NotCommitted(error)),
        }
    }

    fn is_in_transaction(&self) -> bool {
        self.in_transaction.get() && !self.lost.get()
    }

    fn is_usable(&self) -> bool {
        // Lets the connection notice that it was closed while nobody used it: the first yield finds the event, the second one handles it.
        self.runtime.block_on(async {
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
        });
        !self.lost.get() && !self.client.is_closed()
    }

    fn content_scope(&self) -> &str {
        &self.content_scope
    }

    fn dialect(&self) -> &'static Dialect {
        &DIALECT
    }
}

fn no_answer(within: Duration) -> StoreError {
    StoreError::Unavailable(format!("PostgreSQL did not answer within {} s", within.as_secs()))
}
