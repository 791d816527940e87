//! The addresses for users and browsers.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The query of a profile without its counters. The front end shows each of them as a track above the threads.
pub(crate) const WITHOUT_COUNTERS: &str = "counters=0";

/// `http://ADDRESS:PORT`. For a server on all addresses it is the loopback address, where the browser runs.
pub(crate) fn origin(bound: SocketAddr) -> String {
    let ip = match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    format!("http://{}", SocketAddr::new(ip, bound.port()))
}

/// The origin of a page's address, as sent by browsers (RFC 6454, section 6.2): in lower case, without the
/// default port. Pages from files have the origin `null`.
pub(crate) fn origin_of(address: &str) -> Option<String> {
    let (scheme, rest) = address.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let usual_port = match &*scheme {
        "https" => ":443",
        "http" => ":80",
        "file" => return Some("null".to_owned()),
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#', '\\']).next()?.rsplit('@').next()?.to_ascii_lowercase();
    let host = authority.strip_suffix(usual_port).unwrap_or(&authority);
    (!host.is_empty()).then(|| format!("{scheme}://{host}"))
}

/// The address at which the front end opens a profile, with the server for symbols.
pub(crate) fn from_url(front_end: &str, profile: &str, symbol_server: &str) -> String {
    let front_end = front_end.trim_end_matches('/');
    let (profile, symbol_server) = (percent_encoded(profile), percent_encoded(symbol_server));
    format!("{front_end}/from-url/{profile}/?symbolServer={symbol_server}")
}

/// Encodes all but the unreserved characters (RFC 3986, section 2.3).
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_end_gets_both_addresses_encoded() {
        let expected = "https://profiler.firefox.com/from-url/http%3A%2F%2F127.0.0.1%3A3000%2Ft%2Fprofile.json/\
                        ?symbolServer=http%3A%2F%2F127.0.0.1%3A3000%2Ft";
        let (profile, server) = ("http://127.0.0.1:3000/t/profile.json", "http://127.0.0.1:3000/t");
        assert_eq!(from_url("https://profiler.firefox.com", profile, server), expected);
        assert_eq!(from_url("https://profiler.firefox.com/", profile, server), expected);
    }

    #[test]
    fn an_origin_can_be_opened_in_a_browser_here() {
        let check = |bound: &str, expected: &str| assert_eq!(origin(bound.parse().unwrap()), expected);
        check("127.0.0.1:3000", "http://127.0.0.1:3000");
        check("0.0.0.0:3000", "http://127.0.0.1:3000");
        check("[::]:3000", "http://[::1]:3000");
        check("192.168.1.5:80", "http://192.168.1.5:80");
    }

    #[test]
    fn an_origin_is_spelled_as_browsers_send_it() {
        let check =
            |address: &str, expected| assert_eq!(origin_of(address).as_deref(), expected, "{address}");
        check("https://profiler.firefox.com", Some("https://profiler.firefox.com"));
        check("HTTPS://Profiler.Firefox.com:443/a/b?c#d", Some("https://profiler.firefox.com"));
        check("http://localhost:4242/", Some("http://localhost:4242"));
        check("http://[::1]:80", Some("http://[::1]"));
        check("https://user:secret@front.example/x", Some("https://front.example"));
        check("https://good.example\\@evil.example/", Some("https://good.example"));
        check("file:///opt/profiler/index.html", Some("null"));
        for none in ["", "profiler.firefox.com", "https://", "https:///x", "javascript://x"] {
            check(none, None);
        }
    }

    #[test]
    fn everything_reserved_is_encoded() {
        assert_eq!(percent_encoded("a/b?c=d&é [1]%~"), "a%2Fb%3Fc%3Dd%26%C3%A9%20%5B1%5D%25~");
    }
}
