//! Applies an event to the model: changes in the hub, responses, time. It is pure: it changes the model and returns the effects to perform.
//! `keys` handles keys.

use std::time::Instant;

use crossterm::event::KeyEvent;
use plexus_protocol::claudecode::SessionView;
use plexus_protocol::{Approval, ApprovalId, Object, SessionId};
use serde_json::Value;

use super::keys;
use super::log::Log;
use super::model::{Confirmation, HubState, InputPurpose, Interaction, Mode, Model, Pane};
use crate::answer_confirmation::ending;
use crate::editor::Editable;
use crate::escape::one_line;
use crate::review::Reviewed;

/// An event.
#[derive(Debug)]
pub(crate) enum Event {
    /// A key was pressed.
    Key(KeyEvent),
    /// A text was pasted.
    Pasted(String),
    /// The terminal was resized.
    Resized,
    /// The current time, in Unix seconds.
    Tick(u64),
    /// The hub is disconnected.
    Disconnected,
    /// The hub is connected, and these approvals are open.
    Open(Vec<Approval>),
    /// The list of sessions.
    Sessions(Vec<SessionView>),
    /// An approval was created or escalated.
    Asked(Box<Approval>),
    /// An approval was resolved.
    Resolved(Box<Approval>),
    /// An event of a session.
    Logged(SessionId, Value),
    /// An approval was read in full.
    Read(Box<Reviewed>),
    /// An approval could not be read.
    NotRead(ApprovalId, String),
    /// The outcome of a call.
    Outcome(String),
    /// An answer was rejected. The approval stays open.
    NotAnswered(ApprovalId, String),
    /// The editor returned an input.
    Edited(ApprovalId, Object),
}

/// An effect to perform.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    /// Call a method; an event reports the outcome.
    Call {
        /// The method.
        method: &'static str,
        /// Its parameters.
        params: Value,
        /// The approval that it answers.
        answers: Option<ApprovalId>,
        /// The message on success.
        done: String,
    },
    /// Follow the log of this session.
    Follow(Option<SessionId>),
    /// Read an approval in full.
    Read(ApprovalId),
    /// Open an input in the editor.
    Edit(ApprovalId, Editable),
    /// Quit.
    Quit,
}

/// Applies an event at this moment and returns the effects.
pub(crate) fn update(model: &mut Model, event: Event, at: Instant) -> Vec<Effect> {
    let (before, question) = (model.session, model.approval);
    let chosen = matches!(event, Event::Key(_));
    let mut effects = match event {
        Event::Key(key) => keys::pressed(model, key, at),
        Event::Pasted(text) => keys::pasted(model, &text),
        Event::Resized => Vec::new(),
        Event::Tick(now) => {
            model.now = now;
            if model.hub == HubState::Disconnected {
                model.disconnected_since.get_or_insert(now);
            }
            // Only a deadline changes with time.
            if model.selected().is_some_and(|approval| approval.expires_at.is_some()) {
                model.forget_rows();
            }
            Vec::new()
        }
        Event::Disconnected => {
            model.hub = HubState::Disconnected;
            Vec::new()
        }
        Event::Open(open) => {
            if model.hub == HubState::Disconnected && !model.message.is_empty() {
                model.message = "Reconnected.".to_owned();
            }
            model.hub = HubState::Connected;
            model.disconnected_since = None;
            model.reading = None;
            // Files may have changed meanwhile, so they are read again.
            model.read.clear();
            replace_approvals(model, open);
            reselect(model);
            Vec::new()
        }
        Event::Sessions(sessions) => {
            model.sessions = sessions;
            reselect(model);
            Vec::new()
        }
        Event::Asked(approval) => {
            asked(model, *approval);
            reselect(model);
            Vec::new()
        }
        Event::Resolved(approval) => {
            ended(model, &approval);
            reselect(model);
            Vec::new()
        }
        Event::Logged(session, event) => {
            if model.log.session == Some(session) {
                model.log.add(&event);
            }
            Vec::new()
        }
        Event::Read(reviewed) => {
            let Reviewed { approval, file } = *reviewed;
            model.reading = model.reading.filter(|id| *id != approval.id);
            if let Some(kept) = model.approvals.iter_mut().find(|kept| kept.id == approval.id) {
                model.read.insert(approval.id, file);
                *kept = approval;
                model.forget_rows();
            }
            Vec::new()
        }
        Event::NotRead(approval, why) => {
            model.message = one_line(&format!("{approval} could not be read: {why}; press Enter to retry"));
            Vec::new()
        }
        Event::Outcome(message) => {
            model.message = one_line(&message);
            Vec::new()
        }
        Event::NotAnswered(approval, message) => {
            model.answered.remove(&approval);
            model.message = one_line(&message);
            Vec::new()
        }
        Event::Edited(approval, input) => {
            reselect(model);
            if model.approvals_shown().iter().any(|shown| shown.id == approval) {
                (model.approval, model.pane) = (Some(approval), Pane::Approvals);
                model.mode = Mode::Confirming(Confirmation::Edited(approval, input));
                model.down = 0;
                // A key that was meant for the editor must not confirm.
                model.auto_selected_at = Some(at);
            } else {
                model.message = "the approval is no longer open; nothing was answered".to_owned();
            }
            model.forget_rows();
            Vec::new()
        }
    };
    if model.approval != question && !chosen {
        model.auto_selected_at = Some(at);
    }
    effects.extend(read_selected(model));
    if model.session != before {
        model.log = Log::of(model.session);
        effects.push(Effect::Follow(model.session));
    }
    effects
}

