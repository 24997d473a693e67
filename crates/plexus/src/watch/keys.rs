//! The effect of each key. A key answers only an approval that has been on the screen for a moment, so that a key meant for another approval
//! does not answer a new one. A call is allowed only after all of it was on the screen, and nothing is answered while the hub is
//! disconnected.

use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use plexus_protocol::{Approval, ApprovalId, ApprovalKind, AskedOf, Object};
use serde_json::json;

use super::answers::{self, answer, to_session};
use super::guards::{disconnected, is_too_soon, shown_in_full};
use super::model::{Confirmation, InputPurpose, Interaction, Mode, Model, Pane};
use super::update::{Effect, reselect};
use crate::editor::Editable;
use crate::remember;
use crate::review::question::questions;

/// The size of a page in the log.
const PAGE: isize = 10;

/// The keys and what they do, for the help.
pub(crate) const KEYS: &[(&str, &str)] = &[
    ("j k ↓ ↑", "move; in the log: scroll"),
    ("tab", "sessions, approvals, log"),
    ("pgdn pgup", "next page, previous page (also space and b)"),
    ("enter", "read the approval from the hub again"),
    ("a", "allow, after all was shown; answer a question; accept a plan"),
    ("1 to 9", "select an option of a question; enter sends the answer"),
    ("d", "deny, with or without a reason"),
    ("e", "edit the input in $EDITOR, then confirm the changes"),
    ("r", "allow and add a rule"),
    ("p", "escalate an approval of an agent to the next level"),
    ("E", "extend the deadline; for a budget: set the amount"),
    ("i", "interrupt the turn of the session"),
    ("s", "stop the session and all below it"),
    ("/", "filter by name"),
    ("?", "this help"),
    ("q", "quit; approvals stay open"),
];

/// Handles a key.
pub(crate) fn pressed(model: &mut Model, key: KeyEvent, at: Instant) -> Vec<Effect> {
    if key.kind == KeyEventKind::Release {
        return Vec::new();
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
        return vec![Effect::Quit];
    }
    // Only keys without modifiers answer: Ctrl-A is not `a`.
    let held = key.modifiers - KeyModifiers::SHIFT;
    let clears = held == KeyModifiers::CONTROL
        && key.code == KeyCode::Char('u')
        && matches!(model.mode, Mode::Typing(..));
    if !held.is_empty() && !clears {
        return Vec::new();
    }
    match std::mem::replace(&mut model.mode, Mode::Moving) {
        Mode::Moving => moving(model, key, at),
        Mode::Help => Vec::new(),
        Mode::Typing(wanted, text) => typing(model, key, wanted, text),
        Mode::Confirming(doubt) => asking(model, key, doubt, at),
    }
}

/// Adds a paste to the typed line. A paste never counts as keys.
pub(crate) fn pasted(model: &mut Model, pasted: &str) -> Vec<Effect> {
    if let Mode::Typing(_, text) = &mut model.mode {
        text.push_str(pasted.lines().next().unwrap_or_default());
    }
    Vec::new()
}

fn moving(model: &mut Model, key: KeyEvent, at: Instant) -> Vec<Effect> {
    let message = std::mem::take(&mut model.message);
    model.interaction = Interaction::On;
    match key.code {
        KeyCode::Char('q') => return vec![Effect::Quit],
        KeyCode::Char('?') => model.mode = Mode::Help,
        KeyCode::Char('j') | KeyCode::Down => step(model, 1),
        KeyCode::Char('k') | KeyCode::Up => step(model, -1),
        KeyCode::PageDown | KeyCode::Char(' ') => read_on(model, 1),
        KeyCode::PageUp | KeyCode::Char('b') => read_on(model, -1),
        KeyCode::Tab => {
            model.pane = match model.pane {
                Pane::Sessions => Pane::Approvals,
                Pane::Approvals => Pane::Log,
                Pane::Log => Pane::Sessions,
            }
        }
        KeyCode::Char('/') => model.mode = Mode::Typing(InputPurpose::Filter, model.filter.clone()),
        KeyCode::Esc => {
            model.filter.clear();
            reselect(model);
        }
        KeyCode::Char(key @ ('i' | 's')) => return on_session(model, key),
        // An approval that is not read yet is read again.
        KeyCode::Enter => model.reading = None,
        KeyCode::Char(key @ ('a' | 'd' | 'e' | 'r' | 'p' | 'E' | '1'..='9')) => {
            if model.approval.is_some_and(|id| model.answered.contains(&id)) {
                model.message = message;
                return Vec::new();
            }
            let effects = on_question(model, key, at);
            // A key pressed twice must not hide the message of the first one.
            if model.selected().is_none() && !message.is_empty() {
                model.message = message;
            }
            return effects;
        }
        // Keep the last message.
        _ => model.message = message,
    }
    Vec::new()
}

