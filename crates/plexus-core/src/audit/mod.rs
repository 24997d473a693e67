//! The hub's part of the audit log: entries for acts on sessions, and anchors outside the data directory. The store appends and
//! chains the entries (`plexus-store/src/domain/`).

pub mod anchor;
pub mod session_audit;
