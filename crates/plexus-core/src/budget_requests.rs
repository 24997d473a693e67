//! Budgets as callers see them: showing a budget, setting it when a session is created or later, and answering a budget
//! approval. The store computes what is left and ensures that nobody grants more; `session/machine/held_calls.rs` decides what a
//! session does after its budget is exhausted.

use plexus_protocol::audit::{AuditEntry, AuditKind};
use plexus_protocol::budget::{BudgetLimit, BudgetView, LimitView, more_of};
use plexus_protocol::loopback::{Answer, Answered};
use plexus_protocol::{
    ApprovalStatus, AskedOf, Decider, Decision, Error, ErrorKind, Object, Principal, Right, SessionId,
    SessionName,
};
use plexus_store::{ApprovalRow, BudgetRow, Change, Store};
use serde_json::{Value, json};

use crate::callers::access::Admitted;
use crate::errors::{budget_error, store_error};
use plexus_book::kill_point;
use plexus_book::now;
use plexus_book::{Book, Resolved};

/// The budget of a session; `None` if it has none of its own.
pub(crate) fn view(rows: &[BudgetRow]) -> Option<BudgetView> {
    let mut view = BudgetView::default();
    for row in rows {
        let shown = |units| row.limit.shown(units);
        *view.place(row.limit) =
            Some(LimitView { limit: shown(row.granted), used: shown(row.used), left: shown(row.left()) });
    }
    (!rows.is_empty()).then_some(view)
}

/// The changes that set the budget of a session and add an entry to the audit log.
pub(crate) fn changes(
    by: &Principal,
    id: SessionId,
    name: &SessionName,
    limits: Vec<(BudgetLimit, u64)>,
) -> Vec<Change> {
    if limits.is_empty() {
        return Vec::new();
    }
    let detail = limits.iter().map(|(limit, units)| (limit.as_str().to_owned(), limit.shown(*units).into()));
    let record = AuditEntry {
        session_id: Some(id),
        session_name: Some(name.clone()),
        detail: Some(Object::from_iter([("budget".to_owned(), Value::Object(detail.collect()))])),
        ..AuditEntry::of_caller(now(), AuditKind::Session, "set_budget", by)
    };
    vec![Change::SetBudget(id, limits), Change::Audit(Box::new(record))]
}

/// The limit that a budget approval asks to raise.
pub(crate) fn limit_of(row: &ApprovalRow) -> Option<BudgetLimit> {
    serde_json::from_value(row.approval.input.get("limit")?.clone()).ok()
}

/// Answers a budget approval. Rules and scopes do not apply: the commit that resolves the approval takes the granted
/// amount from what the ancestors have left.
pub(crate) async fn answer_budget(
    store: &dyn Store,
    book: &Book,
    caller: &Admitted,
    row: &ApprovalRow,
    answer: Answer,
    right: Right,
) -> Result<Answered, Error> {
    let foreign = [
        ("mode", answer.mode.is_some()),
        ("answers", answer.answers.is_some()),
        ("remember", answer.remember.is_some()),
    ];
    if let Some((field, _)) = foreign.iter().find(|(_, given)| *given) {
        return Err(Error::invalid(field, "not allowed for a budget approval"));
    }
    let updated_input = match (answer.approve, answer.updated_input) {
        (true, given) => Some(given_units(store, row, given).await?),
        (false, Some(_)) => return Err(Error::invalid("updated_input", "only allowed with `approve: true`")),
        (false, None) => None,
    };
    let status = if answer.approve { ApprovalStatus::Allowed } else { ApprovalStatus::Denied };
    let decision = Decision {
        approve: answer.approve,
        message: answer.message,
        updated_input,
        mode: None,
        interrupt: false,
        rule: None,
        by: Decider::from(&caller.principal),
        right,
    };
    kill_point("budget", "answered");
    let approval_id = row.approval.id;
    let resolved = book.resolve(approval_id, status, decision, Vec::new()).await;
    kill_point("budget", "decided");
    Ok(match resolved.map_err(store_error)? {
        Resolved::Now(_) => Answered::Ok { approval_id, settled: Vec::new() },
        Resolved::Before(row) => Answered::already_resolved(&row.approval),
    })
}

/// The amount to grant: the amount in the answer, or else as much again as was granted, capped at what the parent has
/// left.
async fn given_units(
    store: &dyn Store,
    row: &ApprovalRow,
    requested: Option<Object>,
) -> Result<Object, Error> {
    let limit = limit_of(row)
        .ok_or_else(|| Error::new(ErrorKind::Internal, "the budget approval does not name its budget"))?;
    let more = match requested {
        Some(requested) => more_of(limit, &requested)?,
        None => {
            let own = limit_at(store, row.approval.session_id, limit).await?;
            let again = own.map_or(0, |own| own.granted);
            match limit_above(store, row.approval.session_id, limit).await? {
                Some(above) if above.left() == 0 => {
                    let message = format!("the parent has no {} left to grant", limit.as_str());
                    return Err(budget_error(ErrorKind::BudgetExceeded, &above, message));
                }
                Some(above) => again.min(above.left()),
                None => again,
            }
        }
    };
    let given = json!({"more": limit.shown(more)});
    Ok(given.as_object().cloned().unwrap_or_default())
}

/// The row of the budget that `session` draws on.
async fn limit_at(
    store: &dyn Store,
    session: SessionId,
    limit: BudgetLimit,
) -> Result<Option<BudgetRow>, Error> {
    let rows = store.budget(session).await.map_err(store_error)?;
    Ok(rows.into_iter().find(|row| row.limit == limit))
}

/// The row of the parent's budget, from which a budget of `session` itself is taken.
async fn limit_above(
    store: &dyn Store,
    session: SessionId,
    limit: BudgetLimit,
) -> Result<Option<BudgetRow>, Error> {
    match store.session(session).await.map_err(store_error)?.map(|session| session.answers_to) {
        Some(AskedOf::Session { id }) => limit_at(store, id, limit).await,
        _ => Ok(None),
    }
}
