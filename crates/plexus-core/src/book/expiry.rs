//! Approvals that nobody answers in time. One task sleeps until the next deadline; a deadline that passed while the
//! hub was away expires when it is back.

use std::convert::Infallible;

use plexus_protocol::{ApprovalId, ApprovalStatus, Decider, Decision, Right};
use plexus_store::{Change, Committed, StoreError};

use super::Book;

impl Book {
    /// Lets approvals expire when their time has come, for as long as it is polled.
    pub(crate) async fn see_to_deadlines(&self) -> Infallible {
        loop {
            let approval = self.expiry.due().await;
            let made = self
                .held(|| async {
                    match self.commit(vec![expire(approval)]).await {
                        // An approval that is no longer there must not hold up the others.
                        Err(StoreError::Refused(_)) => Ok(Committed::default()),
                        answer => answer,
                    }
                })
                .await;
            if made.approvals.is_empty() {
                // It has ended, is not there any more, or its time is another one: by the book, or because the clock was set.
                let row = self.held(|| self.ledger.approval(approval)).await;
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
