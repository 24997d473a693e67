//! The promises, by what they are about.

pub mod approvals;
pub mod arbor;
pub mod audit;
pub mod budgets;
pub mod commits;
pub mod removals;
pub mod runs;
pub mod sessions;
pub mod turns;
pub mod way_up;
