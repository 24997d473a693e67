//! What the tests and the demo run against instead of the world: a scripted Messages API ([`model`]) for the real
//! Claude Code CLIs, a scripted agent ([`agent`]) where thousands of children are needed, a hub as a real process
//! ([`hubproc`]) and small clients for its doors ([`rpc`]). It owns the pinned CLI versions and the cleared
//! environment they are started with; fetching the CLIs is left to `cargo xtask test`.

pub mod agent;
pub mod binaries;
mod claude;
pub mod hubproc;
pub mod model;
pub mod rpc;

pub use claude::{PINNED, claude, clean_env, require_claude};
