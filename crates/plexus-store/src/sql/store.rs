//! The store: one thread writes, other connections read beside it. `row_readers` serve the short reads on the path of a request, `readers`
//! all others.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use plexus_protocol::arbor::{Node, NodeSummary, TreeSummary};
use plexus_protocol::audit::{AuditHead, AuditRow};
use plexus_protocol::{ApprovalId, HostName, NodeId, SessionId, TemplateName, TreeId, UnixSeconds};

use super::readers::Readers;
use super::row_readers::RowReaders;
use super::source::Source;
use super::writer::{Apply, Writer};
use super::{Database, Known, SqlRows, arbor_reads, audit, authority_reads, history_reads, reads};
use crate::domain;
use crate::{
    ApprovalRow, ApprovalSpan, Arbor, AuditBound, AuditCheck, AuditFacts, AuditFilter, AuditFrom, BudgetRow,
    CallCount, CallRow, Change, Committed, EndedTurn, EventRow, FeedRow, FinishedRun, Fleet, History, Ledger,
    Observer, OldRecords, OpenFilter, Period, PermitStream, Removable, ResumePoint, RulesInForce, RunKey,
    RunRow, SearchHit, SessionParent, SessionRow, SessionWithState, Store, StoreError, Tally, TemplateRow,
    TokenRow, TurnRow,
};

/// A [`Store`] in an SQL database. Dropping it finishes the queued commits and closes the connections.
pub struct SqlStore {
    // The order matters: the connection to an SQLite file that closes last has to be one that can checkpoint the write-ahead log.
    readers: Readers,
    row_readers: RowReaders,
    writer: Writer,
    source: Arc<dyn Source>,
    fleet: Option<Arc<dyn Fleet>>,
}

impl SqlStore {
    /// Starts the threads of a store that applies the domain rules.
    pub(crate) fn start(source: Arc<dyn Source>) -> Result<Self, StoreError> {
        let apply = |database: &dyn Database, known: &mut Known, at, changes: &[Change]| {
            domain::apply(&mut SqlRows::new(database, known), at, changes)
        };
        Self::start_with(source, Box::new(apply))
    }

    /// Starts the threads.
    pub(crate) fn start_with(source: Arc<dyn Source>, apply: Apply) -> Result<Self, StoreError> {
        let writer = Writer::start(Arc::clone(&source), apply)?;
        let row_readers = RowReaders::start(&source)?;
        Ok(Self { readers: Readers::new(Arc::clone(&source)), row_readers, writer, source, fleet: None })
    }

    /// Adds the hubs that share the database.
    pub(crate) fn with_fleet(mut self, fleet: Arc<dyn Fleet>) -> Self {
        self.fleet = Some(fleet);
        self
    }

    /// How many transactions were committed. Compared with the number of commits it shows how well they are grouped.
    pub fn transactions(&self) -> u64 {
        self.writer.transactions()
    }

    /// Finishes the queued commits, then closes the connections; blocks until that is done. Later calls fail with
    /// [`StoreError::Unavailable`].
    pub fn close(&self) {
        self.readers.close();
        self.row_readers.close();
        self.writer.close();
    }
}

impl Drop for SqlStore {
    fn drop(&mut self) {
        self.close();
    }
}

#[async_trait]
impl Ledger for SqlStore {
    async fn commit(&self, at: UnixSeconds, changes: Vec<Change>) -> Result<Committed, StoreError> {
        self.writer.commit(at, changes).await.map_err(|error| self.source.named(error))
    }

    fn observe(&self, observer: Observer) {
        self.writer.observe(observer);
    }

    async fn approval(&self, id: ApprovalId) -> Result<Option<ApprovalRow>, StoreError> {
        self.row_readers.read(move |database| reads::approval(database, id)).await
    }

    async fn open_approvals(&self, which: OpenFilter) -> Result<Vec<ApprovalRow>, StoreError> {
        self.readers.read(move |database| reads::open_approvals(database, &which)).await
    }

    async fn feed(&self, to: &str, after: u64, limit: u64) -> Result<Vec<FeedRow>, StoreError> {
        let to = to.to_owned();
        self.readers.read(move |database| reads::feed(database, &to, after, limit)).await
    }
}

#[async_trait]
impl Store for SqlStore {
    fn fleet(&self) -> Option<&Arc<dyn Fleet>> {
        self.fleet.as_ref()
    }

    async fn session(&self, id: SessionId) -> Result<Option<SessionRow>, StoreError> {
        self.row_readers.read(move |database| reads::session(database, id)).await
    }

    async fn sessions_named(&self, name: &str) -> Result<Vec<SessionRow>, StoreError> {
        let name = name.to_owned();
        self.readers.read(move |database| reads::sessions_named(database, &name)).await
    }

