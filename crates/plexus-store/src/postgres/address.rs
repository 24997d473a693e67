//! The address of a PostgreSQL database: a URL with the parameters of libpq. This module parses the URL, and decides whether connections are
//! encrypted and what is verified. It reads no file and opens no connection.

use std::error::Error as _;
use std::ffi::{OsStr, OsString};
use std::net::IpAddr;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;
use std::str::FromStr as _;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, percent_decode_str, utf8_percent_encode};
use thiserror::Error;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

/// The port of an address without one.
const DEFAULT_PORT: u16 = 5432;

/// The characters that are encoded in a user name.
const USER: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// The address of a PostgreSQL database, and the files that may contain its password. Its debug output hides the password.
#[derive(Debug, Clone)]
pub struct PostgresAddress {
    pub(super) config: Config,
    pub(super) encryption: Encryption,
    pub(super) password_file: Option<PathBuf>,
    pub(super) pgpass: Option<PathBuf>,
    reach: Reach,
    /// The address without user and password, and without parameters that hold for one user.
    place: String,
}

/// Why an address cannot be used. No text contains a part of the address that may be a password.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AddressError {
    /// It is not a URL of PostgreSQL.
    #[error(
        "the address of the store is not that of a PostgreSQL database, such as postgres://user@host/name"
    )]
    Scheme,
    /// An `@` that does not end the user name and the password. A part of the password may be behind it.
    #[error(
        "the address of the database is ambiguous: in a user name or password write `@` as %40, `/` as %2F and `?` as %3F; in a \
         parameter write `@` as %40"
    )]
    Ambiguous,
    /// A parameter without `=`.
    #[error("a parameter in the address of the database has no value: write ?NAME=VALUE&NAME=VALUE")]
    NoValue,
    /// A parameter for TLS that occurs twice.
    #[error("the address of the database contains `{0}` twice")]
    Twice(&'static str),
    /// The driver rejects it.
    #[error("the address of the database: {0}")]
    Invalid(String),
    /// The user is missing.
    #[error("the address of the database names no user: write postgres://user@host/name")]
    NoUser,
    /// The host is missing.
    #[error(
        "the address of the database names no host: write postgres://user@host/name, or \
         postgres://user@/name?host=/directory/of/the/socket"
    )]
    NoHost,
    /// A socket and a host, which need different encryption.
    #[error("the address of the database names both a socket and a host: use one of them")]
    SocketAndHost,
    /// An unknown mode.
    #[error("`sslmode` must be `disable`, `prefer`, `require`, `verify-ca` or `verify-full`")]
    Mode,
    /// A mode that falls back to a connection without encryption.
    #[error(
        "`sslmode={0}` may connect to another machine without encryption: use `verify-full`, or `disable` if you trust the network"
    )]
    FallsBack(String),
    /// A certificate has to be verified, and the authority is unknown.
    #[error(
        "`sslmode=verify-ca` needs `sslrootcert=/path/of/ca.pem`, the certificate of the authority of the server"
    )]
    NoAuthority,
    /// The authorities of the system issue certificates for everybody, so the host name has to be verified.
    #[error("`sslrootcert=system` needs `sslmode=verify-full`")]
    AnyAuthority,
    /// A relative path, whose meaning depends on where the hub is started.
    #[error("`{0}` in the address of the database must be an absolute path")]
    Relative(&'static str),
    /// A certificate without a key, or the reverse.
    #[error("the address of the database must contain both `sslcert` and `sslkey`, or neither")]
    HalfPair,
}

/// Whether connections are encrypted, and what is verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Encryption {
    /// They are not encrypted.
    Off,
    /// They are encrypted if the server supports it. Only for servers on this machine.
    IfSupported(Tls),
    /// They are encrypted, or they fail.
    Required(Tls),
}

/// How TLS connections are authenticated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tls {
    pub(super) verified: Verified,
    pub(super) client: Option<ClientCertificate>,
}

/// What is verified of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verified {
    /// Nothing. A machine between the hub and the server can read and change everything.
    Nothing,
    /// The authority that issued the certificate, in this file.
    Authority(PathBuf),
    /// The authority, and that the certificate is for the host of the address.
    AuthorityAndHost(Authorities),
}

/// The authorities that are trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Authorities {
    /// Those that the system trusts.
    System,
    /// Those in this file.
    File(PathBuf),
}

/// The certificate that authenticates the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClientCertificate {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

/// Where the server can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// On this machine, behind a Unix socket.
    Socket,
    /// On this machine, at a loopback address.
    Loopback,
    /// On another machine.
    Network,
}

