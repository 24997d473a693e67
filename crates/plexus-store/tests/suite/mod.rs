//! The promises, by topic.

pub mod approvals;
pub mod audit;
pub mod budgets;
pub mod commits;
pub mod conversations;
pub mod escalation;
pub mod history;
pub mod removals;
pub mod runs;
pub mod sessions;
pub mod templates;
pub mod turns;
