//! The past as pictures: `timeline` shows what each session did when, `series` adds up costs, calls, answers and waiting times.
//! Both are pure functions of stored rows. Nothing is stored for them: turns, approvals and the audit log have all the times.
//!
//! The hub does not store when it was down. An agent without a hub continues until its next call and waits there, so its turn
//! or approval is shown as it was before.

pub(crate) mod lanes;
pub(crate) mod series;
pub(crate) mod timeline;
mod waits;

pub(crate) use waits::answered_by;