fn on_session(model: &mut Model, key: char) -> Vec<Effect> {
    if disconnected(model) {
        return Vec::new();
    }
    let Some(session) = model.selected_session().map(|session| session.id) else { return Vec::new() };
    if model.drawn_session != Some(session) {
        model.message = "the list does not show this session; Esc shows all sessions".to_owned();
        return Vec::new();
    }
    if key == 's' {
        model.mode = Mode::Confirming(Confirmation::Stop(session));
        return Vec::new();
    }
    to_session(model, Some(session), "claudecode.interrupt", "interrupted")
}

fn on_question(model: &mut Model, key: char, at: Instant) -> Vec<Effect> {
    let Some(approval) = model.selected().cloned() else {
        model.message = "no approval is selected".to_owned();
        return Vec::new();
    };
    if disconnected(model) {
        return Vec::new();
    }
    if model.drawn != Some(approval.id) {
        model.pane = Pane::Approvals;
        model.session = Some(approval.session_id);
        model.message = "read this approval, then press the key again".to_owned();
        return Vec::new();
    }
    if is_too_soon(model, at) {
        return Vec::new();
    }
    let id = approval.id;
    let allows = matches!(
        (key, approval.kind),
        ('a' | 'r', _) | ('e' | 'E', ApprovalKind::Budget) | ('1'..='9', ApprovalKind::Question)
    );
    if allows && !shown_in_full(model) {
        return Vec::new();
    }
    match (key, approval.kind) {
        ('a', ApprovalKind::Question) => ask_answers(model, &approval, None),
        ('1'..='9', ApprovalKind::Question) => ask_answers(model, &approval, Some(key)),
        ('a', _) => return answer(model, &approval, json!({"approve": true})),
        ('d', _) => model.mode = Mode::Typing(InputPurpose::Reason(id), String::new()),
        ('e', ApprovalKind::Budget) | ('E', ApprovalKind::Budget) => {
            model.mode = Mode::Typing(InputPurpose::More(id), String::new());
        }
        ('e', _) if approval.truncated => {
            model.message = "the approval is still being read (Enter retries)".to_owned();
        }
        ('e', _) => return vec![Effect::Edit(id, Editable::of(&approval))],
        ('r', ApprovalKind::Tool) => {
            let rule = remember::suggested(&approval).unwrap_or_default();
            model.mode = Mode::Typing(InputPurpose::Rule(id), rule);
        }
        ('r', _) => model.message = "a rule is possible for tool calls only".to_owned(),
        ('p', _) if approval.asked_of == AskedOf::Operator => {
            model.message = "this approval is already yours: there is no next level".to_owned();
        }
        ('p', _) => model.mode = Mode::Typing(InputPurpose::Opinion(id), String::new()),
        ('E', _) => model.mode = Mode::Typing(InputPurpose::Time(id), "3600".to_owned()),
        _ => {}
    }
    Vec::new()
}

/// Asks for the answer to the first question. `digit` is the first typed character.
fn ask_answers(model: &mut Model, approval: &Approval, digit: Option<char>) {
    let questions = questions(&approval.input);
    if questions.is_empty() {
        model.message = "the questions are invalid; press e and add `answers` to the input".to_owned();
        return;
    }
    let text = digit.and_then(|digit| Some(questions.first()?.with_digit("", digit))).unwrap_or_default();
    let wanted = InputPurpose::Answer { approval: approval.id, questions, given: Object::new() };
    model.mode = Mode::Typing(wanted, text);
}

fn typing(model: &mut Model, key: KeyEvent, wanted: InputPurpose, mut text: String) -> Vec<Effect> {
    if matches!(wanted, InputPurpose::Answer { .. }) {
        // The message about the previous answer.
        model.message.clear();
    }
    match key.code {
        KeyCode::Esc => {
            if wanted == InputPurpose::Filter {
                model.filter.clear();
                reselect(model);
            }
            return Vec::new();
        }
        KeyCode::Enter if wanted == InputPurpose::Filter => return Vec::new(),
        KeyCode::Enter => {
            // The text is kept until the hub is connected.
            if disconnected(model) {
                model.mode = Mode::Typing(wanted, text);
                return Vec::new();
            }
            return answers::typed(model, wanted, text.trim());
        }
        KeyCode::Backspace => drop(text.pop()),
        KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => text.clear(),
        KeyCode::Char(c) => match &wanted {
            InputPurpose::Answer { questions, .. } if c.is_ascii_digit() => {
                if let Some(question) = questions.first() {
                    text = question.with_digit(&text, c);
                }
            }
            _ => text.push(c),
        },
        _ => {}
    }
    if wanted == InputPurpose::Filter {
        model.filter.clone_from(&text);
        reselect(model);
    }
    model.mode = Mode::Typing(wanted, text);
    Vec::new()
}

