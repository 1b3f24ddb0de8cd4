//! Checks the host that a request names, and the page it comes from.
//!
//! A web page can make a browser send requests to a server on the same machine, and, by DNS
//! rebinding, make them look like the page's own. `Host` and `Origin` reveal it; both are checked
//! on every route.

use http::{HeaderMap, HeaderValue, Uri, header};

/// The hosts and origins that are admitted.
#[derive(Debug, Clone)]
pub struct AllowedHosts {
    hosts: Vec<String>,
    origins: Vec<String>,
    loopback: bool,
}

impl AllowedHosts {
    /// Admits requests to this machine by a loopback name, and from pages it serves itself.
    pub fn loopback() -> Self {
        Self {
            hosts: Vec::new(),
            origins: Vec::new(),
            loopback: true,
        }
    }

    /// Admits only what is named with [`host`](Self::host) and [`origin`](Self::origin).
    pub fn only() -> Self {
        Self {
            hosts: Vec::new(),
            origins: Vec::new(),
            loopback: false,
        }
    }

    /// Admits requests to `host`, with one port (`example.org:8443`) or on any (`example.org`).
    #[must_use]
    pub fn host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into().to_ascii_lowercase());
        self
    }

    /// Admits pages of exactly `origin` (`https://app.example.org`).
    #[must_use]
    pub fn origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into().to_ascii_lowercase());
        self
    }

    /// The reason to refuse the request, if there is one.
    pub fn refuse(&self, uri: &Uri, headers: &HeaderMap) -> Option<&'static str> {
        let Some(authority) = authority(uri, headers) else {
            return Some("exactly one host header is required");
        };
        if !self.knows_host(&authority) {
            return Some("this server does not answer to that host");
        }
        let mut origins = headers.get_all(header::ORIGIN).iter();
        match (origins.next(), origins.next()) {
            (None, _) => None,
            (Some(origin), None) => {
                let known = origin
                    .to_str()
                    .is_ok_and(|origin| self.knows_origin(&origin.to_ascii_lowercase()));
                (!known).then_some("requests from that origin are not allowed")
            }
            _ => Some("requests from several origins are not allowed"),
        }
    }

    /// Whether the operator named the page's origin. A page of this machine is admitted by its
    /// address alone, and so may send requests but not read the answers.
    pub(crate) fn names_origin(&self, origin: &HeaderValue) -> bool {
        origin.to_str().is_ok_and(|origin| {
            let mut known = self.origins.iter();
            known.any(|known| known.eq_ignore_ascii_case(origin))
        })
    }

    fn knows_host(&self, authority: &str) -> bool {
        let (host, _) = split_port(authority);
        (self.loopback && is_loopback(host))
            || self
                .hosts
                .iter()
                .any(|known| known == authority || known == host)
    }

    fn knows_origin(&self, origin: &str) -> bool {
        if self.origins.iter().any(|known| known == origin) {
            return true;
        }
        let page = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"));
        self.loopback && page.is_some_and(|authority| is_loopback(split_port(authority).0))
    }
}

/// The one authority the request names, lower-case.
fn authority(uri: &Uri, headers: &HeaderMap) -> Option<String> {
    // HTTP/2 carries the authority in the URI, and HTTP/1.1 may too. If it is given twice, both
    // must agree.
    let in_uri = uri.authority().map(http::uri::Authority::as_str);
    let mut hosts = headers.get_all(header::HOST).iter();
    let named = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().ok()?,
        (None, _) => in_uri?,
        (Some(_), Some(_)) => return None,
    };
    let one = in_uri.is_none_or(|other| other.eq_ignore_ascii_case(named));
    // `user@host` serves only to confuse readers.
    (one && !named.contains('@')).then(|| named.to_ascii_lowercase())
}

fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !port.is_empty() => {
            (host, Some(port))
        }
        _ => (authority, None),
    }
}

fn is_loopback(host: &str) -> bool {
    matches!(host, "localhost" | "127.0.0.1" | "[::1]")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(allowed_hosts: &AllowedHosts, host: &str, origin: Option<&str>, welcome: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        let refused = allowed_hosts.refuse(&Uri::from_static("/mcp"), &headers);
        assert_eq!(
            refused.is_none(),
            welcome,
            "{host} from {origin:?}: {refused:?}"
        );
    }

    #[test]
    fn loopback_names_are_welcome_and_rebound_names_are_not() {
        let allowed_hosts = AllowedHosts::loopback();
        for host in [
            "localhost",
            "localhost:8080",
            "127.0.0.1:1",
            "[::1]:9",
            "LOCALHOST:80",
        ] {
            check(&allowed_hosts, host, None, true);
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:80",
            "0.0.0.0:80",
            "127.0.0.2",
            "",
            "a@localhost",
            "localhost:80:80",
        ] {
            check(&allowed_hosts, host, None, false);
        }
    }

    #[test]
    fn a_foreign_or_opaque_origin_is_turned_away() {
        let allowed_hosts = AllowedHosts::loopback();
        check(
            &allowed_hosts,
            "localhost:8080",
            Some("http://localhost:3000"),
            true,
        );
        check(
            &allowed_hosts,
            "localhost:8080",
            Some("https://[::1]:3000"),
            true,
        );
        for origin in [
            "http://evil.example",
            "null",
            "http://localhost.evil.example",
            "file://localhost",
            "http://localhost@evil.example",
            "",
        ] {
            check(&allowed_hosts, "localhost:8080", Some(origin), false);
        }
    }

    #[test]
    fn only_named_hosts_and_origins_are_allowed() {
        let allowed_hosts = AllowedHosts::only()
            .host("data.example:8443")
            .host("other.example")
            .origin("https://app.example");
        check(&allowed_hosts, "data.example:8443", None, true);
        check(&allowed_hosts, "data.example:1", None, false);
        check(
            &allowed_hosts,
            "other.example:77",
            Some("https://app.example"),
            true,
        );
        check(
            &allowed_hosts,
            "other.example:77",
            Some("https://app.example:444"),
            false,
        );
        check(&allowed_hosts, "localhost", None, false);
    }

    #[test]
    fn a_host_in_the_address_is_the_one_in_the_header_or_none() {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, "localhost:8080".parse().unwrap());
        for (address, welcome) in [
            ("http://localhost:8080/mcp", true),
            ("http://LOCALHOST:8080/mcp", true),
            ("http://localhost/mcp", false),
            ("http://evil.example/mcp", false),
            ("http://localhost:8080@evil.example/mcp", false),
        ] {
            let refused = AllowedHosts::loopback().refuse(&Uri::from_static(address), &headers);
            assert_eq!(refused.is_none(), welcome, "{address}");
        }
    }

    #[test]
    fn two_hosts_are_none() {
        let mut headers = HeaderMap::new();
        headers.append(header::HOST, "localhost".parse().unwrap());
        headers.append(header::HOST, "localhost".parse().unwrap());
        assert!(
            AllowedHosts::loopback()
                .refuse(&Uri::from_static("/"), &headers)
                .is_some()
        );
    }
}
