//! The lifecycle of a connection, the same on every door. The door accepts it, performs the TLS handshake if any, and
//! serves HTTP/1.1 until the peer disconnects, exceeds a time limit, or has to make room for another connection.
//! `axum::serve` waits for peers without a limit, so this module uses hyper directly.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use plexus_core::RejectReason;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service as _;

use crate::connections::{Connection, WaitingConnections};
use crate::limits::DoorLimits;
use crate::wire::Wire;

/// The buffer for a request head, and for the part of a response that the body does not hold.
const BUFFER: usize = 32 * 1024;
/// The pause after a failed accept, for example when the process has too many open files.
const RETRY_AFTER: Duration = Duration::from_millis(50);

/// A source of connections.
pub(crate) trait DoorListener: Send + 'static {
    /// An accepted connection before the handshake.
    type Raw: Send + 'static;
    /// A connection that carries HTTP.
    type Io: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Accepts the next connection.
    fn accept(&mut self) -> impl Future<Output = io::Result<Self::Raw>> + Send;

    /// The address of the peer, if it has one.
    fn peer(raw: &Self::Raw) -> Option<SocketAddr>;

    /// Performs the handshake that precedes HTTP.
    fn open(&self, raw: Self::Raw) -> impl Future<Output = io::Result<Self::Io>> + Send + 'static;
}

/// The address of the peer, as a request extension.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) Option<SocketAddr>);

/// Serves a door until `close`. Returns when all requests that were in progress at that time are answered.
pub(crate) async fn serve<E: DoorListener>(
    mut listener: E,
    router: Router,
    waiting: Arc<WaitingConnections>,
    limits: DoorLimits,
    close: CancellationToken,
) -> io::Result<()> {
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = close.cancelled() => break,
        };
        match accepted {
            Ok(raw) => {
                let connection = waiting.enter();
                let peer = Peer(E::peer(&raw));
                let opened = listener.open(raw);
                connections.spawn(serve_connection(
                    opened,
                    router.clone(),
                    connection,
                    peer,
                    limits,
                    close.clone(),
                ));
            }
            Err(error) if is_peer_error(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                // The process may have too many open files.
                waiting.close_oldest();
                tokio::time::sleep(RETRY_AFTER).await;
            }
        }
    }
    drop(listener);
    connections.close();
    connections.wait().await;
    Ok(())
}

/// Whether the error concerns one connection and not the door.
fn is_peer_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

async fn serve_connection<I: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    opened: impl Future<Output = io::Result<I>> + Send,
    router: Router,
    connection: Arc<Connection>,
    peer: Peer,
    limits: DoorLimits,
    close: CancellationToken,
) {
    let io = tokio::select! {
        opened = tokio::time::timeout(limits.handshake, opened) => match opened {
            Ok(Ok(io)) => io,
            Ok(Err(error)) => return tracing::debug!(%error, "a connection failed before it was open"),
            Err(_) => return connection.figures().rejected(RejectReason::Handshake),
        },
        () = connection.closed() => return,
    };
    let io = TokioIo::new(Wire::new(io, Arc::clone(&connection), limits.write_stall));
    let of_this = Arc::clone(&connection);
    let service = service_fn(move |request: http::Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(Arc::clone(&of_this));
        request.extensions_mut().insert(peer);
        // A router is always ready, so it needs no `poll_ready`.
        router.clone().call(request)
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(BUFFER)
        .serve_connection(io, service)
        .with_upgrades();
    let mut served = pin!(served);
    let mut closing = pin!(close.cancelled());
    let mut is_closing = false;
    loop {
        tokio::select! {
            ended = served.as_mut() => {
                if ended.is_err_and(|error| error.is_timeout()) {
                    connection.figures().rejected(RejectReason::Head);
                }
                return;
            }
            () = connection.closed() => return,
            () = closing.as_mut(), if !is_closing => {
                is_closing = true;
                served.as_mut().graceful_shutdown();
            }
        }
    }
}
