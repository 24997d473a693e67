//! The audit log is a chain: each entry has a number and a hash that covers the entry before it. The hash is SHA-256, in
//! hex, over the previous hash, the number and the stored text of the entry, separated by newlines.

use plexus_protocol::audit::{AuditEntry, AuditHead, AuditKind};
use plexus_protocol::{Decider, SessionId, UnixSeconds};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::{Commit, unwritable};
use crate::rows::{LogEntry, Stored};

impl Commit<'_> {
    /// Appends an entry to the audit log. The entry gets the path that its session has now: the entry outlives the session
    /// and its name.
    pub(super) fn audit(&mut self, entry: AuditEntry) -> Stored<()> {
        let session_path = match entry.session_id {
            Some(id) => self.operator_path(id, entry.session_name.clone())?,
            None => None,
        };
        let entry = &AuditEntry { session_path, ..entry };
        let text = serde_json::to_string(entry).map_err(|error| unwritable(&error))?;
        let head = next(&self.rows.audit_head()?, &text);
        self.rows.append_audit_entry(&LogEntry { head: &head, entry, text: &text })?;
        self.published.audit = Some(head);
        Ok(())
    }
}

/// The head of the log after an entry with this text.
pub(crate) fn next(before: &AuditHead, text: &str) -> AuditHead {
    let number = before.number + 1;
    let digest = Sha256::new()
        .chain_update(&before.hash)
        .chain_update(format!("\n{number}\n"))
        .chain_update(text)
        .finalize();
    AuditHead { number, hash: digest.iter().map(|byte| format!("{byte:02x}")).collect() }
}

/// An entry as a backend stores it: its text, and the columns that repeat parts of the text for searching.
pub(crate) struct StoredEntry {
    pub(crate) number: i64,
    pub(crate) hash: String,
    pub(crate) text: String,
    pub(crate) columns: Columns,
}

/// The parts of an entry that have a column of their own.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Columns {
    pub(crate) at: UnixSeconds,
    pub(crate) kind: AuditKind,
    pub(crate) who: String,
    pub(crate) session: Option<String>,
    pub(crate) tool_name: Option<String>,
}

/// The same parts as they are in the text.
#[derive(Deserialize)]
struct Repeated {
    at: UnixSeconds,
    kind: AuditKind,
    by: Decider,
    session_id: Option<SessionId>,
    tool_name: Option<String>,
}

impl From<Repeated> for Columns {
    fn from(entry: Repeated) -> Self {
        let Repeated { at, kind, by, session_id, tool_name } = entry;
        Self { at, kind, who: by.key(), session: session_id.map(|id| id.to_string()), tool_name }
    }
}

/// The parts of an entry that have columns, if the whole cannot be read.
pub(crate) fn readable_part(text: &str) -> Option<AuditEntry> {
    let Repeated { at, kind, by, session_id, tool_name } = repeated(text).ok()?;
    Some(AuditEntry { session_id, tool_name, ..AuditEntry::new(at, kind, "unreadable", by) })
}

fn repeated(text: &str) -> serde_json::Result<Repeated> {
    let mut json = serde_json::Deserializer::from_str(text);
    json.disable_recursion_limit();
    Repeated::deserialize(&mut json)
}

/// Checks that a stored entry follows `before`; returns the next head, or what is wrong with the entry.
pub(crate) fn verify(before: &AuditHead, stored: &StoredEntry) -> Result<AuditHead, String> {
    let expected = before.number + 1;
    if u64::try_from(stored.number) != Ok(expected) {
        return Err(if stored.number > i64::try_from(expected).unwrap_or(i64::MAX) {
            "is missing".to_owned()
        } else {
            format!("is not the first: the log also has an entry {}", stored.number)
        });
    }
    let head = next(before, &stored.text);
    if head.hash != stored.hash {
        return Err("does not match its hash and the entry before it".to_owned());
    }
    let repeated = repeated(&stored.text).map_err(|error| format!("cannot be read: {error}"))?;
    if Columns::from(repeated) == stored.columns {
        Ok(head)
    } else {
        Err("has a column that differs from its entry".to_owned())
    }
}
