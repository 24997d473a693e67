//! Converts refusals and failures of the store into the errors that callers see.

use plexus_protocol::{Error, ErrorKind};
use plexus_store::{BudgetRow, Refusal, StoreError};
use serde_json::Value;

/// The error for a request that the store refused or failed to write.
pub(crate) fn store_error(error: StoreError) -> Error {
    match error {
        StoreError::Refused(refusal) => {
            let kind = match &refusal {
                Refusal::NameTaken(_) | Refusal::ArchivedNameTaken(_) => ErrorKind::NameTaken,
                Refusal::Busy(_) => ErrorKind::TurnInProgress,
                Refusal::NoSuchSession(_) => ErrorKind::SessionNotFound,
                Refusal::TurnInProgress(_) => ErrorKind::TurnInProgress,
                Refusal::NoSuchApproval(_) => ErrorKind::ApprovalNotFound,
                Refusal::NoSuchNode(_) => ErrorKind::NodeNotFound,
                Refusal::TokenNameTaken(_) => ErrorKind::NameTaken,
                Refusal::NoSuchToken(_) => ErrorKind::TokenNotFound,
                Refusal::NoSuchTemplate(_) => ErrorKind::TemplateNotFound,
                Refusal::TooManyTemplates(_) => ErrorKind::LimitReached,
                Refusal::NoSuchRule(_) => ErrorKind::RuleNotFound,
                Refusal::BudgetExceeded(row) => {
                    return budget_error(ErrorKind::BudgetExceeded, row, refusal.to_string());
                }
                Refusal::BudgetExhausted(row) => {
                    return budget_error(ErrorKind::BudgetExhausted, row, refusal.to_string());
                }
                Refusal::BudgetInUse(row) => {
                    return Error::invalid(&format!("budget.{}", row.limit.as_str()), &refusal);
                }
                Refusal::NoSuchHost(_) | Refusal::HostDrains(_) | Refusal::HostInUse(_) => {
                    return Error::invalid("host", &refusal);
                }
                Refusal::NoFreeSlot { slots, .. } => {
                    return Error::new(ErrorKind::LimitReached, refusal.to_string())
                        .with("limit", "slots")
                        .with("most", *slots);
                }
                Refusal::HostLost(host) => {
                    return Error::new(ErrorKind::HostUnreachable, refusal.to_string())
                        .with("host", host.as_str());
                }
                Refusal::AlreadyResolved(_) | Refusal::AskedOfAnother(_) | Refusal::KeyTaken => {
                    ErrorKind::Internal
                }
            };
            Error::new(kind, refusal.to_string())
        }
        StoreError::Unavailable(why) => Error::new(
            ErrorKind::StoreUnavailable,
            format!(
                "the store cannot be written ({why}), so nothing was changed; try again when the store is \
                 available"
            ),
        ),
        StoreError::Unusable(why) => Error::new(ErrorKind::Internal, why),
    }
}

/// The error for a request that a budget stops, with the state of the budget.
pub(crate) fn budget_error(kind: ErrorKind, row: &BudgetRow, message: String) -> Error {
    let shown = |units| Value::Number(row.limit.shown(units));
    Error::new(kind, message)
        .with("limit", row.limit.as_str())
        .with("session_id", row.session.to_string())
        .with("granted", shown(row.granted))
        .with("used", shown(row.used))
        .with("left", shown(row.left()))
}

/// The error for a session that the caller cannot access. It is identical to "not found", so existence is not revealed.
pub(crate) fn session_not_found(called: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::SessionNotFound, format!("session `{called}` does not exist"))
}

/// The error for every call to a hub that is shutting down.
pub(crate) fn shutting_down() -> Error {
    Error::new(ErrorKind::ShuttingDown, "the hub is shutting down; try again after it has restarted")
}
