//! The hub as a web site: the host names that browsers use for it, and the pages whose requests it accepts. A request
//! must name one of these hosts, including the port, so a foreign DNS name that points at this machine does not work. A
//! request from a page must come from one of the hub's own pages.

use std::net::SocketAddr;

use http::{HeaderMap, Uri, header};

/// How browsers reach one of the hub's TCP doors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Site {
    /// The address on which the door listens. Its loopback names have the same port.
    address: SocketAddr,
    /// The scheme that browsers use.
    scheme: Scheme,
    /// Other hosts that lead here, as they appear in `Host`, allowed by the configuration.
    hosts: Vec<String>,
}

/// The scheme that browsers use for a door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// HTTP, from this machine. A tunnel may add TLS that ends at the tunnel.
    Http,
    /// TLS that ends here.
    Https,
}

impl Site {
    pub(crate) fn new(address: SocketAddr, scheme: Scheme, hosts: Vec<String>) -> Self {
        Self { address, scheme, hosts }
    }

    /// Whether a request names this site as its host and, if a page sent it, comes from one of the site's own pages.
    pub(crate) fn accepts(&self, headers: &HeaderMap, uri: &Uri) -> bool {
        let Some(host) = only(headers, header::HOST) else { return false };
        let uri_agrees = uri.authority().is_none_or(|authority| self.is_host(authority.as_str()));
        let origin_agrees = !headers.contains_key(header::ORIGIN)
            || only(headers, header::ORIGIN).is_some_and(|origin| self.is_origin(origin));
        self.is_host(host) && uri_agrees && origin_agrees
    }

    fn is_host(&self, host: &str) -> bool {
        self.is_loopback(host) || self.is_allowed(host)
    }

    fn is_origin(&self, origin: &str) -> bool {
        match (self.scheme, origin.split_once("://")) {
            (Scheme::Http, Some(("http", host))) => self.is_host(host),
            (Scheme::Http, Some(("https", host))) => self.is_allowed(host),
            (Scheme::Https, Some(("https", host))) => self.is_host(host),
            _ => false,
        }
    }

    fn is_loopback(&self, host: &str) -> bool {
        ["127.0.0.1", "localhost", "[::1]"]
            .iter()
            .any(|name| host.eq_ignore_ascii_case(&format!("{name}:{}", self.address.port())))
    }

    /// Whether the hub may sign as this host. Without TLS, another program may listen at the same port of another
    /// loopback address, so the door signs only for its own address and for allowed hosts.
    pub(crate) fn may_sign_for(&self, host: &str) -> bool {
        match self.scheme {
            Scheme::Http => host.eq_ignore_ascii_case(&self.address.to_string()) || self.is_allowed(host),
            Scheme::Https => self.is_host(host),
        }
    }

    /// The address of this door, for a request that names it `localhost`. Another program may listen at the same port
    /// of the other address of `localhost`, and would share the page's origin.
    pub(crate) fn instead_of_localhost(&self, headers: &HeaderMap) -> Option<SocketAddr> {
        let localhost = format!("localhost:{}", self.address.port());
        only(headers, header::HOST)
            .filter(|host| host.eq_ignore_ascii_case(&localhost) && !self.may_sign_for(host))
            .map(|_| self.address)
    }

    fn is_allowed(&self, host: &str) -> bool {
        self.hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(host))
    }
}

