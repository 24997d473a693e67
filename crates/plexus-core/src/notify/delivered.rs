//! The delivered notifications, in a file next to the store: the position in the feed, and the open approvals that were
//! reported. The file is written before each delivery, so that a hub that was killed repeats nothing.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use plexus_protocol::ApprovalId;
use serde::{Deserialize, Serialize};

/// The delivered notifications.
#[derive(Debug)]
pub(super) struct Delivered {
    path: PathBuf,
    state: StoredState,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct StoredState {
    /// The position up to which the feed was reported; `None` before the first start.
    feed: Option<u64>,
    /// The open approvals that were reported.
    approvals: BTreeSet<ApprovalId>,
}

impl Delivered {
    /// Reads the file of an earlier hub. A file that cannot be read counts as missing.
    pub(super) fn in_dir(dir: &Path) -> Self {
        let path = dir.join("notified.json");
        let state = std::fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Self { path, state: state.unwrap_or_default() }
    }

    /// The position to start from in a feed that ends at `head`. Entries from before notifications were first turned on
    /// are not reported.
    pub(super) fn start_at(&mut self, head: u64) -> u64 {
        let from = self.state.feed.unwrap_or(head).min(head);
        self.state.feed = Some(from);
        from
    }

    pub(super) fn contains(&self, id: ApprovalId) -> bool {
        self.state.approvals.contains(&id)
    }

    pub(super) fn add(&mut self, id: ApprovalId) {
        self.state.approvals.insert(id);
    }

    /// Removes a resolved approval, which is never reported again. The next write stores this.
    pub(super) fn forget(&mut self, id: ApprovalId) {
        self.state.approvals.remove(&id);
    }

    pub(super) fn advance_to(&mut self, number: u64) {
        self.state.feed = Some(number);
    }

    /// The current content of the file, ready to be written.
    pub(super) fn file_content(&self) -> DeliveredFile {
        DeliveredFile { path: self.path.clone(), text: serde_json::to_vec(&self.state).unwrap_or_default() }
    }
}

/// The content of the file, ready to be written.
pub(super) struct DeliveredFile {
    path: PathBuf,
    text: Vec<u8>,
}

impl DeliveredFile {
    /// Replaces the file atomically.
    pub(super) fn write(&self) -> io::Result<()> {
        let next = self.path.with_extension("json.next");
        std::fs::write(&next, &self.text)?;
        std::fs::rename(&next, &self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_hub_knows_the_delivered_notifications() {
        let dir = tempfile::tempdir().unwrap();
        let (one, other) = (ApprovalId::random(), ApprovalId::random());
        let mut delivered = Delivered::in_dir(dir.path());
        assert_eq!(delivered.start_at(7), 7, "no earlier events");
        delivered.add(one);
        delivered.add(other);
        delivered.forget(other);
        delivered.advance_to(9);
        delivered.file_content().write().unwrap();
        let mut next = Delivered::in_dir(dir.path());
        assert!(next.contains(one) && !next.contains(other));
        assert_eq!(next.start_at(12), 9, "events without a hub are notified");
        assert_eq!(next.start_at(3), 3, "a restored store may have fewer entries");
    }
}
