//! Guards between a key and an answer: the hub is connected, the approval has been on the screen for a moment, and all of it was shown. Each
//! guard sets a message that explains why a key had no effect.

use std::time::{Duration, Instant};

use super::model::{HubIs, Model};

/// How long an approval must be on the screen.
const A_MOMENT: Duration = Duration::from_millis(400);

/// Whether the hub is disconnected.
pub(super) fn disconnected(model: &mut Model) -> bool {
    let disconnected = model.hub == HubIs::Disconnected;
    if disconnected {
        model.said = "Disconnected: you cannot answer until the hub responds".to_owned();
    }
    disconnected
}

/// Whether all of the approval was on the screen.
pub(super) fn shown_in_full(model: &mut Model) -> bool {
    let unread = model.selected().is_some_and(|approval| model.is_unread(approval));
    if unread {
        model.said = "the approval is still being read (Enter retries)".to_owned();
    } else if !model.seen.all() {
        let (upto, all) = (model.seen.upto(), model.shown.rows.len());
        model.said = format!("{upto} of {all} rows were shown; press space to read on, then allow it");
    }
    !unread && model.seen.all()
}

/// Whether the approval has only just appeared.
pub(super) fn is_too_soon(model: &mut Model, at: Instant) -> bool {
    let soon = model.came_at.is_some_and(|came| at.saturating_duration_since(came) < A_MOMENT);
    if soon {
        model.said = "this approval has just appeared; read it, then press the key again".to_owned();
    }
    soon
}
