//! The channel binding `tls-server-end-point` (RFC 5929): a hash of the server's certificate, which SCRAM includes in the proof of the password. A
//! machine in the middle with another certificate then cannot use the proof.

use ring::digest::{Algorithm, SHA256, SHA384, SHA512, digest};

/// Object identifiers of RSA signatures (PKCS #1) and of ECDSA signatures with SHA-2 begin with these bytes, and end with one more.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
const ECDSA_SHA2: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];
const ECDSA_SHA1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01];

const SEQUENCE: u8 = 0x30;
const OBJECT_IDENTIFIER: u8 = 0x06;

/// The binding to this certificate (DER). `None` if RFC 5929 defines no hash for its signature, such as for Ed25519.
pub(super) fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let hash = hash_of(signature_algorithm(certificate)?)?;
    Some(digest(hash, certificate).as_ref().to_vec())
}

/// The hash of the signature. SHA-256 replaces MD5 and SHA-1.
fn hash_of(identifier: &[u8]) -> Option<&'static Algorithm> {
    if identifier == ECDSA_SHA1 {
        return Some(&SHA256);
    }
    let (last, kind) = identifier.split_last()?;
    match (kind, last) {
        (RSA, 4 | 5 | 11) | (ECDSA_SHA2, 2) => Some(&SHA256),
        (RSA, 12) | (ECDSA_SHA2, 3) => Some(&SHA384),
        (RSA, 13) | (ECDSA_SHA2, 4) => Some(&SHA512),
        _ => None,
    }
}

/// `Certificate ::= SEQUENCE { tbsCertificate, signatureAlgorithm SEQUENCE { OBJECT IDENTIFIER, … }, … }`
fn signature_algorithm(certificate: &[u8]) -> Option<&[u8]> {
    let (parts, _) = element(certificate, SEQUENCE)?;
    let (_, behind_content) = element(parts, SEQUENCE)?;
    let (algorithm, _) = element(behind_content, SEQUENCE)?;
    let (identifier, _) = element(algorithm, OBJECT_IDENTIFIER)?;
    Some(identifier)
}

/// The content of the first DER element, and what follows the element.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first - 0x80))?;
            (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    (found == tag).then_some(())?;
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519};

    use super::*;

    #[test]
    fn the_hash_is_that_of_the_signature() {
        for (algorithm, hash) in [
            (&PKCS_ECDSA_P256_SHA256, Some(&SHA256)),
            (&PKCS_ECDSA_P384_SHA384, Some(&SHA384)),
            (&PKCS_ED25519, None),
        ] {
            let key = KeyPair::generate_for(algorithm).unwrap();
            let names = vec!["db.example".to_owned()];
            let certificate = CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
            let expected = hash.map(|hash| digest(hash, certificate.der()).as_ref().to_vec());
            assert_eq!(end_point(certificate.der()), expected);
        }
    }

    #[test]
    fn rsa_signatures_have_a_hash_each() {
        let with = |last: u8| hash_of(&[RSA, &[last]].concat());
        assert_eq!(with(5), Some(&SHA256));
        assert_eq!(with(11), Some(&SHA256));
        assert_eq!(with(12), Some(&SHA384));
        assert_eq!(with(13), Some(&SHA512));
        // RSASSA-PSS names its hash elsewhere.
        assert_eq!(with(10), None);
        assert_eq!(hash_of(&[]), None);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = end_point(&bytes);
            let _ = end_point(&[&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff], &bytes[..]].concat());
        }
    }
}
