//! The row interface over tables in memory.

mod approvals;
mod authority;
mod budgets;
mod hosts;
mod nodes;
mod sessions;
mod templates;
mod turns;