    async fn sessions(&self) -> Result<Vec<SessionRow>, StoreError> {
        self.readers.read(reads::sessions).await
    }

    async fn sessions_with_state(&self) -> Result<Vec<SessionWithState>, StoreError> {
        self.readers.read(reads::sessions_with_state).await
    }

    async fn newest_sessions(&self, limit: u64) -> Result<Vec<SessionRow>, StoreError> {
        self.readers.read(move |database| reads::newest_sessions(database, limit)).await
    }

    async fn budget(&self, session: SessionId) -> Result<Vec<BudgetRow>, StoreError> {
        self.row_readers.read(move |database| reads::budget(database, session)).await
    }

    async fn run(&self, key: RunKey) -> Result<Option<RunRow>, StoreError> {
        self.row_readers.read(move |database| reads::run(database, key)).await
    }

    async fn open_runs(&self) -> Result<Vec<RunRow>, StoreError> {
        let host = self.source.host().cloned();
        self.readers.read(move |database| reads::open_runs(database, host.as_ref())).await
    }

    async fn run_of_token(&self, token_hash: &str) -> Result<Option<RunRow>, StoreError> {
        let (token_hash, host) = (token_hash.to_owned(), self.source.host().cloned());
        self.row_readers.read(move |database| reads::run_of_token(database, &token_hash, host.as_ref())).await
    }

    async fn rules(&self) -> Result<RulesInForce, StoreError> {
        self.readers.read(authority_reads::rules).await
    }

    async fn token_of_hash(&self, hash: &str, now: UnixSeconds) -> Result<Option<TokenRow>, StoreError> {
        let hash = hash.to_owned();
        self.row_readers.read(move |database| authority_reads::token_of_hash(database, &hash, now)).await
    }

    async fn tokens(&self, now: UnixSeconds) -> Result<Vec<TokenRow>, StoreError> {
        self.readers.read(move |database| authority_reads::tokens(database, now)).await
    }

    async fn templates(&self) -> Result<Vec<TemplateRow>, StoreError> {
        self.readers.read(authority_reads::templates).await
    }

    async fn template(&self, name: &TemplateName) -> Result<Option<TemplateRow>, StoreError> {
        let name = name.clone();
        self.readers.read(move |database| authority_reads::template(database, &name)).await
    }

    async fn turn(&self, session: SessionId, turn: u64) -> Result<Option<TurnRow>, StoreError> {
        self.readers.read(move |database| reads::turn(database, session, turn)).await
    }

    async fn events(
        &self,
        session: SessionId,
        turn: u64,
        from: u64,
        limit: u64,
    ) -> Result<Vec<EventRow>, StoreError> {
        self.readers.read(move |database| reads::events(database, session, turn, from, limit)).await
    }

    async fn event_count(&self, session: SessionId, turn: u64) -> Result<u64, StoreError> {
        self.readers.read(move |database| reads::event_count(database, session, turn)).await
    }

    async fn approvals_without_result(&self, run: RunKey) -> Result<Vec<ApprovalRow>, StoreError> {
        self.readers.read(move |database| reads::approvals_without_result(database, run)).await
    }

    async fn calls_without_result(&self, run: RunKey) -> Result<Vec<CallRow>, StoreError> {
        self.readers.read(move |database| reads::calls_without_result(database, run)).await
    }

    async fn feed_of_all(&self, after: u64, limit: u64) -> Result<Vec<FeedRow>, StoreError> {
        self.readers.read(move |database| reads::feed_of_all(database, after, limit)).await
    }

    async fn feed_approvals(
        &self,
        to: Option<&str>,
        after: u64,
        upto: u64,
    ) -> Result<Vec<ApprovalRow>, StoreError> {
        let to = to.map(str::to_owned);
        self.readers.read(move |database| reads::feed_approvals(database, to.as_deref(), after, upto)).await
    }

    async fn feed_head(&self) -> Result<u64, StoreError> {
        self.row_readers.read(reads::feed_head).await
    }

    async fn permit_stream(&self, event_id: &str) -> Result<Option<PermitStream>, StoreError> {
        let event_id = event_id.to_owned();
        self.row_readers.read(move |database| reads::permit_stream(database, &event_id)).await
    }

    async fn position(&self, reader: &str, session: SessionId, turn: u64) -> Result<u64, StoreError> {
        let reader = reader.to_owned();
        self.row_readers.read(move |database| reads::position(database, &reader, session, turn)).await
    }

    async fn audit(
        &self,
        filter: AuditFilter,
        from: AuditFrom,
        limit: u64,
    ) -> Result<Vec<AuditRow>, StoreError> {
        self.readers.read(move |database| audit::rows(database, &filter, from, limit)).await
    }

