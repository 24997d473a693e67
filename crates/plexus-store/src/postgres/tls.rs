//! TLS for connections to PostgreSQL, with rustls. [`TlsSetup`] reads the certificates once, and performs the handshake of each connection.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{self, ChannelBinding, MakeTlsConnect, TlsConnect};
use tokio_rustls::{TlsConnector, client, rustls};

use super::address::{Authorities, ClientCertificate, Encryption, Tls, Verified};
use super::certificate_check::{AnyCertificate, AnyHost};
use super::channel_binding::end_point;
use super::secret_file::{self, SecretFileError};

/// The name of PostgreSQL's protocol, which libpq sends as well.
const PROTOCOL: &[u8] = b"postgresql";

/// Why TLS cannot be set up.
#[derive(Debug, Error)]
pub(super) enum TlsError {
    /// A file with certificates is missing or invalid.
    #[error("`{parameter}`: {path}: {why}")]
    Certificates {
        /// The parameter that names the file.
        parameter: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The private key cannot be read.
    #[error("`sslkey`: {0}")]
    KeyFile(#[from] SecretFileError),
    /// The private key is invalid, or does not belong to the certificate.
    #[error("`sslkey`: {path}: {why}")]
    Key {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The authorities of the system cannot be used.
    #[error("the certificate authorities of the system: {0}; name a file with `sslrootcert`")]
    System(rustls::Error),
    /// rustls rejects the setup.
    #[error("TLS: {0}")]
    Rustls(#[from] rustls::Error),
}

/// Why a handshake failed.
#[derive(Debug, Error)]
pub(super) enum HandshakeError {
    /// The host cannot be verified.
    #[error("`{0}` cannot be the host name in a certificate")]
    HostName(String),
    /// The certificate was issued by somebody else.
    #[error(
        "the authority that issued the server's certificate is not trusted: set `sslrootcert` in the address to the file with \
         its certificate"
    )]
    UnknownAuthority,
    /// The certificate is for another host.
    #[error("the server is not the host in the address: {0}")]
    OtherHost(CertificateError),
    /// The certificate is wrong otherwise.
    #[error("the server's certificate is not valid: {0}")]
    Certificate(CertificateError),
    /// The server does not follow the protocol, or refuses the hub.
    #[error(transparent)]
    Rustls(rustls::Error),
    /// The connection was lost. A retry may succeed.
    #[error(transparent)]
    Io(io::Error),
}

impl From<io::Error> for HandshakeError {
    fn from(error: io::Error) -> Self {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            None => Self::Io(error),
            Some(rustls::Error::InvalidCertificate(why)) => match why {
                // The second one is an authority with the same name and another key.
                CertificateError::UnknownIssuer | CertificateError::BadSignature => Self::UnknownAuthority,
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                    Self::OtherHost(why.clone())
                }
                why => Self::Certificate(why.clone()),
            },
            Some(other) => Self::Rustls(other.clone()),
        }
    }
}

/// Performs the handshakes of all connections.
#[derive(Clone)]
pub(super) struct TlsSetup {
    /// `None` if no connection is encrypted.
    config: Option<Arc<ClientConfig>>,
}

impl TlsSetup {
    /// Reads the certificates.
    pub(super) fn new(encryption: &Encryption) -> Result<Self, TlsError> {
        let config = match encryption {
            Encryption::Off => None,
            Encryption::IfSupported(tls) | Encryption::Required(tls) => Some(Arc::new(client_config(tls)?)),
        };
        Ok(Self { config })
    }
}

fn client_config(tls: &Tls) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier(&tls.verified, provider)?);
    let mut config = match &tls.client {
        None => config.with_no_client_auth(),
        Some(ClientCertificate { certificate, key }) => {
            let chain = certificates("sslcert", certificate)?;
            let wrong = |why: String| TlsError::Key { path: key.clone(), why };
            let content = secret_file::read(key)?;
            let private =
                PrivateKeyDer::from_pem_slice(&content).map_err(|error| wrong(error.to_string()))?;
            config.with_client_auth_cert(chain, private).map_err(|error| wrong(error.to_string()))?
        }
    };
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(config)
}

fn verifier(
    verified: &Verified,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
    Ok(match verified {
        Verified::Nothing => Arc::new(AnyCertificate(provider)),
        Verified::Authority(file) => Arc::new(AnyHost(issued_by(file, provider)?)),
        Verified::AuthorityAndHost(Authorities::File(file)) => issued_by(file, provider)?,
        Verified::AuthorityAndHost(Authorities::System) => {
            Arc::new(rustls_platform_verifier::Verifier::new(provider).map_err(TlsError::System)?)
        }
    })
}

/// Verifies that a certificate was issued by an authority in this file.
fn issued_by(file: &Path, provider: Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, TlsError> {
    let wrong = |why: String| TlsError::Certificates { parameter: "sslrootcert", path: file.to_owned(), why };
    let mut authorities = RootCertStore::empty();
    for authority in certificates("sslrootcert", file)? {
        authorities.add(authority).map_err(|error| wrong(error.to_string()))?;
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(authorities), provider).build();
    verifier.map_err(|error| wrong(error.to_string()))
}

/// The certificates in a PEM file, at least one.
fn certificates(parameter: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let wrong = |why: String| TlsError::Certificates { parameter, path: path.to_owned(), why };
    let found = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| wrong(error.to_string()))?;
    if found.is_empty() {
        return Err(wrong("the file contains no certificate in PEM format".to_owned()));
    }
    Ok(found)
}

impl MakeTlsConnect<Socket> for TlsSetup {
    type Stream = TlsStream;
    type TlsConnect = Handshake;
    type Error = HandshakeError;

    // The driver also calls this for connections that it does not encrypt.
    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, HandshakeError> {
        Ok(Handshake { config: self.config.clone(), host: host.to_owned() })
    }
}

/// The handshake of one connection.
pub(super) struct Handshake {
    config: Option<Arc<ClientConfig>>,
    host: String,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = TlsStream;
    type Error = HandshakeError;
    type Future = Pin<Box<dyn Future<Output = Result<TlsStream, HandshakeError>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let not_set_up =
                || HandshakeError::Rustls(rustls::Error::General("TLS is not set up".to_owned()));
            let connector = TlsConnector::from(self.config.ok_or_else(not_set_up)?);
            let host = ServerName::try_from(self.host.clone());
            let host = host.map_err(|_| HandshakeError::HostName(self.host))?;
            let stream = connector.connect(host, socket).await?;
            Ok(TlsStream(Box::new(stream)))
        })
    }
}

/// An encrypted connection.
pub(super) struct TlsStream(Box<client::TlsStream<Socket>>);

impl tls::TlsStream for TlsStream {
    fn channel_binding(&self) -> ChannelBinding {
        let (_, session) = self.0.get_ref();
        let certificate = session.peer_certificates().and_then(<[_]>::first);
        certificate
            .and_then(|certificate| end_point(certificate))
            .map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

impl AsyncRead for TlsStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for TlsStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_shutdown(context)
    }
}
