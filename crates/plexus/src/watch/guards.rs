//! Guards between a key and an answer: the hub is connected, the approval has been on the screen for a moment, and all of it was shown. Each
//! guard sets a message that explains why a key had no effect.

use std::time::{Duration, Instant};

use super::model::{HubState, Model};

/// How long an approval must be on the screen.
const A_MOMENT: Duration = Duration::from_millis(400);

/// Whether the hub is disconnected.
pub(super) fn disconnected(model: &mut Model) -> bool {
    let disconnected = model.hub == HubState::Disconnected;
    if disconnected {
        model.message = "Disconnected: you cannot answer until the hub responds".to_owned();
    }
    disconnected
}

/// Whether all of the approval was on the screen.
pub(super) fn shown_in_full(model: &mut Model) -> bool {
    let unread = model.selected().is_some_and(|approval| model.is_unread(approval));
    if unread {
        model.message = "the approval is still being read (Enter retries)".to_owned();
    } else if !model.seen.all() {
        let (upto, all) = (model.seen.upto(), model.shown.rows.len());
        model.message = format!("{upto} of {all} rows were shown; press space to read on, then allow it");
    }
    !unread && model.seen.all()
}

/// Whether the approval has only just appeared.
pub(super) fn is_too_soon(model: &mut Model, at: Instant) -> bool {
    let call_with_timeout =
        model.auto_selected_at.is_some_and(|came| at.saturating_duration_since(came) < A_MOMENT);
    if call_with_timeout {
        model.message = "this approval has just appeared; read it, then press the key again".to_owned();
    }
    call_with_timeout
}
