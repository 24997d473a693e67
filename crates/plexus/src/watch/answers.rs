//! Turns typed lines into calls to the hub: denials with reasons, notes, rules, deadlines, amounts and answers to questions.

use plexus_protocol::{Approval, Object, SessionId};
use serde_json::{Value, json};

use super::foot::fits_beside_prompt;
use super::guards::shown_in_full;
use super::model::{Confirmation, InputPurpose, Mode, Model};
use super::update::Effect;
use crate::answer_confirmation::confirmed;
use crate::escape::{exact, one_line};
use crate::review::approval::span;
use crate::review::question::{Question, Reply};

/// Answers an approval.
pub(super) fn answer(model: &mut Model, approval: &Approval, mut params: Value) -> Vec<Effect> {
    let id = approval.id;
    let approve = params["approve"] == true;
    params["approval_id"] = json!(id);
    if let Some(digest) = approval.digest.as_ref().filter(|_| approve) {
        params["digest"] = json!(digest);
    }
    model.answered.insert(id);
    let done = one_line(&confirmed(approval, &params));
    vec![Effect::Call { method: "loopback.respond", params, answers: Some(id), done }]
}

/// Calls a method for a session.
pub(super) fn to_session(
    model: &Model,
    id: Option<SessionId>,
    method: &'static str,
    message: &str,
) -> Vec<Effect> {
    let Some(session) = model.session_of(id) else { return Vec::new() };
    let done = format!("{}: {message}", session.path);
    vec![Effect::Call { method, params: json!({"session_id": session.id}), answers: None, done }]
}

/// Handles a finished line.
pub(super) fn typed(model: &mut Model, wanted: InputPurpose, text: &str) -> Vec<Effect> {
    let id = match &wanted {
        InputPurpose::Filter => return Vec::new(),
        InputPurpose::Reason(id)
        | InputPurpose::Opinion(id)
        | InputPurpose::Rule(id)
        | InputPurpose::Time(id)
        | InputPurpose::More(id) => *id,
        InputPurpose::Answer { approval, .. } => *approval,
    };
    let Some(approval) = model.open(id).cloned() else { return Vec::new() };
    let allows =
        matches!(wanted, InputPurpose::Rule(_) | InputPurpose::More(_) | InputPurpose::Answer { .. });
    // The screen may have changed since the key was pressed.
    if allows && !shown_in_full(model) {
        model.mode = Mode::Typing(wanted, text.to_owned());
        return Vec::new();
    }
    match wanted {
        InputPurpose::Reason(_) if text.is_empty() => answer(model, &approval, json!({"approve": false})),
        InputPurpose::Reason(_) => answer(model, &approval, json!({"approve": false, "message": text})),
        InputPurpose::Opinion(_) => {
            let opinion = Some(text).filter(|text| !text.is_empty());
            let params = json!({"approval_id": id, "opinion": opinion});
            let done = "escalated".to_owned();
            vec![Effect::Call { method: "loopback.escalate", params, answers: None, done }]
        }
        InputPurpose::Rule(_) if text.is_empty() => nothing(model),
        // A rule allows future calls, so it must be shown in full.
        InputPurpose::Rule(_) if !fits_beside_prompt(&exact(text), model.width) => {
            model.mode = Mode::Confirming(Confirmation::Remember(id, text.to_owned()));
            model.down = 0;
            Vec::new()
        }
        InputPurpose::Rule(_) => {
            answer(model, &approval, json!({"approve": true, "remember": {"rule": text}}))
        }
        InputPurpose::Time(_) => {
            let Ok(secs) = text.parse::<u64>() else { return nothing(model) };
            let params = json!({"approval_id": id, "secs": secs});
            let done = format!("the approval stays open for {}", span(secs));
            vec![Effect::Call { method: "loopback.extend", params, answers: None, done }]
        }
        InputPurpose::More(_) => {
            let Some(more) = serde_json::from_str::<Value>(text).ok().filter(Value::is_number) else {
                return nothing(model);
            };
            answer(model, &approval, json!({"approve": true, "updated_input": {"more": more}}))
        }
        InputPurpose::Answer { approval: id, questions, given } => {
            if text.is_empty() || questions.is_empty() {
                return nothing(model);
            }
            match questions[0].read(text) {
                Reply::Answer(text) => answer_question(model, &approval, questions, given, text),
                Reply::FreeText(words) => {
                    model.mode =
                        Mode::Confirming(Confirmation::FreeText { approval: id, questions, given, words });
                    Vec::new()
                }
                Reply::Invalid(why) => {
                    model.message = why;
                    model.mode =
                        Mode::Typing(InputPurpose::Answer { approval: id, questions, given }, String::new());
                    Vec::new()
                }
            }
        }
        InputPurpose::Filter => Vec::new(),
    }
}

/// Stores the answer to the first question; after the last one, sends all answers.
pub(super) fn answer_question(
    model: &mut Model,
    approval: &Approval,
    mut questions: Vec<Question>,
    mut given: Object,
    text: String,
) -> Vec<Effect> {
    let question = questions.remove(0);
    given.insert(question.text, Value::String(text));
    if questions.is_empty() {
        return answer(model, approval, json!({"approve": true, "answers": given}));
    }
    model.mode =
        Mode::Typing(InputPurpose::Answer { approval: approval.id, questions, given }, String::new());
    Vec::new()
}

fn nothing(model: &mut Model) -> Vec<Effect> {
    model.message = "nothing was done".to_owned();
    Vec::new()
}
