//! Past activity: `timeline` computes when each session worked and waited, `series` adds up costs, calls, answers and waiting
//! times. Both are pure functions of stored rows. Nothing is stored for them alone: turns, approvals and the audit log contain
//! all times.
//!
//! The hub does not store when it was down. An agent without a hub continues until its next call and waits there, so a turn or
//! an approval that was open at that time is shown without a gap.

pub(crate) mod lanes;
pub(crate) mod series;
pub(crate) mod timeline;
mod waits;

pub(crate) use waits::answered_by;
