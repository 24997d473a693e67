//! `[console]` of `plexus.toml`: the host names that browsers may use, and the TLS listener for other machines.

use std::net::SocketAddr;
use std::path::PathBuf;

use plexus_server::TlsDoor;
use serde::Deserialize;

use crate::error::ExpectedError;

/// `[console]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ConsoleTable {
    allowed_hosts: Vec<String>,
    listen: Option<SocketAddr>,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
}

/// The validated table.
#[derive(Debug, PartialEq)]
pub(super) struct Console {
    pub(super) allowed_hosts: Vec<String>,
    pub(super) tls: Option<TlsDoor>,
}

impl ConsoleTable {
    pub(super) fn checked(self) -> Result<Console, ExpectedError> {
        let wrong =
            |message: String| Err(ExpectedError::Settings(format!("[console] in plexus.toml: {message}")));
        for host in &self.allowed_hosts {
            let plain = |c: char| c.is_ascii_alphanumeric() || ".-_:[]".contains(c);
            if host.is_empty() || !host.chars().all(plain) {
                return wrong(format!(
                    "`allowed_hosts` contains `{host}`; write hosts as a browser shows them, such as hub.example:8443"
                ));
            }
        }
        let tls = match (self.listen, self.tls_cert, self.tls_key) {
            (None, None, None) => None,
            (Some(listen), Some(certificate), Some(key)) => {
                if let Some(path) = [&certificate, &key].into_iter().find(|path| !path.is_absolute()) {
                    return wrong(format!("{} is relative; use an absolute path", path.display()));
                }
                if self.allowed_hosts.is_empty() && !listen.ip().is_loopback() {
                    return wrong("`allowed_hosts` is empty; list the names that browsers use, such as hub.example:8443".to_owned());
                }
                Some(TlsDoor { listen, certificate, key })
            }
            _ => {
                return wrong(
                    "set `listen`, `tls_cert` and `tls_key` together: other machines are served over TLS only"
                        .to_owned(),
                );
            }
        };
        Ok(Console { allowed_hosts: self.allowed_hosts, tls })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Console, String> {
        toml::from_str::<ConsoleTable>(text).unwrap().checked().map_err(|error| error.to_string())
    }

    #[test]
    fn other_machines_are_served_over_tls_and_by_name_only() {
        assert_eq!(read("").unwrap(), Console { allowed_hosts: Vec::new(), tls: None });
        assert_eq!(read("allowed_hosts = [\"hub.example\"]").unwrap().allowed_hosts, ["hub.example"]);
        let files = "tls_cert = \"/c.pem\"\ntls_key = \"/k.pem\"\n";
        let door =
            read(&format!("allowed_hosts = [\"hub.example:8443\"]\nlisten = \"0.0.0.0:8443\"\n{files}"));
        assert_eq!(door.unwrap().tls.unwrap().listen.port(), 8443);
        for (wrong, named) in [
            ("listen = \"0.0.0.0:8443\"".to_owned(), "tls_cert"),
            (files.to_owned(), "listen"),
            (format!("listen = \"0.0.0.0:8443\"\n{files}"), "allowed_hosts"),
            ("allowed_hosts = [\"https://hub.example\"]".to_owned(), "https://hub.example"),
            ("listen = \"127.0.0.1:1\"\ntls_cert = \"c.pem\"\ntls_key = \"/k.pem\"".to_owned(), "c.pem"),
        ] {
            let refused = read(&wrong).unwrap_err();
            assert!(refused.contains(named) && refused.contains("[console]"), "{refused}");
        }
    }
}
