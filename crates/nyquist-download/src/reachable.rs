//! Checks whether a web server can be reached fast enough to be worth opening.

use std::net::{TcpStream, ToSocketAddrs as _};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// Whether the host of an `http` or `https` address accepts a connection within that time, including the
/// lookup of its name. Nothing is sent. The connecting thread may outlive the call.
pub fn accepts_connections(url: &str, within: Duration) -> bool {
    let Some((host, port)) = host_and_port(url) else { return false };
    let (sender, answer) = channel();
    let attempt = move || {
        let addresses = (&*host, port).to_socket_addrs().into_iter().flatten();
        let is_reached =
            addresses.take(4).any(|address| TcpStream::connect_timeout(&address, within).is_ok());
        let _ = sender.send(is_reached);
    };
    let started = thread::Builder::new().name("nyquist-reach".to_owned()).spawn(attempt);
    started.is_ok() && answer.recv_timeout(within).unwrap_or(false)
}

/// The host and the port of an address.
fn host_and_port(url: &str) -> Option<(String, u16)> {
    let (scheme, rest) = url.split_once("://")?;
    let usual = match &*scheme.to_ascii_lowercase() {
        "https" => 443,
        "http" => 80,
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#']).next()?.rsplit('@').next()?;
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
        _ => (authority, usual),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn an_address_has_a_host_and_a_port() {
        let check = |url: &str, expected: Option<(&str, u16)>| {
            let expected = expected.map(|(host, port)| (host.to_owned(), port));
            assert_eq!(host_and_port(url), expected, "{url}");
        };
        check("https://profiler.firefox.com", Some(("profiler.firefox.com", 443)));
        check("http://127.0.0.1:4243/x?y", Some(("127.0.0.1", 4243)));
        check("http://[::1]/", Some(("::1", 80)));
        check("http://[::1]:8080/", Some(("::1", 8080)));
        check("https://user@host.example/", Some(("host.example", 443)));
        check("file:///opt/profiler", None);
        check("https://", None);
        check("http://host:port/", None);
    }

    #[test]
    fn a_server_is_reached_only_while_it_listens() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        assert!(accepts_connections(&url, Duration::from_secs(5)));
        drop(listener);
        assert!(!accepts_connections(&url, Duration::from_secs(5)));
    }
}
