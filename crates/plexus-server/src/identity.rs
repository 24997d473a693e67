//! Proves that the hub is the program behind its port. While no hub runs, any program of the user, including a command
//! of an agent, can listen there. The hub signs a nonce with a key that only it can read. Pages and relays require this
//! proof before they send a token.

use std::net::SocketAddr;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use http::{HeaderMap, Uri, header};
use plexus_protocol::console::Proof;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
};

use crate::accept::Peer;
use crate::data_dir::{DataDir, DataDirError};
use crate::refusal::Refusal;
use crate::routes::{Doors, Transport};
use crate::site::only;

/// The path that answers with a [`Proof`].
const PATH: &str = "/identity";

/// The hub's key pair.
#[derive(Debug)]
pub(crate) struct Identity {
    pair: EcdsaKeyPair,
    random: SystemRandom,
}

impl Identity {
    /// The identity of the hub of this data directory. The first call creates it.
    pub(crate) fn open(dir: &DataDir) -> Result<Self, DataDirError> {
        let random = SystemRandom::new();
        let pkcs8 = dir.identity_key(|| {
            let created = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
            created
                .map(|document| document.as_ref().to_vec())
                .map_err(|error| std::io::Error::other(error.to_string()))
        })?;
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &pkcs8, &random)
            .map_err(|_| dir.bad_identity_key())?;
        Ok(Self { pair, random })
    }

    /// The public key with which a relay verifies proofs.
    pub(crate) fn public(&self) -> HubKey {
        HubKey(hex(self.pair.public_key().as_ref()))
    }

    fn prove(&self, host: &str, peer: SocketAddr, nonce: &str) -> Option<Proof> {
        let statement = statement(host, peer, nonce);
        let signature = self.pair.sign(&self.random, statement.as_bytes()).ok()?;
        Some(Proof { key: self.public().0, peer, signature: hex(signature.as_ref()) })
    }
}

/// The public key of a hub, in hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubKey(pub String);

impl HubKey {
    /// The path and query with which a client requests a proof.
    pub fn path(nonce: &str) -> String {
        format!("{PATH}?nonce={nonce}")
    }

    /// Whether the holder of this key signed the proof, for this nonce and as the hub at `host`.
    pub fn proves(&self, proof: &Proof, host: &str, nonce: &str) -> bool {
        let (Some(key), Some(signature)) = (from_hex(&self.0), from_hex(&proof.signature)) else {
            return false;
        };
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key)
            .verify(statement(host, proof.peer, nonce).as_bytes(), &signature)
            .is_ok()
    }
}

/// The signed text. It includes the host: a program on the hub's old port cannot relay a signature from the new one.
fn statement(host: &str, peer: SocketAddr, nonce: &str) -> String {
    format!("plexus hub\n{}\n{peer}\n{nonce}", host.to_ascii_lowercase())
}

/// `GET /identity?nonce=…`, without authentication.
pub(crate) async fn get(
    State(doors): State<Doors>,
    Extension(Peer(peer)): Extension<Peer>,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let (Transport::Tcp(site), Some(peer)) = (&doors.transport, peer) else {
        return Refusal::NotFound.into_response();
    };
    let host = only(&headers, header::HOST).filter(|host| site.may_sign_for(host));
    let nonce = uri.query().and_then(|query| query.strip_prefix("nonce=")).filter(|nonce| is_nonce(nonce));
    let (Some(host), Some(nonce)) = (host, nonce) else { return Refusal::NotFound.into_response() };
    match doors.identity.prove(host, peer, nonce) {
        Some(proof) => ([(header::CACHE_CONTROL, "no-store")], Json(proof)).into_response(),
        None => Refusal::Unavailable.into_response(),
    }
}

/// Whether the nonce is long enough to be unique.
fn is_nonce(text: &str) -> bool {
    (32..=128).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Creates a random nonce.
///
/// # Errors
/// When the system provides no randomness.
pub fn nonce() -> std::io::Result<String> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(hex(&bytes))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_holds_for_its_hub_its_host_and_its_nonce_only() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let dir = DataDir::open(folder.path()).unwrap();
        let identity = Identity::open(&dir).unwrap();
        let (key, nonce) = (identity.public(), nonce().unwrap());
        let peer = "127.0.0.1:50000".parse().unwrap();
        let mut proof = identity.prove("127.0.0.1:4445", peer, &nonce).unwrap();
        assert!(key.proves(&proof, "127.0.0.1:4445", &nonce));
        assert!(!key.proves(&proof, "127.0.0.1:4446", &nonce));
        assert!(!key.proves(&proof, "127.0.0.1:4445", &super::nonce().unwrap()));
        proof.peer.set_port(50_001);
        assert!(!key.proves(&proof, "127.0.0.1:4445", &nonce), "the proof covers the peer");
        let stranger = Identity::open(&DataDir::open(other.path()).unwrap()).unwrap();
        assert!(!key.proves(
            &stranger.prove("127.0.0.1:4445", peer, &nonce).unwrap(),
            "127.0.0.1:4445",
            &nonce
        ));
        for signature in ["", "0", "zz", "00"] {
            let forged = Proof { key: key.0.clone(), peer, signature: signature.to_owned() };
            assert!(!key.proves(&forged, "127.0.0.1:4445", &nonce));
        }
        assert_eq!(Identity::open(&dir).unwrap().public(), key, "it stays the same");
    }

    #[test]
    fn a_damaged_key_is_reported_with_its_file() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("identity.key"), "no key").unwrap();
        let refused = Identity::open(&DataDir::open(folder.path()).unwrap()).unwrap_err();
        assert!(refused.to_string().contains("identity.key"), "{refused}");
    }
}
