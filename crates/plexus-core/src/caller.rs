//! Callers of methods: who calls, through which door, and where notifications for the caller go.

use plexus_protocol::{Object, Principal};
use tokio::sync::mpsc;

/// Which door a call came through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// `POST /rpc`.
    Http,
    /// `GET /rpc`.
    WebSocket,
    /// `/mcp`.
    Mcp,
}

/// A message to a caller before its result: method and parameters of a JSON-RPC notification.
#[derive(Debug, Clone)]
pub struct Notification {
    /// Such as `claudecode.chat.event`.
    pub method: &'static str,
    /// Its parameters, without the id of the call it belongs to: the door adds that.
    pub params: Object,
}

/// Who calls, and how.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Who.
    pub principal: Principal,
    /// Through which door.
    pub door: Door,
    /// Where notifications go, on doors that have a way to send them.
    pub notify: Option<mpsc::Sender<Notification>>,
}

impl Caller {
    /// A caller that is told nothing before its result.
    pub fn of(principal: Principal, door: Door) -> Self {
        Self { principal, door, notify: None }
    }
}
