//! Answers to approvals: checks that the caller may give an answer, validates it, and resolves the approval with it.
//! The `outcome` module builds the result that the child receives.

use plexus_protocol::claudecode::PermissionMode;
use plexus_protocol::loopback::{Answer, Answered};
use plexus_protocol::policy::AnswerEffect;
use plexus_protocol::{
    ApprovalKind, ApprovalStatus, Decider, Decision, Error, ErrorKind, MAX_TEXT_BYTES, Object, Principal,
    Right, is_cut_at, visible,
};
use plexus_store::{ApprovalRow, Change, RuleChange, Store};
use serde_json::Value;

use crate::budget_requests::answer_budget;
use crate::callers::access::{Admitted, Relation};
use crate::errors::store_error;
use crate::policy::Policy;
use crate::policy::inheritance::check_mode_by;
use plexus_book::kill_point;
use plexus_book::{Book, Resolved};

/// Resolves the approval that the caller has found with this answer, if the caller may give it and it is the first.
pub(crate) async fn answer(
    store: &dyn Store,
    policy: &Policy,
    book: &Book,
    caller: &Admitted,
    (row, relation): (ApprovalRow, Relation),
    answer: Answer,
) -> Result<Answered, Error> {
    let right = right_of(relation)?;
    if row.approval.status != ApprovalStatus::Pending {
        return Ok(Answered::already_resolved(&row.approval));
    }
    if row.approval.kind == ApprovalKind::Budget {
        return answer_budget(store, book, caller, &row, answer, right).await;
    }
    check_mode(store, caller, &row, &answer).await?;
    let approval = row.approval.id;
    let remember = answer.remember.clone();
    let (status, decision) = decide(&row, answer, Decider::from(&caller.principal), right)?;
    if decision.approve {
        policy.check_not_denied(&row, decision.updated_input.as_ref()).await?;
        policy.check_in_scope(caller, &row, decision.updated_input.as_ref()).await?;
    }
    let mut changes = Vec::new();
    if let Some(remember) = remember {
        let effect = if decision.approve { AnswerEffect::Allow } else { AnswerEffect::Deny };
        let rule = policy.remembered(caller, &row, effect, remember, "remember.").await?;
        changes.push(Change::CreateRule(Box::new(rule)));
    }
    kill_point("respond", "read");
    let resolved = book.resolve(approval, status, decision, changes).await.map_err(store_error)?;
    kill_point("respond", "stored");
    match resolved {
        Resolved::Now(committed) => {
            let resolved = match committed.rules.first() {
                Some(RuleChange::Created(row)) => policy.resolve_matching(book, row.rule.session).await,
                Some(RuleChange::Revoked(_)) | None => Vec::new(),
            };
            Ok(Answered::Ok { approval_id: approval, settled: resolved })
        }
        Resolved::Before(row) => Ok(Answered::already_resolved(&row.approval)),
    }
}

/// Checks that the caller may put the session in the mode that follows an allow. A plan always has one; another call only
/// if the answer names one, as when the caller accepts the `setMode` that Claude Code suggests.
async fn check_mode(
    store: &dyn Store,
    caller: &Admitted,
    row: &ApprovalRow,
    answer: &Answer,
) -> Result<(), Error> {
    let mode = match (row.approval.kind, answer.mode) {
        _ if !answer.approve => return Ok(()),
        (ApprovalKind::Plan, mode) => mode.unwrap_or_default(),
        (_, None) => return Ok(()),
        (_, Some(mode)) => {
            if matches!(caller.principal, Principal::Token { .. }) {
                let message = "this token has the right `decide`, which does not allow changing the mode";
                return Err(Error::new(ErrorKind::Forbidden, message).with("field", "mode"));
            }
            mode
        }
    };
    check_mode_by(store, caller, mode, "mode").await
}

/// The right by which a caller in this relation answers. A session cannot answer its own approvals.
pub(crate) fn right_of(relation: Relation) -> Result<Right, Error> {
    let refused = || Error::new(ErrorKind::Forbidden, "a session cannot answer its own approvals");
    relation.right().ok_or_else(refused)
}

