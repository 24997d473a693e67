//! The rows of permission rules, tokens and the audit log.

use plexus_protocol::audit::{AuditEntry, AuditHead};
use plexus_protocol::{TokenName, UnixSeconds};

use super::Stored;
use crate::{NewRule, TokenRow};

/// Permission rules, tokens and audit entries.
pub(crate) trait AuthorityRows {
    /// Inserts a permission rule under the next number, which it returns.
    fn insert_rule(&mut self, rule: &NewRule, at: UnixSeconds) -> Stored<u64>;
    /// How many permission rules were created and revoked so far.
    fn rules_version(&mut self) -> Stored<u64>;
    /// Whether a rule is not revoked.
    fn rule_is_in_force(&self, number: u64) -> Stored<bool>;
    /// Marks a rule as revoked; returns whether it was in force.
    fn revoke_rule(&mut self, number: u64, at: UnixSeconds) -> Stored<bool>;

    /// The tokens of this name that are not revoked; they may have expired.
    fn tokens_named(&self, name: &TokenName) -> Stored<Vec<TokenRow>>;
    /// Inserts a token.
    fn insert_token(&mut self, token: &TokenRow, hash: &str, at: UnixSeconds) -> Stored<()>;
    /// Marks the tokens of this name as revoked.
    fn revoke_tokens(&mut self, name: &TokenName, at: UnixSeconds) -> Stored<()>;

    /// The last entry of the audit log.
    fn audit_head(&self) -> Stored<AuditHead>;
    /// Appends an entry, which becomes the head.
    fn append_audit_entry(&mut self, entry: &LogEntry<'_>) -> Stored<()>;
}

/// An audit entry as it is stored.
pub(crate) struct LogEntry<'a> {
    pub(crate) head: &'a AuditHead,
    pub(crate) entry: &'a AuditEntry,
    /// The entry as JSON: the text that its hash covers.
    pub(crate) text: &'a str,
}
