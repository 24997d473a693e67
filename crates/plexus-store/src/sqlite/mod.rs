//! The store in one SQLite file. One thread writes: `writer` opens a transaction, `rows` is the row interface inside it.
//! Other connections read beside it: `row_readers` for the short reads on the path of a request, `readers` for all others. The reads are in
//! `reads`, `arbor_reads`, `authority_reads`, `history_reads` and `audit`. `search_index` follows the commits. `connection`,
//! `examine` and `schema` open, check and migrate the file. The domain rules are in `crate::domain`.

mod arbor_reads;
mod audit;
mod audit_file;
mod authority_reads;
mod columns;
mod connection;
mod examine;
#[cfg(debug_assertions)]
pub mod faulty_disk;
mod history_reads;
mod readers;
mod reads;
mod row_readers;
mod rows;
mod schema;
mod search_index;
mod sql;
#[cfg(test)]
mod tests;
mod timing;
#[cfg(debug_assertions)]
pub mod work_count;
mod writer;

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use plexus_protocol::arbor::{Node, NodeSummary, TreeSummary};
use plexus_protocol::audit::{AuditHead, AuditRow};
use plexus_protocol::{ApprovalId, NodeId, SessionId, TemplateName, TreeId, UnixSeconds};
use rusqlite::ErrorCode;

pub use audit_file::AuditFile;
pub use connection::Durability;

use readers::Readers;
use row_readers::RowReaders;
use rows::SqliteRows;
use writer::{Apply, Writer};

use crate::domain;
use crate::{
    ApprovalRow, ApprovalSpan, Arbor, AuditBound, AuditCheck, AuditFacts, AuditFilter, AuditFrom, BudgetRow,
    CallCount, CallRow, Change, Committed, EndedTurn, EventRow, FeedRow, FinishedRun, History, Ledger,
    Observer, OldRecords, OpenFilter, Period, PermitStream, Removable, ResumePoint, RuleRow, RunKey, RunRow,
    SearchHit, SessionParent, SessionRow, SessionWithState, Store, StoreError, Tally, TemplateRow, TokenRow,
    TurnRow,
};

/// A [`Store`] in one SQLite file. Dropping it finishes the queued commits and closes the file.
pub struct SqliteStore {
    // The order matters: the connection that closes last has to be one that can checkpoint the write-ahead log.
    readers: Readers,
    row_readers: RowReaders,
    writer: Writer,
    path: PathBuf,
}

impl SqliteStore {
    /// Opens the file, or creates it (mode 0600) if it does not exist or is empty.
    ///
    /// # Errors
    /// [`StoreError::Unusable`] if the file belongs to another program, is damaged, was written by a newer Plexus or cannot be
    /// opened; it is not changed. [`StoreError::Unavailable`] if a retry may succeed.
    pub fn open(path: &Path, durability: Durability) -> Result<Self, StoreError> {
        Self::open_with(
            path,
            durability,
            Box::new(|connection, chain, at, changes| {
                domain::apply(&mut SqliteRows::new(connection, chain), at, changes)
            }),
        )
    }

    fn open_with(path: &Path, durability: Durability, apply: Apply) -> Result<Self, StoreError> {
        #[cfg(debug_assertions)]
        faulty_disk::install_from_environment();
        connection::prepare(path)?;
        let open = {
            let path = path.to_owned();
            move || connection::writer(&path, durability)
        };
        let writer = Writer::start(open()?, Box::new(open), apply)?;
        let row_readers = RowReaders::start(path)?;
        Ok(Self { readers: Readers::new(path.to_owned()), row_readers, writer, path: path.to_owned() })
    }

    /// How many transactions were committed. Compared with the number of commits it shows how well they are grouped.
    pub fn transactions(&self) -> u64 {
        self.writer.transactions()
    }

    /// Finishes the queued commits, then closes the file; blocks until that is done. Later calls fail with
    /// [`StoreError::Unavailable`].
    pub fn close(&self) {
        self.readers.close();
        self.row_readers.close();
        self.writer.close();
    }
}

fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".to_owned())
}

fn panicked() -> StoreError {
    StoreError::Unavailable("internal error in the store; see the log".to_owned())
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.close();
    }
}

#[async_trait]
impl Ledger for SqliteStore {
    async fn commit(&self, at: UnixSeconds, changes: Vec<Change>) -> Result<Committed, StoreError> {
        self.writer.commit(at, changes).await.map_err(|error| error.in_file(&self.path))
    }

    fn observe(&self, observer: Observer) {
        self.writer.observe(observer);
    }

    async fn approval(&self, id: ApprovalId) -> Result<Option<ApprovalRow>, StoreError> {
        self.row_readers.read(move |file| reads::approval(file, id)).await
    }

    async fn open_approvals(&self, which: OpenFilter) -> Result<Vec<ApprovalRow>, StoreError> {
        self.readers.read(move |file| reads::open_approvals(file, &which)).await
    }