/// Converts an answer into a decision, or returns the error for an invalid one.
fn decide(
    row: &ApprovalRow,
    answer: Answer,
    by: Decider,
    right: Right,
) -> Result<(ApprovalStatus, Decision), Error> {
    if answer.mode.is_some() && !(answer.approve && row.approval.kind != ApprovalKind::Question) {
        return Err(Error::invalid("mode", "only allowed with `approve: true`, for a plan or a tool call"));
    }
    let interrupt = answer.interrupt.unwrap_or(false);
    if !answer.approve {
        if answer.updated_input.is_some() {
            return Err(Error::invalid("updated_input", "only allowed with `approve: true`"));
        }
        if answer.answers.is_some() {
            return Err(Error::invalid("answers", "only allowed with `approve: true`"));
        }
        let decision = Decision {
            approve: false,
            message: answer.message,
            updated_input: None,
            mode: None,
            interrupt,
            rule: None,
            by,
            right,
        };
        return Ok((ApprovalStatus::Denied, decision));
    }
    if interrupt {
        return Err(Error::invalid("interrupt", "only allowed with `approve: false`"));
    }
    check_seen(row, answer.digest.as_deref())?;
    let updated_input = match (row.approval.kind, answer.answers, answer.updated_input) {
        (_, Some(_), Some(_)) => {
            return Err(Error::invalid("answers", "pass either `answers` or `updated_input`, not both"));
        }
        (ApprovalKind::Question, Some(answers), None) => Some(answered(&row.approval.input, answers)?),
        (ApprovalKind::Question, None, Some(input)) if input.contains_key("answers") => Some(input),
        (ApprovalKind::Question, None, _) => {
            return Err(Error::new(
                ErrorKind::AnswersRequired,
                "this approval is a question: pass `answers`, an object that maps the text of each question \
                 to its answer",
            ));
        }
        (_, Some(_), None) => return Err(Error::invalid("answers", "only allowed for a question")),
        (_, None, updated_input) => updated_input,
    };
    let mode =
        answer.mode.or_else(|| (row.approval.kind == ApprovalKind::Plan).then(PermissionMode::default));
    let decision = Decision {
        approve: true,
        message: answer.message,
        updated_input,
        mode,
        interrupt,
        rule: None,
        by,
        right,
    };
    Ok((ApprovalStatus::Allowed, decision))
}

/// Checks that the caller has seen the whole input: a given `digest` must match, and an input that is shown truncated
/// requires one.
fn check_seen(row: &ApprovalRow, digest: Option<&str>) -> Result<(), Error> {
    let not_seen = |message: &str| Err(Error::new(ErrorKind::InputNotSeen, message));
    match digest {
        Some(given) if row.approval.digest.as_deref() != Some(given) => {
            not_seen("`digest` does not match this approval; read the approval again with loopback.get")
        }
        None if is_cut_at(&Value::Object(row.approval.input.clone()), MAX_TEXT_BYTES) => {
            not_seen("the input was shown truncated; read all of it with loopback.get and pass its `digest`")
        }
        _ => Ok(()),
    }
}

/// The input of AskUserQuestion with the answers inserted in the form that Claude Code reads.
fn answered(input: &Object, answers: Object) -> Result<Object, Error> {
    let asked: Vec<&str> = input
        .get("questions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|question| question.get("question")?.as_str())
        .collect();
    if answers.is_empty() {
        return Err(Error::new(
            ErrorKind::AnswersRequired,
            "`answers` is empty; answer at least one question",
        ));
    }
    let mut given = Object::new();
    for (question, answer) in answers {
        // Questions are shown with misleading characters escaped, so an answer may name a question in its escaped form.
        let shown = |asked: &str| visible(asked).is_some_and(|shown| shown == question);
        let Some(asked) = asked.iter().find(|asked| **asked == question || shown(asked)) else {
            return Err(Error::invalid(
                "answers",
                format!("there is no question `{question}`; the questions are {asked:?}"),
            ));
        };
        given.insert((*asked).to_owned(), Value::String(answer_text(&question, answer)?));
    }
    let mut input = input.clone();
    input.insert("answers".to_owned(), Value::Object(given));
    Ok(input)
}

/// One answer as text. Several choices are joined as Claude Code joins them.
fn answer_text(question: &str, answer: Value) -> Result<String, Error> {
    match answer {
        Value::String(text) => Ok(text),
        Value::Array(choices) if !choices.is_empty() && choices.iter().all(Value::is_string) => {
            Ok(choices.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "))
        }
        _ => Err(Error::invalid(
            "answers",
            format!("the answer to `{question}` must be a string or a list of strings"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_answer_may_name_the_question_as_shown_or_as_asked() {
        let input = json!({"questions": [{"question": "Red\u{200b} or blue?"}, {"question": "Plain?"}]});
        let input = input.as_object().unwrap();
        for named in ["Red\\u{200b} or blue?", "Red\u{200b} or blue?"] {
            let answers = json!({named: "blue", "Plain?": ["a", "b"]});
            let given = answered(input, answers.as_object().unwrap().clone()).unwrap();
            assert_eq!(given["answers"], json!({"Red\u{200b} or blue?": "blue", "Plain?": "a, b"}));
        }
        let other = json!({"Red or blue?": "blue"});
        assert!(answered(input, other.as_object().unwrap().clone()).is_err());
    }
}