/// The value of a header that occurs exactly once.
pub(crate) fn only(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts_request(site: &Site, pairs: &[(&'static str, &str)]) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        site.accepts(&headers, &Uri::from_static("/rpc"))
    }

    fn at(port: u16) -> SocketAddr {
        ([127, 0, 0, 1], port).into()
    }

    fn local_site() -> Site {
        Site::new(at(4445), Scheme::Http, Vec::new())
    }

    #[test]
    fn only_this_hubs_own_host_is_served() {
        for host in ["127.0.0.1:4445", "localhost:4445", "LocalHost:4445", "[::1]:4445"] {
            assert!(accepts_request(&local_site(), &[("host", host)]), "{host}");
        }
        for host in ["evil.example:4445", "127.0.0.1", "127.0.0.1:4446", "127.0.0.1:4445.evil.example", ""] {
            assert!(!accepts_request(&local_site(), &[("host", host)]), "{host}");
        }
        assert!(!accepts_request(&local_site(), &[]));
        assert!(!accepts_request(
            &local_site(),
            &[("host", "127.0.0.1:4445"), ("host", "evil.example:4445")]
        ));
        let mut headers = HeaderMap::new();
        headers.append("host", "127.0.0.1:4445".parse().unwrap());
        assert!(!local_site().accepts(&headers, &Uri::from_static("http://evil.example:4445/rpc")));
    }

    #[test]
    fn only_localhost_is_redirected_to_the_address() {
        let sent_to = |host: &str| {
            let mut headers = HeaderMap::new();
            headers.append("host", host.parse().unwrap());
            local_site().instead_of_localhost(&headers)
        };
        assert_eq!(sent_to("LocalHost:4445"), Some(at(4445)));
        for host in ["127.0.0.1:4445", "[::1]:4445", "localhost:4446", "localhost"] {
            assert_eq!(sent_to(host), None, "{host}");
        }
    }

    #[test]
    fn a_door_signs_only_for_its_own_address_and_allowed_hosts() {
        let with = |scheme, hosts: &[&str]| {
            Site::new(at(4445), scheme, hosts.iter().map(|host| (*host).to_owned()).collect())
        };
        let plain = with(Scheme::Http, &["hub.example", "127.0.0.1:9000"]);
        for host in ["127.0.0.1:4445", "hub.example", "127.0.0.1:9000"] {
            assert!(plain.may_sign_for(host), "{host}");
        }
        for host in ["localhost:4445", "[::1]:4445", "127.0.0.1:4446", "127.0.0.1", "evil.example"] {
            assert!(!plain.may_sign_for(host), "{host}");
        }
        assert!(
            with(Scheme::Https, &[]).may_sign_for("localhost:4445"),
            "the certificate identifies the hub"
        );
    }

    #[test]
    fn pages_of_other_sites_and_ports_are_refused() {
        let with =
            |origin: &str| accepts_request(&local_site(), &[("host", "127.0.0.1:4445"), ("origin", origin)]);
        assert!(with("http://127.0.0.1:4445"));
        assert!(with("http://localhost:4445"));
        for origin in
            ["http://127.0.0.1:3000", "https://127.0.0.1:4445", "null", "http://evil.example", "file://", ""]
        {
            assert!(!with(origin), "{origin}");
        }
    }

    #[test]
    fn an_allowed_host_matches_exactly_as_configured() {
        let site = Site::new(
            at(4445),
            Scheme::Http,
            vec!["hub.example".to_owned(), "phone.example:8443".to_owned()],
        );
        let from = |host: &str, origin: &str| accepts_request(&site, &[("host", host), ("origin", origin)]);
        assert!(from("hub.example", "https://hub.example") && from("hub.example", "http://hub.example"));
        assert!(from("phone.example:8443", "https://phone.example:8443"));
        for (host, origin) in [
            ("hub.example:80", "http://hub.example"),
            ("phone.example", "https://phone.example"),
            ("hub.example", "https://hub.example:8443"),
            ("hub.example", "https://hub.example.evil.example"),
            ("sub.hub.example", "https://sub.hub.example"),
        ] {
            assert!(!from(host, origin), "{host} {origin}");
        }
    }

    #[test]
    fn behind_tls_an_http_origin_is_refused() {
        let site = Site::new(at(8443), Scheme::Https, vec!["hub.example:8443".to_owned()]);
        let from = |origin: &str| accepts_request(&site, &[("host", "hub.example:8443"), ("origin", origin)]);
        assert!(from("https://hub.example:8443") && from("https://127.0.0.1:8443"));
        assert!(!from("http://hub.example:8443") && !from("http://127.0.0.1:8443"));
    }
}