    async fn feed(&self, to: &str, after: u64, limit: u64) -> Result<Vec<FeedRow>, StoreError> {
        let to = to.to_owned();
        self.readers.read(move |file| reads::feed(file, &to, after, limit)).await
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn session(&self, id: SessionId) -> Result<Option<SessionRow>, StoreError> {
        self.row_readers.read(move |file| reads::session(file, id)).await
    }

    async fn sessions_named(&self, name: &str) -> Result<Vec<SessionRow>, StoreError> {
        let name = name.to_owned();
        self.readers.read(move |file| reads::sessions_named(file, &name)).await
    }

    async fn sessions(&self) -> Result<Vec<SessionRow>, StoreError> {
        self.readers.read(reads::sessions).await
    }

    async fn sessions_with_state(&self) -> Result<Vec<SessionWithState>, StoreError> {
        self.readers.read(reads::sessions_with_state).await
    }

    async fn newest_sessions(&self, limit: u64) -> Result<Vec<SessionRow>, StoreError> {
        self.readers.read(move |file| reads::newest_sessions(file, limit)).await
    }

    async fn budget(&self, session: SessionId) -> Result<Vec<BudgetRow>, StoreError> {
        self.row_readers.read(move |file| reads::budget(file, session)).await
    }

    async fn run(&self, key: RunKey) -> Result<Option<RunRow>, StoreError> {
        self.row_readers.read(move |file| reads::run(file, key)).await
    }

    async fn open_runs(&self) -> Result<Vec<RunRow>, StoreError> {
        self.readers.read(reads::open_runs).await
    }

    async fn run_of_token(&self, token_hash: &str) -> Result<Option<RunRow>, StoreError> {
        let token_hash = token_hash.to_owned();
        self.row_readers.read(move |file| reads::run_of_token(file, &token_hash)).await
    }

    async fn rules(&self) -> Result<Vec<RuleRow>, StoreError> {
        self.readers.read(authority_reads::rules).await
    }

    async fn token_of_hash(&self, hash: &str, now: UnixSeconds) -> Result<Option<TokenRow>, StoreError> {
        let hash = hash.to_owned();
        self.row_readers.read(move |connection| authority_reads::token_of_hash(connection, &hash, now)).await
    }

    async fn tokens(&self, now: UnixSeconds) -> Result<Vec<TokenRow>, StoreError> {
        self.readers.read(move |connection| authority_reads::tokens(connection, now)).await
    }

    async fn templates(&self) -> Result<Vec<TemplateRow>, StoreError> {
        self.readers.read(authority_reads::templates).await
    }

    async fn template(&self, name: &TemplateName) -> Result<Option<TemplateRow>, StoreError> {
        let name = name.clone();
        self.readers.read(move |connection| authority_reads::template(connection, &name)).await
    }

    async fn turn(&self, session: SessionId, turn: u64) -> Result<Option<TurnRow>, StoreError> {
        self.readers.read(move |file| reads::turn(file, session, turn)).await
    }

    async fn events(
        &self,
        session: SessionId,
        turn: u64,
        from: u64,
        limit: u64,
    ) -> Result<Vec<EventRow>, StoreError> {
        self.readers.read(move |file| reads::events(file, session, turn, from, limit)).await
    }

    async fn event_count(&self, session: SessionId, turn: u64) -> Result<u64, StoreError> {
        self.readers.read(move |file| reads::event_count(file, session, turn)).await
    }

    async fn approvals_without_result(&self, run: RunKey) -> Result<Vec<ApprovalRow>, StoreError> {
        self.readers.read(move |file| reads::approvals_without_result(file, run)).await
    }

    async fn calls_without_result(&self, run: RunKey) -> Result<Vec<CallRow>, StoreError> {
        self.readers.read(move |file| reads::calls_without_result(file, run)).await
    }

    async fn feed_of_all(&self, after: u64, limit: u64) -> Result<Vec<FeedRow>, StoreError> {
        self.readers.read(move |file| reads::feed_of_all(file, after, limit)).await
    }

    async fn feed_head(&self) -> Result<u64, StoreError> {
        self.row_readers.read(reads::feed_head).await
    }

    async fn permit_stream(&self, event_id: &str) -> Result<Option<PermitStream>, StoreError> {
        let event_id = event_id.to_owned();
        self.row_readers.read(move |file| reads::permit_stream(file, &event_id)).await
    }

    async fn position(&self, reader: &str, session: SessionId, turn: u64) -> Result<u64, StoreError> {
        let reader = reader.to_owned();
        self.row_readers.read(move |file| reads::position(file, &reader, session, turn)).await
    }

    async fn audit(
        &self,
        filter: AuditFilter,
        from: AuditFrom,
        limit: u64,
    ) -> Result<Vec<AuditRow>, StoreError> {
        self.readers.read(move |file| audit::rows(file, &filter, from, limit)).await
    }

    async fn audit_head(&self) -> Result<AuditHead, StoreError> {
        self.readers.read(audit::head).await
    }

    async fn check_audit(&self, after: AuditHead, upto: u64) -> Result<AuditCheck, StoreError> {
        self.readers.read(move |file| audit::check(file, &after, upto)).await
    }

    async fn tally(&self) -> Result<Tally, StoreError> {
        self.readers.read(reads::tally).await
    }

    async fn old_records(
        &self,
        which: OldRecords,
        before: UnixSeconds,
        limit: u64,
    ) -> Result<Vec<Removable>, StoreError> {
        self.readers.read(move |file| reads::old_records(file, which, before, limit)).await
    }

    async fn finished_runs(
        &self,
        after: Option<FinishedRun>,
        limit: u64,
    ) -> Result<Vec<FinishedRun>, StoreError> {
        self.readers.read(move |file| reads::finished_runs(file, after, limit)).await
    }
}

#[async_trait]
impl Arbor for SqliteStore {
    async fn tree(&self, id: TreeId) -> Result<Option<TreeSummary>, StoreError> {
        self.readers.read(move |file| arbor_reads::tree(file, id)).await
    }

