//! Follows the approvals that are addressed to one caller; for the operator, all approvals.

use std::collections::BTreeMap;
use std::sync::Arc;

use plexus_protocol::stream::ApprovalChange;
use plexus_protocol::{Approval, Error, MAX_TEXT_BYTES, Principal};
use plexus_store::{FeedEntry, OnBehalf, Store};
use tokio::sync::watch;

use super::{Follow, PAGE};
use crate::callers::access::on_behalf_of;
use crate::callers::access::{self, Needs, Reader};
use crate::callers::caller::Caller;
use crate::callers::names::Paths;
use crate::errors::store_error;
use crate::metrics::{GaugeGuard, Stream};
use crate::view;
use plexus_book::{Topic, next};

/// An approval that was created or resolved.
#[derive(Debug)]
pub struct ApprovalUpdate {
    /// The number of this update, to continue from.
    pub number: u64,
    /// Whether it was created or resolved.
    pub change: ApprovalChange,
    /// The approval as it is now.
    pub approval: Approval,
}

/// Follows the approvals that are addressed to one caller; for the operator, all approvals.
pub struct ApprovalFollower {
    store: Arc<dyn Store>,
    reader: Reader,
    principal: Principal,
    /// The addressee; `None` for all.
    to: Option<String>,
    after: u64,
    signal: watch::Receiver<()>,
    behalf: OnBehalf,
    _counted: GaugeGuard,
}

impl Follow {
    /// Follows the approvals after number `after`, by default from now on.
    pub(crate) async fn follow_approvals(
        &self,
        caller: Caller,
        after: Option<u64>,
    ) -> Result<ApprovalFollower, Error> {
        let behalf = on_behalf_of(&caller.principal);
        let admitted = behalf.clone().perform(access::admit(&*self.store, caller, Needs::Watch)).await?;
        let reader = admitted.reader();
        let principal = admitted.principal;
        let all = matches!(principal, Principal::Operator | Principal::Token { .. });
        let to = (!all).then(|| principal.asked_as().key());
        let topic = to.clone().map_or(Topic::AnyFeed, Topic::Feed);
        let signal = self.commits.signals().subscribe(topic);
        let after = match after {
            Some(after) => after,
            None => behalf.clone().perform(self.store.feed_head()).await.map_err(store_error)?,
        };
        let _counted = self.metrics.listen(Stream::Approvals);
        Ok(ApprovalFollower {
            store: Arc::clone(&self.store),
            reader,
            principal,
            to,
            after,
            signal,
            behalf,
            _counted,
        })
    }
}

impl ApprovalFollower {
    /// The number of the last entry that was read.
    pub fn after(&self) -> u64 {
        self.after
    }

    /// Waits for the next updates, without a time limit. Cancel safe.
    pub async fn next(&mut self) -> Result<Vec<ApprovalUpdate>, Error> {
        // The approvals of a page make it too large for the stack.
        Box::pin(self.behalf.clone().perform(self.read_updates())).await
    }

    async fn read_updates(&mut self) -> Result<Vec<ApprovalUpdate>, Error> {
        loop {
            let store = &self.store;
            let rows = match &self.to {
                Some(to) => store.feed(to, self.after, PAGE).await,
                None => store.feed_of_all(self.after, PAGE).await,
            };
            let rows = rows.map_err(store_error)?;
            let newest = rows.last().map(|row| row.number);
            let changes: BTreeMap<u64, ApprovalChange> =
                rows.iter().filter_map(|row| Some((row.number, change(&row.entry)?))).collect();
            let updates = self.updates(&changes).await?;
            self.after = newest.unwrap_or(self.after);
            if !updates.is_empty() {
                return Ok(updates);
            }
            if newest.is_none() {
                next(&mut self.signal).await;
            }
        }
    }

    /// The approvals that these feed entries are about, as they are now. An approval may have been removed since.
    async fn updates(&self, changes: &BTreeMap<u64, ApprovalChange>) -> Result<Vec<ApprovalUpdate>, Error> {
        let mut updates = Vec::new();
        let mut paths = Paths::of(&*self.store, &self.principal);
        let mut after = self.after;
        while let Some((last, _)) = changes.last_key_value().filter(|(last, _)| after < **last) {
            let page =
                self.store.feed_approvals(self.to.as_deref(), after, *last).await.map_err(store_error)?;
            let Some(reached) = page.last().map(|row| row.number) else { break };
            for row in page {
                let number = row.number;
                let Some(change) = changes.get(&number).copied() else { continue };
                let shown = view::listed_approval(row, &mut paths, MAX_TEXT_BYTES, self.reader).await;
                updates.push(ApprovalUpdate { number, change, approval: shown.map_err(store_error)? });
            }
            after = reached;
        }
        Ok(updates)
    }
}

/// What an entry of the feed says about an approval.
fn change(entry: &FeedEntry) -> Option<ApprovalChange> {
    match entry {
        FeedEntry::Asked { .. } => Some(ApprovalChange::Asked),
        FeedEntry::Resolved { .. } => Some(ApprovalChange::Resolved),
        FeedEntry::Finished { .. } | FeedEntry::BudgetLow(_) | FeedEntry::Notice(_) => None,
    }
}
