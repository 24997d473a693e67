//! The door for browsers on other machines. It speaks only TLS, with the configured certificate. Each connection
//! performs its handshake in its own task and counts as waiting, so a silent client blocks nobody.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt;
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

use crate::accept::DoorListener;

/// The time after which a peer that acknowledges no sent data is considered gone.
const UNACKNOWLEDGED: Duration = Duration::from_secs(60);
/// The idle time before the first keepalive probe.
const SILENT: Duration = Duration::from_secs(60);

/// The configuration of the door for other machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsDoor {
    /// The address on which it listens.
    pub listen: SocketAddr,
    /// The certificate chain, in PEM.
    pub certificate: PathBuf,
    /// The private key, in PEM.
    pub key: PathBuf,
}

/// Why the door cannot be opened.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file is missing or invalid.
    #[error("{path}: {why}")]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The certificate and the key do not match.
    #[error("certificate and key: {0}")]
    Pair(String),
    /// The address is unusable.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The I/O error.
        source: io::Error,
    },
}

/// A listener for TLS connections.
pub(crate) struct TlsListener {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
}

impl TlsListener {
    pub(crate) async fn bind(door: &TlsDoor) -> Result<Self, TlsError> {
        let acceptor = TlsAcceptor::from(Arc::new(config(door)?));
        let tcp = TcpListener::bind(door.listen)
            .await
            .map_err(|source| TlsError::Listen { address: door.listen, source })?;
        Ok(Self { tcp, acceptor })
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }
}

fn config(door: &TlsDoor) -> Result<ServerConfig, TlsError> {
    let wrong = |path: &Path, why: String| TlsError::File { path: path.to_owned(), why };
    let certificates = CertificateDer::pem_file_iter(&door.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| wrong(&door.certificate, error.to_string()))?;
    if certificates.is_empty() {
        return Err(wrong(&door.certificate, "the file contains no certificate".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_file(&door.key).map_err(|error| wrong(&door.key, error.to_string()))?;
    let pair = |error: tokio_rustls::rustls::Error| TlsError::Pair(error.to_string());
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(pair)?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(pair)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

impl DoorListener for TlsListener {
    type Raw = TcpStream;
    type Io = TlsStream<TcpStream>;

    async fn accept(&mut self) -> io::Result<TcpStream> {
        let (stream, _) = self.tcp.accept().await?;
        if let Err(error) = prepare(&stream) {
            tracing::debug!(%error, "cannot prepare a connection");
        }
        Ok(stream)
    }

    fn peer(stream: &TcpStream) -> Option<SocketAddr> {
        stream.peer_addr().ok()
    }

    fn open(&self, stream: TcpStream) -> impl Future<Output = io::Result<Self::Io>> + Send + 'static {
        self.acceptor.accept(stream)
    }
}

/// Disables Nagle's algorithm, and detects peers that vanish silently.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    // With Nagle's algorithm, each event of a stream would wait for the acknowledgement of the previous one.
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, SILENT)?;
    let millis = u32::try_from(UNACKNOWLEDGED.as_millis()).unwrap_or(u32::MAX);
    Ok(sockopt::set_tcp_user_timeout(stream, millis)?)
}