    async fn trees(&self, after: Option<TreeId>, limit: u64) -> Result<Vec<TreeSummary>, StoreError> {
        self.readers.read(move |file| arbor_reads::trees(file, after, limit)).await
    }

    async fn nodes(
        &self,
        tree: TreeId,
        after: Option<NodeId>,
        limit: u64,
    ) -> Result<Vec<NodeSummary>, StoreError> {
        self.readers.read(move |file| arbor_reads::nodes(file, tree, after, limit)).await
    }

    async fn leaves(
        &self,
        tree: TreeId,
        after: Option<NodeId>,
        limit: u64,
    ) -> Result<Vec<NodeSummary>, StoreError> {
        self.readers.read(move |file| arbor_reads::leaves(file, tree, after, limit)).await
    }

    async fn node(&self, id: NodeId) -> Result<Option<Node>, StoreError> {
        self.readers.read(move |file| arbor_reads::node(file, id)).await
    }

    async fn children(
        &self,
        of: NodeId,
        after: Option<NodeId>,
        limit: u64,
    ) -> Result<Vec<NodeSummary>, StoreError> {
        self.readers.read(move |file| arbor_reads::children(file, of, after, limit)).await
    }

    async fn path(&self, head: NodeId, from: u64, limit: u64) -> Result<Vec<Node>, StoreError> {
        self.readers.read(move |file| arbor_reads::path(file, head, from, limit)).await
    }

    async fn resume_points(&self, node: NodeId, limit: usize) -> Result<Vec<ResumePoint>, StoreError> {
        self.readers.read(move |file| arbor_reads::resume_points(file, node, limit)).await
    }

    async fn search(
        &self,
        words: &str,
        tree: Option<TreeId>,
        before: Option<NodeId>,
        limit: u64,
    ) -> Result<Vec<SearchHit>, StoreError> {
        self.writer.complete_index().await.map_err(|error| error.in_file(&self.path))?;
        let words = words.to_owned();
        self.readers.read(move |file| arbor_reads::search(file, &words, tree, before, limit)).await
    }
}

#[async_trait]
impl History for SqliteStore {
    async fn ended_turns(&self, period: Period, limit: u64) -> Result<Vec<EndedTurn>, StoreError> {
        self.readers.read(move |file| history_reads::ended_turns(file, period, limit)).await
    }

    async fn resolved_approvals(&self, period: Period, limit: u64) -> Result<Vec<ApprovalSpan>, StoreError> {
        self.readers.read(move |file| history_reads::resolved_approvals(file, period, limit)).await
    }

    async fn open_approval_spans(&self) -> Result<Vec<ApprovalSpan>, StoreError> {
        self.readers.read(history_reads::open_approval_spans).await
    }

    async fn audit_facts(&self, period: Period, bound: AuditBound) -> Result<AuditFacts, StoreError> {
        self.readers.read(move |file| history_reads::audit_facts(file, period, bound)).await
    }

    async fn call_counts(
        &self,
        period: Period,
        part_secs: u64,
        limit: u64,
    ) -> Result<Vec<CallCount>, StoreError> {
        self.readers.read(move |file| history_reads::call_counts(file, period, part_secs, limit)).await
    }

    async fn session_parents(&self) -> Result<Vec<SessionParent>, StoreError> {
        self.readers.read(history_reads::session_parents).await
    }
}

impl StoreError {
    /// Adds the name of the file to `Unusable`.
    fn in_file(self, path: &Path) -> Self {
        match self {
            Self::Unusable(why) => Self::Unusable(format!("{}: {why}", path.display())),
            other => other,
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error {
            rusqlite::Error::FromSqlConversionFailure(..) | rusqlite::Error::IntegralValueOutOfRange(..) => {
                Self::Unusable(format!("the database contains a row that cannot be read: {error}"))
            }
            _ => match error.sqlite_error_code() {
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Unusable(format!(
                    "the database is damaged ({error}): {}",
                    connection::INSTEAD_OF_DAMAGED
                )),
                _ => Self::Unavailable(error.to_string()),
            },
        }
    }
}
