//! Timing marks of a commit: `tracing` events at the boundaries of its stages, with the id of the call or the approval that it is about.
//! `cargo xtask trace` reads them. They are off by default, and then cost one comparison each.

use tracing::Level;

use crate::Change;

/// The target of timing marks; the same as in `plexus-agent`.
const TIMING: &str = "plexus::timing";

/// The subject of a commit.
pub(crate) struct Subject {
    step: &'static str,
    id: String,
}

/// The subject of these changes; `None` while marks are off.
pub(crate) fn subject(changes: &[Change]) -> Option<Subject> {
    if !tracing::enabled!(target: TIMING, Level::TRACE) {
        return None;
    }
    let subject = changes.iter().find_map(|change| match change {
        Change::Call(call, _) => Some(Subject { step: "gate", id: call.tool_use_id.clone() }),
        Change::Ask(new) => Some(Subject { step: "ask", id: new.approval.tool_use_id.clone() }),
        Change::Resolve { approval, .. } => Some(Subject { step: "resolve", id: approval.to_string() }),
        _ => None,
    });
    Some(subject.unwrap_or_else(|| Subject { step: "other", id: String::new() }))
}

impl Subject {
    pub(crate) fn mark(&self, mark: &'static str) {
        tracing::trace!(target: TIMING, mark, step = self.step, id = self.id);
    }
}

/// Marks a boundary of the commit of these changes.
pub(crate) fn mark(mark: &'static str, changes: &[Change]) {
    if let Some(subject) = subject(changes) {
        subject.mark(mark);
    }
}
