//! What the tests and the demo run against instead of the world: a scripted Messages API ([`model`]) for the real
//! Claude Code CLIs, a scripted agent ([`agent`]) where thousands of children are needed, a hub as a real process
//! ([`hubproc`]), small clients for its doors ([`rpc`]), an MCP server that writes down what it is asked ([`tool_server`]), another program at a hub's port ([`impostor`]) and a
//! way in for clients without a token ([`forward`]). It owns the pinned CLI versions and the cleared
//! environment they are started with; fetching the CLIs is left to `cargo xtask test`.

pub mod agent;
pub mod binaries;
mod claude;
pub mod forward;
pub mod hubproc;
pub mod impostor;
pub mod model;
pub mod pty;
pub mod rpc;
mod skip;
pub mod tool_server;

pub use claude::{PINNED, claude, clean_env, require_claude};
pub use skip::skip;
