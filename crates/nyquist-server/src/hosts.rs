//! The host names that requests may use. An attacker can point a foreign name at this machine (DNS
//! rebinding). A page of that name has the same origin as its requests, so no cross-origin rule stops it.
//! But its requests contain the name.

use std::net::{IpAddr, Ipv6Addr};

use hyper::Request;
use hyper::header::HOST;

/// The host names and addresses of this server.
pub(crate) struct AllowedHosts {
    bound: IpAddr,
}

impl AllowedHosts {
    /// `bound` is the address that the server listens on.
    pub(crate) fn new(bound: IpAddr) -> Self {
        Self { bound }
    }

    /// Whether every host in the request, in its header and in an absolute target, is allowed. A request
    /// without a host is not. The port is ignored, because forwarding may change it.
    pub(crate) fn allow<B>(&self, request: &Request<B>) -> bool {
        let mut hosts = request.headers().get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
        let target = request.uri().authority();
        host.to_str().is_ok_and(|host| self.allow_authority(host))
            && target.is_none_or(|target| self.allow_authority(target.as_str()))
    }

    fn allow_authority(&self, authority: &str) -> bool {
        let Some(host) = without_port(authority) else { return false };
        match ip_literal(host) {
            Some(ip) => self.allow_ip(ip),
            None => is_localhost(host),
        }
    }

    /// If the server listens on all addresses, any address may be its own, and addresses cannot be
    /// rebound. The unspecified address itself is not used by any legitimate page.
    fn allow_ip(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        !ip.is_unspecified() && (ip.is_loopback() || ip == self.bound || self.bound.is_unspecified())
    }
}

/// The host of `host`, `host:port`, `[v6]` or `[v6]:port`, brackets kept.
fn without_port(authority: &str) -> Option<&str> {
    let end_of_host = authority.find(']').map_or(0, |bracket| bracket + 1);
    let (host, port) = match authority[end_of_host..].find(':') {
        Some(colon) => (&authority[..end_of_host + colon], &authority[end_of_host + colon + 1..]),
        None => (authority, ""),
    };
    port.bytes().all(|byte| byte.is_ascii_digit()).then_some(host)
}

fn ip_literal(host: &str) -> Option<IpAddr> {
    match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']')?.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => host.parse().ok().filter(IpAddr::is_ipv4),
    }
}

/// `localhost` and the names below it, which browsers do not look up in DNS (RFC 6761, section 6.3).
fn is_localhost(host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    host == "localhost" || host.strip_suffix(".localhost").is_some_and(|label| !label.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bound: &str, allowed: &[&str], refused: &[&str]) {
        let hosts = AllowedHosts::new(bound.parse().unwrap());
        for host in allowed {
            assert!(hosts.allow_authority(host), "{host} on {bound}");
        }
        for host in refused {
            assert!(!hosts.allow_authority(host), "{host} on {bound}");
        }
    }

    #[test]
    fn a_loopback_server_has_the_loopback_names() {
        check(
            "127.0.0.1",
            &[
                "localhost",
                "LocalHost:3000",
                "a.localhost:1",
                "127.0.0.1",
                "127.0.0.1:3001",
                "127.8.9.10",
                "[::1]",
                "[::1]:3000",
                "127.0.0.1:",
                "[::ffff:127.0.0.1]:3000",
            ],
            &[
                "",
                ":3000",
                "evil.com",
                "evil.com:3000",
                "localhost.evil.com",
                "127.0.0.1.evil.com",
                "evillocalhost",
                ".localhost",
                "0.0.0.0",
                "[::]",
                "::1",
                "[::1",
                "[127.0.0.1]",
                "192.168.1.5",
                "localhost:80:80",
                "localhost:evil",
                "evil@localhost",
                "localhost@evil.com",
                "[::1]evil.com",
                "2130706433",
                "127.1",
            ],
        );
    }

    #[test]
    fn another_address_is_allowed_where_it_is_bound() {
        check("192.168.1.5", &["192.168.1.5:3000", "localhost"], &["192.168.1.6", "evil.com"]);
        check("fd00::5", &["[fd00::5]:3000"], &["[fd00::6]"]);
        check("0.0.0.0", &["192.168.1.5", "10.0.0.1:3000", "[fd00::5]"], &["0.0.0.0", "evil.com", "[::]"]);
    }

    #[test]
    fn a_request_names_one_host_and_targets_no_other() {
        let hosts = AllowedHosts::new("127.0.0.1".parse().unwrap());
        let request = |uri: &str, names: &[&str]| {
            let mut builder = Request::builder().uri(uri);
            for name in names {
                builder = builder.header(HOST, *name);
            }
            hosts.allow(&builder.body(()).unwrap())
        };
        assert!(request("/", &["localhost"]));
        assert!(request("http://127.0.0.1:3000/", &["localhost"]));
        assert!(!request("/", &[]));
        assert!(!request("/", &["localhost", "localhost"]));
        assert!(!request("http://evil.com/", &["localhost"]));
        assert!(!request("http://localhost/", &["evil.com"]));
    }
}
