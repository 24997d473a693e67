//! From what the store did not do to what a caller is told.

use plexus_protocol::{Error, ErrorKind};
use plexus_store::{Refusal, StoreError};

use crate::budgets;

/// What a caller is told when the store did not do it.
pub(crate) fn store_error(error: StoreError) -> Error {
    match error {
        StoreError::Refused(refusal) => {
            let kind = match &refusal {
                Refusal::NameTaken(_) => ErrorKind::NameTaken,
                Refusal::NoSuchSession(_) => ErrorKind::SessionNotFound,
                Refusal::TurnInProgress(_) => ErrorKind::TurnInProgress,
                Refusal::NoSuchApproval(_) => ErrorKind::ApprovalNotFound,
                Refusal::NoSuchNode(_) => ErrorKind::NodeNotFound,
                Refusal::TokenNameTaken(_) => ErrorKind::NameTaken,
                Refusal::NoSuchToken(_) => ErrorKind::TokenNotFound,
                Refusal::NoSuchRule(_) => ErrorKind::RuleNotFound,
                Refusal::BudgetExceeded(row) => {
                    return budgets::refusal(ErrorKind::BudgetExceeded, row, refusal.to_string());
                }
                Refusal::BudgetExhausted(row) => {
                    return budgets::refusal(ErrorKind::BudgetExhausted, row, refusal.to_string());
                }
                Refusal::BudgetInUse(row) => {
                    return Error::invalid(&format!("budget.{}", row.limit.as_str()), &refusal);
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
                "nothing was done, because it could not be written down ({why}); try again when there is room"
            ),
        ),
        StoreError::Unusable(why) => Error::new(ErrorKind::Internal, why),
    }
}
