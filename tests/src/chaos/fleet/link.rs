//! The link between a hub and its database: a proxy that can be slow, cut, or deaf in one direction. It forwards to the server that is current, so that a
//! standby can take over.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plexus_testkit::postgres::{SOCKET, url};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// The state of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It forwards everything.
    Sound,
    /// It forwards everything after this time.
    Slow(Duration),
    /// It has ended all connections and accepts none.
    Cut,
    /// It swallows the bytes of one direction. Connections that have lost bytes end when this ends.
    Deaf(Direction),
}

/// A direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the hub to the server.
    ToServer,
    /// From the server to the hub.
    ToHub,
}

/// The present state. Connections of an earlier generation have ended.
#[derive(Debug, Clone, Copy)]
struct Now {
    state: State,
    generation: u64,
}

/// A running proxy. Dropping it ends all its connections.
#[derive(Debug)]
pub struct Link {
    dir: TempDir,
    now: watch::Sender<Now>,
    server: Arc<Mutex<PathBuf>>,
    task: JoinHandle<()>,
}

impl Link {
    /// Starts a proxy to the server with this socket.
    ///
    /// # Errors
    /// If it cannot listen.
    pub fn start(server: PathBuf) -> anyhow::Result<Self> {
        let dir = TempDir::new()?;
        let listener = UnixListener::bind(dir.path().join(SOCKET))?;
        let now = watch::Sender::new(Now { state: State::Sound, generation: 0 });
        let server = Arc::new(Mutex::new(server));
        let task = tokio::spawn(accept(listener, now.subscribe(), Arc::clone(&server)));
        Ok(Self { dir, now, server, task })
    }

    /// The address of a database behind the proxy.
    pub fn url(&self, database: &str) -> String {
        url(self.dir.path(), database)
    }

    /// Changes the state of the link.
    pub fn set(&self, state: State) {
        self.now.send_modify(|now| {
            now.state = state;
            now.generation += u64::from(state == State::Cut);
        });
    }

    /// Ends all connections. New ones are to the server with this socket.
    pub fn switch_to(&self, server: &Path) {
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = server.to_owned();
        self.set(State::Cut);
        self.set(State::Sound);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: UnixListener, now: watch::Receiver<Now>, server: Arc<Mutex<PathBuf>>) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            Ok((hub, _)) = listener.accept() => {
                if now.borrow().state == State::Cut {
                    continue;
                }
                let server = server.lock().unwrap_or_else(PoisonError::into_inner).clone();
                connections.spawn(forward(hub, server, now.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Forwards a connection until one side closes it or the link is cut.
async fn forward(hub: UnixStream, server: PathBuf, now: watch::Receiver<Now>) {
    let generation = now.borrow().generation;
    let Ok(server) = UnixStream::connect(server).await else { return };
    let (from_hub, to_hub) = hub.into_split();
    let (from_server, to_server) = server.into_split();
    let lost_bytes = AtomicBool::new(false);
    let half = |direction| Half { direction, now: now.clone(), lost_bytes: &lost_bytes };
    tokio::select! {
        () = half(Direction::ToServer).copy(from_hub, to_server) => {}
        () = half(Direction::ToHub).copy(from_server, to_hub) => {}
        () = ends(now.clone(), generation, &lost_bytes) => {}
    }
}

/// Returns when the link is cut, or hears again after it has swallowed bytes of this connection.
async fn ends(mut now: watch::Receiver<Now>, generation: u64, lost_bytes: &AtomicBool) {
    let is_over = |now: &Now| {
        let hears_again = !matches!(now.state, State::Deaf(_)) && lost_bytes.load(Ordering::SeqCst);
        now.generation != generation || hears_again
    };
    // The sender lives as long as the proxy, which ends its connections with it.
    let _ = now.wait_for(is_over).await;
}

/// One direction of a connection.
struct Half<'a> {
    direction: Direction,
    now: watch::Receiver<Now>,
    lost_bytes: &'a AtomicBool,
}

impl Half<'_> {
    async fn copy(self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(read) = from.read(&mut bytes).await
            && read > 0
        {
            let state = self.now.borrow().state;
            match state {
                State::Deaf(direction) if direction == self.direction => {
                    self.lost_bytes.store(true, Ordering::SeqCst);
                    continue;
                }
                // A connection that has lost bytes must not continue with the next ones.
                _ if self.lost_bytes.load(Ordering::SeqCst) && !matches!(state, State::Deaf(_)) => return,
                State::Slow(delay) => sleep(delay).await,
                State::Sound | State::Cut | State::Deaf(_) => {}
            }
            if to.write_all(&bytes[..read]).await.is_err() {
                return;
            }
        }
    }
}
