//! What each key does. An answer is given only to a question that has stood on the screen for a moment: one that took the
//! place of another under someone's fingers is not answered by a key that was meant for that.

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use plexus_protocol::{Approval, ApprovalId, ApprovalKind, AskedOf, Object};
use serde_json::json;

use super::answers::{self, answer, to_session};
use super::model::{Doubt, Hands, Mode, Model, Pane, Wanted};
use super::question::{questions, suggested_rule};
use super::update::{Effect, settle};

/// How long a question has to have been there.
const A_MOMENT: Duration = Duration::from_millis(400);
/// How far a page goes.
const PAGE: isize = 10;

/// The keys and what they do, for the help.
pub(crate) const KEYS: &[(&str, &str)] = &[
    ("j k ↓ ↑", "move; in the log: scroll"),
    ("tab", "sessions, approvals, log"),
    ("pgdn pgup", "read on, read back (also space and b)"),
    ("enter", "read a question whole that is shown cut"),
    ("a", "approve; answer a question; accept a plan; give as much again"),
    ("d", "deny, with a reason or without"),
    ("e", "edit the input in $EDITOR, then approve that"),
    ("r", "approve and remember a rule"),
    ("p", "pass on what an agent is asked, to the next above it"),
    ("E", "give it more time; of a limit: say how much more"),
    ("i", "interrupt the turn of the session"),
    ("s", "stop the session and all below it"),
    ("/", "show only names that hold …"),
    ("?", "this help"),
    ("q", "quit; nothing is answered by it"),
];

/// A key was pressed.
pub(crate) fn pressed(model: &mut Model, key: KeyEvent, at: Instant) -> Vec<Effect> {
    if key.kind == KeyEventKind::Release {
        return Vec::new();
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
        return vec![Effect::Quit];
    }
    match std::mem::replace(&mut model.mode, Mode::Moving) {
        Mode::Moving => moving(model, key, at),
        Mode::Help => Vec::new(),
        Mode::Typing(wanted, text) => typing(model, key, wanted, text),
        Mode::Asking(doubt) => asking(model, key, doubt),
    }
}

/// A paste is text for the line that is typed, and never a series of keys.
pub(crate) fn pasted(model: &mut Model, pasted: &str) -> Vec<Effect> {
    if let Mode::Typing(_, text) = &mut model.mode {
        text.push_str(pasted.lines().next().unwrap_or_default());
    }
    Vec::new()
}

fn moving(model: &mut Model, key: KeyEvent, at: Instant) -> Vec<Effect> {
    model.said.clear();
    model.hands = Hands::On;
    match key.code {
        KeyCode::Char('q') => return vec![Effect::Quit],
        KeyCode::Char('?') => model.mode = Mode::Help,
        KeyCode::Char('j') | KeyCode::Down => step(model, 1),
        KeyCode::Char('k') | KeyCode::Up => step(model, -1),
        KeyCode::PageDown | KeyCode::Char(' ') => read_on(model, PAGE),
        KeyCode::PageUp | KeyCode::Char('b') => read_on(model, -PAGE),
        KeyCode::Tab => {
            model.pane = match model.pane {
                Pane::Sessions => Pane::Approvals,
                Pane::Approvals => Pane::Log,
                Pane::Log => Pane::Sessions,
            }
        }
        KeyCode::Char('/') => model.mode = Mode::Typing(Wanted::Filter, model.filter.clone()),
        KeyCode::Esc => {
            model.filter.clear();
            settle(model);
        }
        KeyCode::Char('i') => return to_session(model, model.session, "claudecode.interrupt", "interrupted"),
        KeyCode::Char('s') => {
            if let Some(session) = model.selected_session() {
                model.mode = Mode::Asking(Doubt::Stop(session.id));
            }
        }
        KeyCode::Enter => {
            return model
                .selected()
                .filter(|it| it.truncated)
                .map(|it| Effect::Read(it.id))
                .into_iter()
                .collect();
        }
        KeyCode::Char(key @ ('a' | 'd' | 'e' | 'r' | 'p' | 'E')) => return on_question(model, key, at),
        _ => {}
    }
    Vec::new()
}

