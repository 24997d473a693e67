//! Callers: who they are (`caller`, `tokens`, `sign_in`), and what they may do (`access`). `secret` creates and hashes their tokens.

pub mod access;
pub mod caller;
pub mod secret;
pub mod sign_in;
pub mod tokens;