/// Reads the selected approval in full, unless it is already read or being read.
fn read_selected(model: &mut Model) -> Option<Effect> {
    let id = model.selected().filter(|approval| model.is_unread(approval))?.id;
    if model.hub == HubState::Disconnected || model.reading == Some(id) {
        return None;
    }
    model.reading = Some(id);
    Some(Effect::Read(id))
}

/// Replaces the open approvals; the ones read in full keep their input.
fn replace_approvals(model: &mut Model, open: Vec<Approval>) {
    let had = std::mem::take(&mut model.approvals);
    model.approvals = open;
    for old in had.into_iter().filter(|old| !old.truncated) {
        if let Some(new) = model.approvals.iter_mut().find(|new| new.id == old.id && new.truncated) {
            *new = old;
        }
    }
    model.forget_rows();
}

fn asked(model: &mut Model, approval: Approval) {
    if approval.status != plexus_protocol::ApprovalStatus::Pending {
        // It was resolved meanwhile; another event reports that.
        return;
    }
    match model.approvals.iter_mut().find(|kept| kept.id == approval.id) {
        Some(kept) => {
            let read = std::mem::take(&mut kept.input);
            let (digest, whole) = (kept.digest.take(), !kept.truncated && approval.truncated);
            *kept = approval;
            if whole {
                (kept.input, kept.digest, kept.truncated) = (read, digest, false);
            }
            model.forget_rows();
        }
        None => model.approvals.push(approval),
    }
}

/// Removes an approval that another client resolved, and what was being typed for it.
fn ended(model: &mut Model, approval: &Approval) {
    let known = model.open(approval.id).is_some();
    model.approvals.retain(|kept| kept.id != approval.id);
    model.read.remove(&approval.id);
    let here = model.answered.remove(&approval.id);
    if known && !here {
        model.message = one_line(&ending(approval));
    }
    if about(&model.mode) == Some(approval.id) {
        model.mode = Mode::Moving;
    }
}

/// The approval that the mode refers to.
pub(super) fn about(mode: &Mode) -> Option<ApprovalId> {
    match mode {
        Mode::Typing(
            InputPurpose::Reason(id)
            | InputPurpose::Opinion(id)
            | InputPurpose::Rule(id)
            | InputPurpose::Time(id)
            | InputPurpose::More(id)
            | InputPurpose::Answer { approval: id, .. },
            _,
        )
        | Mode::Confirming(
            Confirmation::Edited(id, _)
            | Confirmation::Remember(id, _)
            | Confirmation::FreeText { approval: id, .. },
        ) => Some(*id),
        Mode::Typing(InputPurpose::Filter, _)
        | Mode::Confirming(Confirmation::Stop(_))
        | Mode::Moving
        | Mode::Help => None,
    }
}

/// Selects an existing approval and session, if there are any.
pub(super) fn reselect(model: &mut Model) {
    let open: Vec<(ApprovalId, SessionId)> =
        model.approvals_shown().iter().map(|approval| (approval.id, approval.session_id)).collect();
    if !open.iter().any(|(id, _)| Some(*id) == model.approval) {
        let (id, session) = open.first().copied().unzip();
        model.approval = id;
        model.down = 0;
        model.forget_rows();
        // A new approval is selected unless the user looks at something else.
        if let Some(session) = session
            && (model.interaction == Interaction::Off || model.pane == Pane::Approvals)
        {
            model.pane = Pane::Approvals;
            model.session = Some(session);
        }
    }
    // A typed line applies to the approval on the screen only.
    if about(&model.mode).is_some_and(|id| Some(id) != model.approval) {
        model.mode = Mode::Moving;
        model.message = "the approval is no longer in the list; nothing was answered".to_owned();
    }
    let sessions: Vec<SessionId> = model.sessions_shown().iter().map(|session| session.id).collect();
    let still_open =
        model.session.is_some_and(|id| sessions.contains(&id) || open.iter().any(|(_, of)| *of == id));
    if !still_open {
        model.session = sessions.first().copied();
    }
}
