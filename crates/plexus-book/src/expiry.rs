//! Approvals that expire. One task sleeps until the next deadline. A deadline that passed while no hub ran takes effect when
//! the next hub starts.

use std::convert::Infallible;

use plexus_protocol::{ApprovalId, ApprovalStatus, Decider, Decision, Right};
use plexus_store::{Change, Committed, StoreError};

use crate::book::Book;

impl Book {
    /// Lets approvals expire, for as long as it is polled.
    pub async fn run_expiry(&self) -> Infallible {
        loop {
            let approval = self.expiry.due().await;
            let commits = &self.commits;
            let committed = commits
                .retry(|| async {
                    match commits.commit(vec![expire(approval)]).await {
                        // An approval that was removed must not delay the others.
                        Err(StoreError::Refused(_)) => Ok(Committed::default()),
                        answer => answer,
                    }
                })
                .await;
            if committed.approvals.is_empty() {
                // It was resolved or removed, or its deadline has changed: by a caller, or because the clock was set.
                let row = commits.retry(|| commits.ledger().approval(approval)).await;
                let row = row.filter(|row| row.approval.status == ApprovalStatus::Pending);
                self.expiry.set(approval, row.and_then(|row| row.approval.expires_at));
            }
        }
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
