//! Callers of methods: their identity, the door they use, and the channel for their notifications.

use plexus_protocol::{Object, Principal};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

/// The door that a call came through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Door {
    /// `POST /rpc`.
    Http,
    /// `GET /rpc`.
    WebSocket,
    /// `/mcp`.
    Mcp,
}

/// A message to a caller before its result: the method and parameters of a JSON-RPC notification.
#[derive(Debug, Clone)]
pub struct Notification {
    /// The method, such as `claudecode.chat.event`.
    pub method: &'static str,
    /// Its parameters, without the id of the call it belongs to: the door adds the id.
    pub params: Object,
}

/// The caller of a method.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Its identity.
    pub principal: Principal,
    /// The door that the call came through.
    pub door: Door,
    /// Receives notifications, on doors that can send them.
    pub notify: Option<mpsc::Sender<Notification>>,
}

impl Caller {
    /// A caller that receives no notifications.
    pub fn of(principal: Principal, door: Door) -> Self {
        Self { principal, door, notify: None }
    }
}
