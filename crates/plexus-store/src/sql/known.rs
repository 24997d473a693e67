//! The values that the writing thread caches between transactions. A failure clears the cache; `BEGIN` replaces it if another hub has committed since
//! (`Database::update_known`). The cache contains the head of the audit log, so a log that is rewritten under a running hub breaks at the next entry.

use plexus_protocol::audit::AuditHead;

use crate::StoreError;

/// Cached values; `None` means that the value must be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// The head of the audit log.
    pub(crate) audit_head: Option<AuditHead>,
    /// The number of the last feed entry. If it is `None`, the INSERT returns the number.
    pub(crate) feed_head: Option<u64>,
    /// How many permission rules were created and revoked.
    pub(crate) rules_version: Option<u64>,
    /// Whether any session has a budget.
    pub(crate) any_budget: Option<bool>,
}

impl Known {
    /// What is known after a commit has failed. A refusal has changed nothing; after another failure all is read again.
    pub(crate) fn after(self, error: &StoreError) -> Self {
        if matches!(error, StoreError::Refused(_)) { self } else { Self::default() }
    }

    /// Takes the number of the next feed entry.
    pub(crate) fn next_in_feed(&mut self) -> Option<u64> {
        self.feed_head = Some(self.feed_head? + 1);
        self.feed_head
    }
}