impl PostgresAddress {
    /// Parses an address such as `postgres://user@host/name?sslmode=verify-full&sslrootcert=/path/of/ca.pem`.
    ///
    /// # Errors
    /// [`AddressError`] if it is wrong, or would not protect the connection.
    pub fn parse(url: &str) -> Result<Self, AddressError> {
        let (ssl, rest) = split(url)?;
        let mut config = Config::from_str(&rest).map_err(|error| {
            AddressError::Invalid(error.source().map_or_else(|| error.to_string(), ToString::to_string))
        })?;
        let user = config.get_user().filter(|user| !user.is_empty()).ok_or(AddressError::NoUser)?.to_owned();
        if config.get_dbname().is_none() {
            config.dbname(user);
        }
        if config.get_hosts().is_empty() {
            // The certificate is then verified for the IP address.
            for address in config.get_hostaddrs().to_vec() {
                config.host(address.to_string());
            }
        }
        let reach = Reach::of(&config)?;
        let encryption = ssl.encryption(reach)?;
        config.ssl_mode(match encryption {
            Encryption::Off => SslMode::Disable,
            Encryption::IfSupported(_) => SslMode::Prefer,
            Encryption::Required(_) => SslMode::Require,
        });
        Ok(Self { config, encryption, password_file: None, pgpass: None, reach, place: place(url) })
    }

    /// The address of the same database for another user, without a password.
    pub(super) fn for_user(&self, user: &str) -> String {
        format!("postgres://{}@{}", utf8_percent_encode(user, USER), self.place)
    }

    /// Whether the address is valid on this machine only.
    pub(super) fn is_local(&self) -> bool {
        self.reach != Reach::Network
    }

    /// Uses the password in this file if the address contains none.
    #[must_use]
    pub fn with_password_file(self, file: Option<PathBuf>) -> Self {
        Self { password_file: file, ..self }
    }

    /// Uses the passwords in this file, in the format of libpq, if there is no other password.
    #[must_use]
    pub fn with_pgpass(self, file: Option<PathBuf>) -> Self {
        Self { pgpass: file, ..self }
    }

    /// The name of the database, for messages.
    pub(super) fn name(&self) -> String {
        format!("PostgreSQL database {}", self.config.get_dbname().unwrap_or_default())
    }

    /// Whether the address contains a password.
    pub fn has_password(&self) -> bool {
        self.config.get_password().is_some()
    }

    /// Which database it is, as an address without the password and the parameters.
    pub fn without_password(&self) -> String {
        let (user, name) =
            (self.config.get_user().unwrap_or_default(), self.config.get_dbname().unwrap_or_default());
        let port = |i| port_of_host(&self.config, i);
        let mut hosts = Vec::new();
        let mut sockets = Vec::new();
        for (i, host) in self.config.get_hosts().iter().enumerate() {
            match host {
                Host::Tcp(host) => hosts.push(format!("{host}:{}", port(i))),
                Host::Unix(dir) => sockets.push(format!("?host={}&port={}", dir.display(), port(i))),
            }
        }
        format!("postgres://{user}@{}/{name}{}", hosts.join(","), sockets.join(""))
    }

    /// The protection that connections to another machine do not have.
    pub(super) fn weakness(&self) -> Option<&'static str> {
        match &self.encryption {
            _ if self.reach != Reach::Network => None,
            Encryption::Off => Some("connections to the database are not encrypted (sslmode=disable)"),
            Encryption::IfSupported(tls) | Encryption::Required(tls) if tls.verified == Verified::Nothing => {
                Some("the certificate of the database server is not verified: use sslmode=verify-full")
            }
            Encryption::IfSupported(_) | Encryption::Required(_) => None,
        }
    }
}

impl Reach {
    fn of(config: &Config) -> Result<Self, AddressError> {
        let (hosts, addresses) = (config.get_hosts(), config.get_hostaddrs());
        if hosts.is_empty() || hosts.contains(&Host::Tcp(String::new())) {
            return Err(AddressError::NoHost);
        }
        let sockets = hosts.iter().filter(|host| matches!(host, Host::Unix(_))).count();
        if sockets == hosts.len() && addresses.is_empty() {
            return Ok(Self::Socket);
        }
        if sockets > 0 {
            return Err(AddressError::SocketAndHost);
        }
        // A host of another name at a loopback address is behind a tunnel.
        let is_loopback = hosts.iter().all(is_loopback) && addresses.iter().all(IpAddr::is_loopback);
        Ok(if is_loopback { Self::Loopback } else { Self::Network })
    }
}

