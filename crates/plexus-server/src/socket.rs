//! `DIR/hub.sock`: the same doors for the operator's own programs, without a token. The kernel identifies the peer.
//! Other users, and all descendants of the hub's children, are rejected before a byte is read.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use plexus_core::Hub;
use tokio::net::{UnixListener, UnixStream};

use crate::accept::DoorListener;

/// Names the parent agent for which a request on the socket is sent.
pub const PARENT_HEADER: &str = "x-plexus-parent";

/// A Unix socket that accepts only permitted peers.
pub(crate) struct CheckedSocket {
    listener: UnixListener,
    hub: Arc<Hub>,
    uid: u32,
}

impl CheckedSocket {
    /// Binds the socket, and replaces the one that a killed hub left.
    pub(crate) fn bind(path: &Path, hub: Arc<Hub>) -> io::Result<Self> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(Self { listener, hub, uid: rustix::process::geteuid().as_raw() })
    }

    fn may_enter(&self, stream: &UnixStream) -> Result<(), &'static str> {
        let peer = stream.peer_cred().map_err(|_| "the kernel does not report the user of the peer")?;
        if peer.uid() != self.uid {
            return Err("the peer belongs to another user");
        }
        let pid = peer.pid().ok_or("the kernel does not report the process of the peer")?;
        if self.hub.is_child_process(pid) {
            return Err("the peer is a process of an agent of this hub");
        }
        // A connection may outlive the process that opened it. The ancestry of an ended process is unknown, so without
        // this check a child could connect, pass the connection on, and exit.
        if !Path::new(&format!("/proc/{pid}")).exists() {
            return Err("the process that connected has exited");
        }
        Ok(())
    }
}

impl DoorListener for CheckedSocket {
    type Raw = UnixStream;
    type Io = UnixStream;

    async fn accept(&mut self) -> io::Result<UnixStream> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            match self.may_enter(&stream) {
                Ok(()) => return Ok(stream),
                Err(reason) => tracing::warn!(reason, "rejected a connection to hub.sock"),
            }
        }
    }

    fn peer(_: &UnixStream) -> Option<SocketAddr> {
        None
    }

    fn open(&self, stream: UnixStream) -> impl Future<Output = io::Result<UnixStream>> + Send + 'static {
        std::future::ready(Ok(stream))
    }
}