fn asking(model: &mut Model, key: KeyEvent, doubt: Confirmation, at: Instant) -> Vec<Effect> {
    // An earlier message must not hide the prompt.
    model.message.clear();
    match key.code {
        KeyCode::Char('y') => {
            model.mode = Mode::Confirming(doubt.clone());
            if disconnected(model) || is_too_soon(model, at) {
                return Vec::new();
            }
            match doubt {
                Confirmation::Stop(session) => {
                    model.mode = Mode::Moving;
                    if model.drawn_session != Some(session) {
                        model.message = "the list no longer shows this session; nothing was done".to_owned();
                        return Vec::new();
                    }
                    to_session(model, Some(session), "claudecode.stop", "stopped")
                }
                Confirmation::Edited(id, input) => {
                    confirmed(model, id, json!({"approve": true, "updated_input": input}))
                }
                Confirmation::Remember(id, rule) => {
                    confirmed(model, id, json!({"approve": true, "remember": {"rule": rule}}))
                }
                Confirmation::FreeText { approval, questions, given, words } => {
                    if model.drawn != Some(approval) || !shown_in_full(model) {
                        return Vec::new();
                    }
                    let Some(approval) = model.open(approval).cloned() else { return Vec::new() };
                    model.mode = Mode::Moving;
                    answers::answer_question(model, &approval, questions, given, words)
                }
            }
        }
        KeyCode::PageDown | KeyCode::PageUp | KeyCode::Char(' ' | 'b') => {
            let back = matches!(key.code, KeyCode::PageUp | KeyCode::Char('b'));
            model.mode = Mode::Confirming(doubt);
            read_on(model, if back { -1 } else { 1 });
            Vec::new()
        }
        KeyCode::Char('n' | 'q') | KeyCode::Esc => {
            model.forget_rows();
            model.down = 0;
            model.message = match doubt {
                Confirmation::FreeText { approval, questions, given, .. } => {
                    let wanted = InputPurpose::Answer { approval, questions, given };
                    model.mode = Mode::Typing(wanted, String::new());
                    String::new()
                }
                Confirmation::Stop(_) => "nothing was done".to_owned(),
                Confirmation::Edited(..) | Confirmation::Remember(..) => {
                    "nothing was answered; the approval stays open".to_owned()
                }
            };
            Vec::new()
        }
        // Other keys do not answer.
        _ => {
            model.mode = Mode::Confirming(doubt);
            Vec::new()
        }
    }
}

/// Sends the answer, if all of it was shown.
fn confirmed(model: &mut Model, id: ApprovalId, params: serde_json::Value) -> Vec<Effect> {
    if model.drawn != Some(id) || !shown_in_full(model) {
        return Vec::new();
    }
    let Some(approval) = model.open(id).cloned() else { return Vec::new() };
    model.mode = Mode::Moving;
    model.forget_rows();
    model.down = 0;
    answer(model, &approval, params)
}

fn step(model: &mut Model, by: isize) {
    match model.pane {
        Pane::Sessions => {
            let ids: Vec<_> = model.sessions_shown().iter().map(|session| session.id).collect();
            model.session = moved(&ids, model.session, by);
        }
        Pane::Approvals => {
            let ids: Vec<ApprovalId> = model.approvals_shown().iter().map(|approval| approval.id).collect();
            let before = model.approval;
            model.approval = moved(&ids, before, by);
            model.session = model.selected().map(|approval| approval.session_id).or(model.session);
            if model.approval != before {
                model.down = 0;
                // The user selected it, so no delay is needed.
                model.auto_selected_at = None;
            }
        }
        Pane::Log => model.log.scroll(by),
    }
}

fn moved<T: Copy + PartialEq>(all: &[T], from: Option<T>, by: isize) -> Option<T> {
    let at = from.and_then(|from| all.iter().position(|one| *one == from));
    let to = at.map_or(0, |at| at.saturating_add_signed(by).min(all.len().saturating_sub(1)));
    all.get(to).copied()
}

/// Moves by pages.
fn read_on(model: &mut Model, pages: isize) {
    if model.pane == Pane::Log && !matches!(model.mode, Mode::Confirming(_)) {
        model.log.scroll(pages * PAGE);
    } else {
        // A page is as high as the screen, so that no row is skipped.
        let page = isize::try_from(model.page.max(1)).unwrap_or(1);
        let last = model.shown.rows.len().saturating_sub(1);
        model.down = model.down.saturating_add_signed(pages * page).min(last);
    }
}