fn on_question(model: &mut Model, key: char, at: Instant) -> Vec<Effect> {
    let Some(approval) = model.selected().cloned() else {
        model.said = "nothing is selected that could be answered".to_owned();
        return Vec::new();
    };
    if model.drawn != Some(approval.id) {
        model.pane = Pane::Approvals;
        model.session = Some(approval.session_id);
        model.said = "this is what would be answered; read it, then press again".to_owned();
        return Vec::new();
    }
    if model.came_at.is_some_and(|came| at.duration_since(came) < A_MOMENT) {
        model.said = "this one has only just come; read it, then press again".to_owned();
        return Vec::new();
    }
    if model.answered.contains(&approval.id) {
        return Vec::new();
    }
    let id = approval.id;
    if approval.truncated && matches!(key, 'a' | 'e' | 'r') {
        model.said = "it is shown cut: enter reads it whole, then approve it".to_owned();
        return Vec::new();
    }
    match (key, approval.kind) {
        ('a', ApprovalKind::Question) => ask_answers(model, &approval),
        ('a', _) => return answer(model, &approval, json!({"approve": true})),
        ('d', _) => model.mode = Mode::Typing(Wanted::Reason(id), String::new()),
        ('e', ApprovalKind::Budget) | ('E', ApprovalKind::Budget) => {
            model.mode = Mode::Typing(Wanted::More(id), String::new());
        }
        ('e', _) => return vec![Effect::Edit(id, approval.input)],
        ('r', ApprovalKind::Tool) => model.mode = Mode::Typing(Wanted::Rule(id), suggested_rule(&approval)),
        ('r', _) => model.said = "only the use of a tool can be remembered".to_owned(),
        ('p', _) if approval.asked_of == AskedOf::Operator => {
            model.said = "it is asked of you, and nobody is above you: answer it".to_owned();
        }
        ('p', _) => model.mode = Mode::Typing(Wanted::Opinion(id), String::new()),
        ('E', _) => model.mode = Mode::Typing(Wanted::Time(id), "3600".to_owned()),
        _ => {}
    }
    Vec::new()
}

fn ask_answers(model: &mut Model, approval: &Approval) {
    let questions = questions(&approval.input);
    if questions.is_empty() {
        model.said = "its questions cannot be read; e edits the input, which then holds `answers`".to_owned();
        return;
    }
    let wanted = Wanted::Answer { approval: approval.id, questions, given: Object::new() };
    model.mode = Mode::Typing(wanted, String::new());
}

fn typing(model: &mut Model, key: KeyEvent, wanted: Wanted, mut text: String) -> Vec<Effect> {
    match key.code {
        KeyCode::Esc => {
            if wanted == Wanted::Filter {
                model.filter.clear();
                settle(model);
            }
            return Vec::new();
        }
        KeyCode::Enter => return answers::typed(model, wanted, text.trim()),
        KeyCode::Backspace => drop(text.pop()),
        KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => text.clear(),
        KeyCode::Char(c) if !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => {
            text.push(c)
        }
        _ => {}
    }
    if wanted == Wanted::Filter {
        model.filter.clone_from(&text);
        settle(model);
    }
    model.mode = Mode::Typing(wanted, text);
    Vec::new()
}

fn asking(model: &mut Model, key: KeyEvent, doubt: Doubt) -> Vec<Effect> {
    model.forget_rows();
    match (key.code, doubt) {
        (KeyCode::Char('y'), Doubt::Stop(session)) => {
            to_session(model, Some(session), "claudecode.stop", "stopped")
        }
        (KeyCode::Char('y'), Doubt::Edited(id, input)) => {
            let Some(approval) = model.open(id).cloned() else { return Vec::new() };
            answer(model, &approval, json!({"approve": true, "updated_input": input}))
        }
        (KeyCode::PageDown | KeyCode::PageUp | KeyCode::Char(' ' | 'b'), doubt) => {
            let back = matches!(key.code, KeyCode::PageUp | KeyCode::Char('b'));
            read_on(model, if back { -PAGE } else { PAGE });
            model.mode = Mode::Asking(doubt);
            Vec::new()
        }
        (KeyCode::Char('n' | 'q') | KeyCode::Esc, _) => {
            model.said = "nothing was done".to_owned();
            Vec::new()
        }
        // A key that was meant for something else is no answer.
        (_, doubt) => {
            model.mode = Mode::Asking(doubt);
            Vec::new()
        }
    }
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
                // It was chosen: there is nothing to be taken for another.
                model.came_at = None;
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

fn read_on(model: &mut Model, by: isize) {
    if model.pane == Pane::Log {
        model.log.scroll(by);
    } else {
        let last = model.shown.rows.len().saturating_sub(1);
        model.down = model.down.saturating_add_signed(by).min(last);
    }
}
