//! Test doubles and helpers: a scripted Messages API ([`model`]) for the real Claude Code CLIs, the scripted agent as a program, a hub as
//! a real process ([`hub_process`]), small clients for its interfaces ([`rpc`]), an MCP server that logs its calls ([`tool_server`]), pictures of terminals ([`picture`]), a
//! PostgreSQL server ([`postgres`]), a certificate authority ([`authority`]), an
//! impostor on a hub's port ([`impostor`]) and a proxy for clients without a token ([`forward`]). It owns the cleared environment in
//! which the CLIs are started; `cargo xtask test` downloads them.

pub mod authority;
pub mod binaries;
mod claude;
pub mod executable;
pub mod forward;
pub mod hub_process;
pub mod impostor;
pub mod model;
pub mod network;
pub mod picture;
pub mod postgres;
pub mod pty;
pub mod rpc;
mod skip;
pub mod tool_server;

pub use claude::{claude, clean_env, require_claude};
pub use plexus_claude::TESTED_VERSIONS as PINNED;
pub use skip::skip;
