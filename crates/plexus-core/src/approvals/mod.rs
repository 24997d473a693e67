//! Approvals as a decider sees them: the context of a request, the file it will change, the difference an edit makes, and the
//! answer. `plexus-book` resolves and expires them; `escalation` decides who is asked.

pub mod answer;
pub mod context;
pub mod denied_before;
pub mod edited;
pub mod permit;
pub mod target_file;
