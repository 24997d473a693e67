//! A certificate authority for tests.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};

/// An authority that issues certificates.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its private key, in PEM.
pub struct Issued {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

impl Authority {
    /// A new authority.
    ///
    /// # Errors
    /// If no key can be generated.
    pub fn new() -> anyhow::Result<Self> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "authority of a test");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Ok(Self(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?))
    }

    /// Its own certificate, in PEM.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Issues a certificate for the server with this host name.
    ///
    /// # Errors
    /// If the name is not valid.
    pub fn server(&self, host: &str) -> anyhow::Result<Issued> {
        self.issue(CertificateParams::new([host.to_owned()])?, host, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// Issues a certificate for a client with this name.
    ///
    /// # Errors
    /// If no key can be generated.
    pub fn client(&self, name: &str) -> anyhow::Result<Issued> {
        self.issue(CertificateParams::default(), name, ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn issue(
        &self,
        mut params: CertificateParams,
        name: &str,
        purpose: ExtendedKeyUsagePurpose,
    ) -> anyhow::Result<Issued> {
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages.push(purpose);
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.0)?;
        Ok(Issued { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}