    async fn audit_head(&self) -> Result<AuditHead, StoreError> {
        self.readers.read(audit::head).await
    }

    async fn check_audit(&self, after: AuditHead, upto: u64) -> Result<AuditCheck, StoreError> {
        self.readers.read(move |database| audit::check(database, &after, upto)).await
    }

    async fn tally(&self) -> Result<Tally, StoreError> {
        self.readers.read(reads::tally).await
    }

    async fn tallies(&self) -> Result<Vec<(HostName, Tally)>, StoreError> {
        self.readers.read(reads::tallies).await
    }

    async fn old_records(
        &self,
        which: OldRecords,
        before: UnixSeconds,
        limit: u64,
    ) -> Result<Vec<Removable>, StoreError> {
        self.readers.read(move |database| reads::old_records(database, which, before, limit)).await
    }

    async fn finished_runs(
        &self,
        after: Option<FinishedRun>,
        limit: u64,
    ) -> Result<Vec<FinishedRun>, StoreError> {
        let host = self.source.host().cloned();
        self.readers.read(move |database| reads::finished_runs(database, host.as_ref(), after, limit)).await
    }
}

#[async_trait]
impl Arbor for SqlStore {
    async fn tree(&self, id: TreeId) -> Result<Option<TreeSummary>, StoreError> {
        self.readers.read(move |database| arbor_reads::tree(database, id)).await
    }

    async fn trees(&self, after: Option<TreeId>, limit: u64) -> Result<Vec<TreeSummary>, StoreError> {
        self.readers.read(move |database| arbor_reads::trees(database, after, limit)).await
    }

    async fn nodes(
        &self,
        tree: TreeId,
        after: Option<NodeId>,
        limit: u64,
    ) -> Result<Vec<NodeSummary>, StoreError> {
        self.readers.read(move |database| arbor_reads::nodes(database, tree, after, limit)).await
    }

    async fn leaves(
        &self,
        tree: TreeId,
        after: Option<NodeId>,
        limit: u64,
    ) -> Result<Vec<NodeSummary>, StoreError> {
        self.readers.read(move |database| arbor_reads::leaves(database, tree, after, limit)).await
    }

    async fn node(&self, id: NodeId) -> Result<Option<Node>, StoreError> {
        self.readers.read(move |database| arbor_reads::node(database, id)).await
    }

    async fn children(
        &self,
        of: NodeId,
        after: Option<NodeId>,
        limit: u64,
    ) -> Result<Vec<NodeSummary>, StoreError> {
        self.readers.read(move |database| arbor_reads::children(database, of, after, limit)).await
    }

    async fn path(&self, head: NodeId, from: u64, limit: u64) -> Result<Vec<Node>, StoreError> {
        self.readers.read(move |database| arbor_reads::path(database, head, from, limit)).await
    }

    async fn resume_points(&self, node: NodeId, limit: usize) -> Result<Vec<ResumePoint>, StoreError> {
        self.readers.read(move |database| arbor_reads::resume_points(database, node, limit)).await
    }

    async fn search(
        &self,
        words: &str,
        tree: Option<TreeId>,
        before: Option<NodeId>,
        limit: u64,
    ) -> Result<Vec<SearchHit>, StoreError> {
        self.writer.complete_index().await.map_err(|error| self.source.named(error))?;
        let words = words.to_owned();
        self.readers.read(move |database| arbor_reads::search(database, &words, tree, before, limit)).await
    }
}

#[async_trait]
impl History for SqlStore {
    async fn ended_turns(&self, period: Period, limit: u64) -> Result<Vec<EndedTurn>, StoreError> {
        self.readers.read(move |database| history_reads::ended_turns(database, period, limit)).await
    }

    async fn resolved_approvals(&self, period: Period, limit: u64) -> Result<Vec<ApprovalSpan>, StoreError> {
        self.readers.read(move |database| history_reads::resolved_approvals(database, period, limit)).await
    }

    async fn open_approval_spans(&self) -> Result<Vec<ApprovalSpan>, StoreError> {
        self.readers.read(history_reads::open_approval_spans).await
    }

    async fn audit_facts(&self, period: Period, bound: AuditBound) -> Result<AuditFacts, StoreError> {
        self.readers.read(move |database| history_reads::audit_facts(database, period, bound)).await
    }

    async fn call_counts(
        &self,
        period: Period,
        part_secs: u64,
        limit: u64,
    ) -> Result<Vec<CallCount>, StoreError> {
        self.readers
            .read(move |database| history_reads::call_counts(database, period, part_secs, limit))
            .await
    }

    async fn session_parents(&self) -> Result<Vec<SessionParent>, StoreError> {
        self.readers.read(history_reads::session_parents).await
    }
}