/// The port of host `i` of an address.
pub(super) fn port_of_host(config: &Config, i: usize) -> u16 {
    let ports = config.get_ports();
    ports.get(i).or(ports.first()).copied().unwrap_or(DEFAULT_PORT)
}

fn is_loopback(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name.eq_ignore_ascii_case("localhost")
                || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
    }
}

/// The parameters for TLS, which the driver does not know or reads otherwise.
#[derive(Debug, Default)]
struct SslParameters {
    mode: Option<OsString>,
    root: Option<OsString>,
    certificate: Option<OsString>,
    key: Option<OsString>,
}

/// Separates the parameters for TLS from the rest of the address.
fn split(url: &str) -> Result<(SslParameters, String), AddressError> {
    let rest = url.strip_prefix("postgres://").or_else(|| url.strip_prefix("postgresql://"));
    let rest = rest.ok_or(AddressError::Scheme)?;
    // The driver ends the password at the first `@`, wherever it is.
    let behind_user = rest.split_once('@').map_or("", |(_, behind)| behind);
    let is_in_user = |at: usize| !rest[..at].contains(['/', '?']);
    if behind_user.contains('@') || !rest.find('@').is_none_or(is_in_user) {
        return Err(AddressError::Ambiguous);
    }
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut ssl = SslParameters::default();
    let mut others = Vec::new();
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=').ok_or(AddressError::NoValue)?;
        let (name, slot) = match &*percent_decode_str(name).decode_utf8_lossy() {
            "sslmode" => ("sslmode", &mut ssl.mode),
            "sslrootcert" => ("sslrootcert", &mut ssl.root),
            "sslcert" => ("sslcert", &mut ssl.certificate),
            "sslkey" => ("sslkey", &mut ssl.key),
            _ => {
                others.push(parameter);
                continue;
            }
        };
        let value = OsString::from_vec(percent_decode(value.as_bytes()).collect());
        if slot.replace(value).is_some() {
            return Err(AddressError::Twice(name));
        }
    }
    Ok((ssl, format!("postgres://{place}?{}", others.join("&"))))
}

/// The parts of a valid address that do not depend on the user.
fn place(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split_once('@').map_or(rest, |(_, behind)| behind);
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let is_shared = |parameter: &&str| {
        let name = parameter.split('=').next().unwrap_or_default();
        let name = percent_decode_str(name).decode_utf8_lossy();
        !["", "user", "password", "sslcert", "sslkey"].contains(&&*name)
    };
    let shared: Vec<&str> = query.split('&').filter(is_shared).collect();
    if shared.is_empty() { place.to_owned() } else { format!("{place}?{}", shared.join("&")) }
}

impl SslParameters {
    fn encryption(&self, reach: Reach) -> Result<Encryption, AddressError> {
        // libpq does the same: the kernel protects a socket, and servers do not support TLS there.
        if reach == Reach::Socket {
            return Ok(Encryption::Off);
        }
        let client = self.client()?;
        let authorities = self.authorities()?;
        let verified = match (self.mode.as_ref().map(|mode| mode.as_bytes()), authorities) {
            (None, None) if reach == Reach::Loopback && client.is_none() => return Ok(Encryption::Off),
            (None | Some(b"verify-full"), authorities) => {
                Verified::AuthorityAndHost(authorities.unwrap_or(Authorities::System))
            }
            (Some(b"disable"), _) => return Ok(Encryption::Off),
            (Some(b"prefer"), None) if reach == Reach::Loopback => {
                return Ok(Encryption::IfSupported(Tls { verified: Verified::Nothing, client }));
            }
            (Some(mode @ (b"prefer" | b"allow")), _) => {
                return Err(AddressError::FallsBack(String::from_utf8_lossy(mode).into_owned()));
            }
            (Some(b"require" | b"verify-ca"), Some(Authorities::System)) => {
                return Err(AddressError::AnyAuthority);
            }
            // As in libpq, `require` with an authority is `verify-ca`.
            (Some(b"require" | b"verify-ca"), Some(Authorities::File(file))) => Verified::Authority(file),
            (Some(b"require"), None) => Verified::Nothing,
            (Some(b"verify-ca"), None) => return Err(AddressError::NoAuthority),
            (Some(_), _) => return Err(AddressError::Mode),
        };
        Ok(Encryption::Required(Tls { verified, client }))
    }

    fn authorities(&self) -> Result<Option<Authorities>, AddressError> {
        match self.root.as_deref() {
            None => Ok(None),
            Some(root) if root == "system" => Ok(Some(Authorities::System)),
            Some(root) => Ok(Some(Authorities::File(absolute("sslrootcert", root)?))),
        }
    }

