//! What stands between a key and an answer: a hub that answers, a moment to read, and all of it on the screen. Each guard says why it
//! holds a key back.

use std::time::{Duration, Instant};

use super::model::{HubIs, Model};

/// How long a question has to have been there.
const A_MOMENT: Duration = Duration::from_millis(400);

/// Whether nothing can be answered now, which is said.
pub(super) fn disconnected(model: &mut Model) -> bool {
    let away = model.hub == HubIs::Away;
    if away {
        model.said = "Disconnected: nothing can be answered before the hub is back".to_owned();
    }
    away
}

/// Whether all of what is to be allowed was on the screen; else it says how to get there.
pub(super) fn shown_in_full(model: &mut Model) -> bool {
    let unread = model.selected().is_some_and(|approval| model.is_unread(approval));
    if unread {
        model.said = "not all of it is here yet: it is being read (enter tries again)".to_owned();
    } else if !model.seen.all() {
        let (upto, all) = (model.seen.upto(), model.shown.rows.len());
        model.said = format!("{upto} of {all} rows were shown: space reads on, then it can be allowed");
    }
    !unread && model.seen.all()
}

/// Whether what stands on the screen has only just taken its place.
pub(super) fn is_too_soon(model: &mut Model, at: Instant) -> bool {
    let soon = model.came_at.is_some_and(|came| at.saturating_duration_since(came) < A_MOMENT);
    if soon {
        model.said = "this one has only just come; read it, then press again".to_owned();
    }
    soon
}
