//! The byte stream of one connection. A write fails if the peer accepts nothing for too long, which ends the connection
//! and releases everything held for it. While the connection is a WebSocket, reads count against the caller's bytes.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use plexus_core::RejectReason;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use crate::connections::Connection;

/// A connection whose peer may neither stop reading nor send more than the limits allow.
pub(crate) struct Wire<T> {
    inner: T,
    connection: Arc<Connection>,
    stall: Duration,
    /// Runs while a write waits for the peer.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<T> Wire<T> {
    pub(crate) fn new(inner: T, connection: Arc<Connection>, stall: Duration) -> Self {
        Self { inner, connection, stall, stalled: None }
    }

    fn watched<R>(&mut self, context: &mut Context<'_>, polled: Poll<io::Result<R>>) -> Poll<io::Result<R>> {
        if polled.is_ready() {
            self.stalled = None;
            return polled;
        }
        let stall = self.stall;
        let timer = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(stall)));
        ready!(timer.as_mut().poll(context));
        self.connection.figures().rejected(RejectReason::Write);
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer does not read")))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Wire<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        let room = self.connection.count(buffer.filled().len().saturating_sub(before));
        Poll::Ready(room.map_err(|_| {
            io::Error::new(io::ErrorKind::OutOfMemory, "the requests of this caller are too large")
        }))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Wire<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.watched(context, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write_vectored(context, slices);
        self.watched(context, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_flush(context);
        self.watched(context, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_shutdown(context);
        self.watched(context, polled)
    }
}

#[cfg(test)]
mod tests {
    use plexus_core::{DoorFigures, DoorName};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::connections::WaitingConnections;

    fn wire(room: usize, stall: Duration) -> (Wire<tokio::io::DuplexStream>, tokio::io::DuplexStream) {
        let (ours, theirs) = tokio::io::duplex(room);
        let connection = WaitingConnections::new(DoorName::Http, 1, DoorFigures::default()).enter();
        (Wire::new(ours, connection, stall), theirs)
    }

    #[tokio::test]
    async fn a_peer_that_does_not_read_ends_the_write() {
        let (mut ours, _theirs) = wire(16, Duration::from_millis(50));
        let error = ours.write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_peer_that_reads_slowly_gets_everything() {
        let (mut ours, mut theirs) = wire(16, Duration::from_secs(60));
        let reading = tokio::spawn(async move {
            let (mut all, mut some) = (0, [0; 8]);
            while all < 80 {
                tokio::time::sleep(Duration::from_millis(5)).await;
                all += theirs.read(&mut some).await.unwrap();
            }
        });
        ours.write_all(&[0; 80]).await.unwrap();
        reading.await.unwrap();
    }
}
