//! Callers: who they are (`caller`, `tokens`, `sign_in`), and what they may do (`access`). `names` finds the session that a caller names. `secret` creates and hashes their tokens.

pub mod access;
pub mod caller;
pub(crate) mod names;
pub mod secret;
pub mod sign_in;
pub mod tokens;
