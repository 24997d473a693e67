//! Approvals that expire. One task sleeps until the next deadline. A deadline that passed while no hub ran takes effect when
//! the next hub starts.

use std::convert::Infallible;

use plexus_protocol::{ApprovalId, ApprovalStatus, Decider, Decision, Right, UnixSeconds};
use plexus_store::{Change, Committed, StoreError};

use crate::book::Book;
use crate::runtime::now;

/// After how long an approval is tried again that the store cannot read or change.
const POSTPONED_SECS: u64 = 60;

impl Book {
    /// Lets approvals expire, for as long as it is polled.
    pub async fn run_expiry(&self) -> Infallible {
        loop {
            let approval = self.expiry.due().await;
            let commits = &self.commits;
            // An approval that was removed, or that cannot be read, must not delay the others.
            let next = commits.retry(|| async {
                match self.let_expire(approval).await {
                    Err(StoreError::Unusable(why)) => {
                        tracing::error!(%approval, why, "an approval cannot expire; trying again later");
                        Ok(Some(now() + POSTPONED_SECS))
                    }
                    next => next,
                }
            });
            if let Some(at) = next.await {
                self.expiry.set(approval, Some(at));
            }
        }
    }

    /// Lets an approval expire, if it is due. Returns its deadline if it is still pending.
    async fn let_expire(&self, approval: ApprovalId) -> Result<Option<UnixSeconds>, StoreError> {
        let committed = match self.commits.commit(vec![expire(approval)]).await {
            Err(StoreError::Refused(_)) => Committed::default(),
            answer => answer?,
        };
        if !committed.approvals.is_empty() {
            // The commit has removed the deadline.
            return Ok(None);
        }
        // It was resolved or removed, or its deadline has changed: by a caller, or because the clock was set.
        let row = self.commits.ledger().approval(approval).await?;
        let row = row.filter(|row| row.approval.status == ApprovalStatus::Pending);
        let at = row.and_then(|row| row.approval.expires_at);
        if at.is_none() {
            self.expiry.set(approval, None);
        }
        Ok(at)
    }
}

fn expire(approval: ApprovalId) -> Change {
    let decision = Decision {
        approve: false,
        message: Some("Nobody answered in time.".to_owned()),
        updated_input: None,
        mode: None,
        interrupt: false,
        rule: None,
        by: Decider::Hub,
        right: Right::Expiry,
    };
    Change::ResolveIfPending { approval, status: ApprovalStatus::Expired, decision: Box::new(decision) }
}