    fn client(&self) -> Result<Option<ClientCertificate>, AddressError> {
        match (self.certificate.as_deref(), self.key.as_deref()) {
            (None, None) => Ok(None),
            (Some(certificate), Some(key)) => Ok(Some(ClientCertificate {
                certificate: absolute("sslcert", certificate)?,
                key: absolute("sslkey", key)?,
            })),
            _ => Err(AddressError::HalfPair),
        }
    }
}

fn absolute(name: &'static str, path: &OsStr) -> Result<PathBuf, AddressError> {
    let path = PathBuf::from(path);
    if path.is_absolute() { Ok(path) } else { Err(AddressError::Relative(name)) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encryption(url: &str) -> Encryption {
        PostgresAddress::parse(url).unwrap().encryption
    }

    fn error(url: &str) -> AddressError {
        PostgresAddress::parse(url).err().unwrap_or_else(|| panic!("{url} was accepted"))
    }

    fn required(verified: Verified) -> Encryption {
        Encryption::Required(Tls { verified, client: None })
    }

    fn ca() -> PathBuf {
        PathBuf::from("/etc/ca.pem")
    }

    #[test]
    fn another_machine_is_verified_unless_the_address_says_otherwise() {
        let full = required(Verified::AuthorityAndHost(Authorities::System));
        for url in [
            "postgres://u@db.example/p",
            "postgresql://u:secret@db.example:5433/p",
            "postgres://u@10.0.0.1/p",
            "postgres://u@[2001:db8::1]/p",
            "postgres://u@localhost.example/p",
            "postgres://u@localhost,db.example/p",
            "postgres://u@/p?host=db.example",
            "postgres://u@/p?hostaddr=10.0.0.1",
            "postgres://u@localhost/p?hostaddr=10.0.0.1",
            // A tunnel.
            "postgres://u@db.example/p?hostaddr=127.0.0.1",
            "postgres://u@localhost/p?sslmode=verify-full",
            "postgres://u@db.example/p?sslrootcert=system",
            "postgres://u@db.example/p?ssl%6Dode=verify%2Dfull",
        ] {
            assert_eq!(encryption(url), full, "{url}");
            assert_eq!(PostgresAddress::parse(url).unwrap().config.get_ssl_mode(), SslMode::Require, "{url}");
        }
        let file = "postgres://u@db.example/p?sslrootcert=%2Fetc%2Fca.pem";
        assert_eq!(encryption(file), required(Verified::AuthorityAndHost(Authorities::File(ca()))));
        assert_eq!(encryption("postgres://u@db.example/p?sslmode=disable"), Encryption::Off);
    }

    #[test]
    fn this_machine_needs_no_encryption() {
        for url in [
            "postgres://u@/p?host=/run/postgresql",
            "postgres://u@%2Frun%2Fpostgresql/p",
            "postgres://u@/p?host=/run/postgresql&sslmode=verify-full",
            "postgres://u@localhost/p",
            "postgres://u@LOCALHOST:5433/p",
            "postgres://u@127.0.0.1,[::1]/p",
            "postgres://u@/p?hostaddr=127.0.0.2",
            "postgres://u@localhost/p?sslmode=disable",
        ] {
            assert_eq!(encryption(url), Encryption::Off, "{url}");
            assert_eq!(PostgresAddress::parse(url).unwrap().config.get_ssl_mode(), SslMode::Disable, "{url}");
        }
        let nothing = Tls { verified: Verified::Nothing, client: None };
        assert_eq!(encryption("postgres://u@localhost/p?sslmode=prefer"), Encryption::IfSupported(nothing));
        // An authority in the address turns verification on.
        let named = encryption("postgres://u@localhost/p?sslrootcert=/etc/ca.pem");
        assert_eq!(named, required(Verified::AuthorityAndHost(Authorities::File(ca()))));
    }

    #[test]
    fn the_modes_of_libpq_have_their_meaning() {
        let with = |parameters: &str| encryption(&format!("postgres://u@db.example/p?{parameters}"));
        assert_eq!(with("sslmode=require"), required(Verified::Nothing));
        for mode in ["require", "verify-ca"] {
            let authority = required(Verified::Authority(ca()));
            assert_eq!(with(&format!("sslmode={mode}&sslrootcert=/etc/ca.pem")), authority);
        }
        let Encryption::Required(tls) = with("sslcert=/a/c.pem&sslkey=/a/k.pem") else { panic!("encrypted") };
        let pair = ClientCertificate { certificate: "/a/c.pem".into(), key: "/a/k.pem".into() };
        assert_eq!(tls.client, Some(pair));
    }

    #[test]
    fn a_weak_or_contradictory_address_is_refused() {
        let with = |parameters: &str| error(&format!("postgres://u@db.example/p?{parameters}"));
        assert_eq!(with("sslmode=prefer"), AddressError::FallsBack("prefer".to_owned()));
        assert_eq!(with("sslmode=allow"), AddressError::FallsBack("allow".to_owned()));
        assert_eq!(with("sslmode=VERIFY-FULL"), AddressError::Mode);
        assert_eq!(with("sslmode="), AddressError::Mode);
        assert_eq!(with("sslmode=disable&sslmode=require"), AddressError::Twice("sslmode"));
        assert_eq!(with("sslmode=verify-ca"), AddressError::NoAuthority);
        assert_eq!(with("sslmode=verify-ca&sslrootcert=system"), AddressError::AnyAuthority);
        assert_eq!(with("sslmode=require&sslrootcert=system"), AddressError::AnyAuthority);
        assert_eq!(with("sslrootcert=ca.pem"), AddressError::Relative("sslrootcert"));
        assert_eq!(with("sslrootcert="), AddressError::Relative("sslrootcert"));
        assert_eq!(with("sslcert=/c.pem"), AddressError::HalfPair);
        assert_eq!(with("sslmode"), AddressError::NoValue);
        assert!(with("passfile=/x").to_string().contains("unknown option `passfile`"));
        assert_eq!(error("postgres://db.example/p"), AddressError::NoUser);
        assert_eq!(error("postgres://@db.example/p"), AddressError::NoUser);
        assert_eq!(error("postgres://u@/p"), AddressError::NoHost);
        assert_eq!(error("postgres://u@,db.example/p"), AddressError::NoHost);
        assert_eq!(error("postgres://u@db.example/p?host=/run"), AddressError::SocketAndHost);
        assert_eq!(error("postgres://u@/p?host=/run&hostaddr=10.0.0.1"), AddressError::SocketAndHost);
        assert_eq!(error("host=db.example user=u"), AddressError::Scheme);
    }

    #[test]
    fn connections_that_another_machine_could_read_are_named() {
        let weakness = |url: &str| PostgresAddress::parse(url).unwrap().weakness();
        assert!(weakness("postgres://u@db.example/p?sslmode=disable").unwrap().contains("not encrypted"));
        assert!(weakness("postgres://u@db.example/p?sslmode=require").unwrap().contains("not verified"));
        for url in ["postgres://u@db.example/p", "postgres://u@localhost/p", "postgres://u@/p?host=/run"] {
            assert_eq!(weakness(url), None, "{url}");
        }
    }

    #[test]
    fn the_database_and_the_host_of_an_ip_address_have_defaults() {
        let config = PostgresAddress::parse("postgres://u@/?hostaddr=10.0.0.1").unwrap().config;
        assert_eq!(config.get_dbname(), Some("u"));
        assert_eq!(config.get_hosts(), [Host::Tcp("10.0.0.1".to_owned())]);
    }

    #[test]
    fn no_text_shows_a_password() {
        for url in [
            "postgres://u:SE@CRET@db.example/p",
            "postgres://u:a@SECRET?SECRET=1&SECRET@db.example/p",
            "postgres://u:a/SECRET@db.example/p",
            "postgres://u:a?SECRET@db.example/p",
            "postgres://u:SECRET@db.example:port/p",
            "postgres://u:SECRET@db.example/p?sslmode=SECRET",
            "postgres://u:SECRET@db.example/p?x",
            "postgres://db.example/p?user=u&password=SEC@SECRET",
        ] {
            let error = error(url);
            assert!(!format!("{error} {error:?}").contains("SECRET"), "{url}: {error:?}");
        }
        let address = PostgresAddress::parse("postgres://u:SECRET@db.example/p?password=SECRET").unwrap();
        assert!(!format!("{address:?}").contains("SECRET"), "{address:?}");
        assert_eq!(address.config.get_password(), Some(&b"SECRET"[..]));
    }

    proptest! {
        #[test]
        fn no_input_panics_and_no_accepted_one_falls_back(text in "[a-z@:/?&=%0-9,\\[\\].-]{0,40}") {
            if let Ok(address) = PostgresAddress::parse(&format!("postgres://{text}")) {
                let is_local = address.reach != Reach::Network;
                prop_assert!(is_local || address.config.get_ssl_mode() != SslMode::Prefer);
                prop_assert!(is_local || text.contains("disable") || address.encryption != Encryption::Off);
            }
        }
    }
}
