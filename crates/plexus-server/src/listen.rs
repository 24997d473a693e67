//! The TCP address of a hub. It is a loopback address. With port 0, the hub reuses its last port, since children and
//! clients remember it.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};

use crate::DataDir;
use crate::accept::DoorListener;
use crate::other_socket::{OtherSocket, other_socket};

/// The time for which connections of a killed hub may persist.
const RELEASE_WITHIN: Duration = Duration::from_secs(1);
const RETRY_AFTER: Duration = Duration::from_millis(5);

/// Why a hub cannot listen.
#[derive(Debug, Error)]
pub enum ListenError {
    /// Other machines could reach the address.
    #[error("{0} is reachable from other machines; the hub listens on loopback only (127.0.0.1 or [::1])")]
    NotLoopback(SocketAddr),
    /// Another program uses the port.
    #[error(
        "another program uses {0}; choose another address with --listen (127.0.0.1:0 selects a free port)"
    )]
    InUse(SocketAddr),
    /// Another program has sockets at this port. It could accept connections meant for the hub and relay its proof.
    #[error(
        "another program has opened sockets at {0} while no hub was running; stop that program (`ss -tanpB` \
         shows it), or choose another port with --listen"
    )]
    Held(SocketAddr),
    /// Another I/O error.
    #[error("cannot listen on {address}: {source}")]
    Io {
        /// The address.
        address: SocketAddr,
        /// The I/O error.
        source: io::Error,
    },
}

/// Listens on `address`. Port 0 means the last port of this data directory, or else any free port.
pub(crate) async fn listen(address: SocketAddr, dir: &DataDir) -> Result<TcpListener, ListenError> {
    if !address.ip().is_loopback() {
        return Err(ListenError::NotLoopback(address));
    }
    if address.port() != 0 {
        return bind(address).await;
    }
    let listener = match dir.remembered_port() {
        None => bind(address).await?,
        Some(port) => match bind(SocketAddr::new(address.ip(), port)).await {
            Ok(listener) => listener,
            Err(error) => {
                tracing::warn!(%error, "cannot use the previous port; using another");
                bind(address).await?
            }
        },
    };
    let port = listener.local_addr().map_err(|source| ListenError::Io { address, source })?.port();
    if let Err(error) = dir.remember_port(port) {
        tracing::warn!(%error, "cannot store the port; the next start may use another");
    }
    Ok(listener)
}

async fn bind(address: SocketAddr) -> Result<TcpListener, ListenError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::AddrInUse => ListenError::InUse(address),
        _ => ListenError::Io { address, source },
    };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    // A process that a killed hub had just forked holds copies of the hub's connections until it calls `exec`.
    let give_up_at = Instant::now() + RELEASE_WITHIN;
    loop {
        match other_socket(bound) {
            Ok(OtherSocket::None) => return Ok(listener),
            Ok(OtherSocket::Some) if Instant::now() < give_up_at => tokio::time::sleep(RETRY_AFTER).await,
            Ok(OtherSocket::Some) => return Err(ListenError::Held(address)),
            Ok(OtherSocket::Unknown) => {
                tracing::info!(
                    "this kernel (before 6.8) does not report whether another program has bound the hub's \
                     port"
                );
                return Ok(listener);
            }
            Err(error) => {
                tracing::warn!(%error, "cannot determine whether another program has bound the hub's port");
                return Ok(listener);
            }
        }
    }
}

impl DoorListener for TcpListener {
    type Raw = TcpStream;
    type Io = TcpStream;

    async fn accept(&mut self) -> io::Result<TcpStream> {
        let (stream, _) = Self::accept(self).await?;
        // With Nagle's algorithm, each event of a stream would wait for the acknowledgement of the previous one.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
        Ok(stream)
    }

    fn peer(stream: &TcpStream) -> Option<SocketAddr> {
        stream.peer_addr().ok()
    }

    fn open(&self, stream: TcpStream) -> impl Future<Output = io::Result<TcpStream>> + Send + 'static {
        std::future::ready(Ok(stream))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn addresses_that_others_could_reach_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let dir = DataDir::open(folder.path()).unwrap();
        for address in ["0.0.0.0:0", "192.0.2.1:4445", "[::]:0"] {
            let refused = listen(address.parse().unwrap(), &dir).await;
            assert!(matches!(refused, Err(ListenError::NotLoopback(_))), "{address}");
        }
    }

    #[tokio::test]
    async fn the_previous_port_is_used_again_if_it_is_free() {
        let folder = tempfile::tempdir().unwrap();
        let dir = DataDir::open(folder.path()).unwrap();
        let any = "127.0.0.1:0".parse().unwrap();
        let first = listen(any, &dir).await.unwrap().local_addr().unwrap();
        let second = listen(any, &dir).await.unwrap();
        assert_eq!(second.local_addr().unwrap(), first);
        let third = listen(any, &dir).await.unwrap().local_addr().unwrap();
        assert_ne!(third, first);
        assert!(matches!(bind(first).await, Err(ListenError::InUse(_))));
    }

    #[tokio::test]
    async fn a_port_with_a_connection_of_another_program_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let dir = DataDir::open(folder.path()).unwrap();
        let any = "127.0.0.1:0".parse().unwrap();
        let impostor = listen(any, &dir).await.unwrap();
        let port = impostor.local_addr().unwrap();
        let _waiting = TcpStream::connect(port).await.unwrap();
        let (held, _) = TcpListener::accept(&impostor).await.unwrap();
        drop(impostor);
        assert!(matches!(bind(port).await, Err(ListenError::Held(_))));
        assert_ne!(listen(any, &dir).await.unwrap().local_addr().unwrap(), port, "another port is taken");
        drop(held);
        let own = bind(port).await.unwrap();
        let _queued = TcpStream::connect(port).await.unwrap();
        assert_ne!(
            other_socket(port).unwrap(),
            OtherSocket::Some,
            "a connection that waits at our own door does not belong to another program"
        );
        drop(own);
    }
}
