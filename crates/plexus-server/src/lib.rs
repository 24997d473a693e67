//! The doors of the hub: JSON-RPC (HTTP and WebSocket), MCP, server-sent events and the web console, over TCP and over
//! a Unix socket.
//!
//! This crate owns authentication, the error format of each protocol, the data directory, and the lifecycle of a
//! serving hub from bind to shutdown. `plexus-core` implements the methods; the binary implements the command line.

mod accept;
mod auth;
mod body;
mod callers;
mod connections;
mod console;
mod console_link;
mod data_dir;
mod head_webhook;
mod identity;
mod json_value_count;
mod limits;
mod links;
mod listen;
mod mcp;
mod methods;
mod migrate;
mod other_socket;
mod refusal;
mod response_body;
mod routes;
mod rpc;
mod serving;
mod site;
mod socket;
mod sse;
mod tls;
mod wire;

pub use data_dir::{DataDir, DataDirError};
pub use identity::{HubKey, nonce};
pub use limits::{DoorLimits, HEARTBEAT};
pub use listen::ListenError;
pub use mcp::{ToolServer, Toolbox};
pub use methods::methods;
pub use migrate::{MoveError, MoveTo, move_store};
pub use serving::{Config, DownRequest, EndedChildren, ServeError, Serving, StoreSetting, end_children};
pub use socket::PARENT_HEADER;
pub use tls::{TlsDoor, TlsError};
