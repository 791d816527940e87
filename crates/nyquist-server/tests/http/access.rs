//! Which clients get a response, and what others can learn.

use crate::client::Reply;
use crate::serving::{PROFILE, Serving};

/// The response without the token: a short error that names neither the token nor the program, and that a
/// page of another origin cannot read.
fn assert_learns_nothing(server: &Serving, reply: &Reply, status: u16) {
    assert_eq!(reply.status, status, "{reply:?}");
    reply.error();
    let everything = format!("{reply:?}{}", reply.text()).to_lowercase();
    assert!(!everything.contains(&server.token), "{reply:?}");
    assert!(!everything.contains("nyquist") && !everything.contains("access-control"), "{reply:?}");
}

#[test]
fn the_root_and_tokenless_paths_are_not_found() {
    let server = Serving::new();
    let mut almost = server.token.clone();
    almost.replace_range(31.., if almost.ends_with('a') { "b" } else { "a" });
    let upper = server.token.to_uppercase();
    let paths = ["", "profile.json", "/", "*", "..", "symbolicate/v5", "token/profile.json", "favicon.ico"];
    let wrong = [format!("{almost}/profile.json"), format!("{upper}/profile.json"), server.token.clone()];
    for path in paths.iter().map(ToString::to_string).chain(wrong) {
        for method in ["GET", "POST", "OPTIONS", "PUT"] {
            let reply = server.connect().request(&format!("{method} /{path}"), b"");
            assert_learns_nothing(&server, &reply, 404);
        }
    }
}

#[test]
fn a_wrong_path_below_the_token_is_not_found() {
    let server = Serving::new();
    let paths = [
        "",
        "profile.json/",
        "profile",
        "symbolicate",
        "symbolicate/v6",
        "source/v1/",
        "../profile.json",
        "/profile.json",
        "profile.json%00",
    ];
    for path in paths {
        let reply = server.ask("GET", path, "");
        assert_eq!((reply.status, &*reply.error()), (404, "not found"), "{path}");
        assert!(reply.text().contains(r#""code":"not-found""#), "{}", reply.text());
    }
}

#[test]
fn a_foreign_host_name_is_forbidden_for_any_path() {
    let server = Serving::new();
    let with_token = format!("/{}/profile.json", server.token);
    for host in ["Host: evil.example", "Host: evil.example:3000", "Host: 0.0.0.0", "Host:", "X: y"] {
        for path in ["/", &with_token] {
            let mut client = server.connect();
            client.send(format!("GET {path} HTTP/1.1\r\n{host}\r\n\r\n").as_bytes());
            assert_learns_nothing(&server, &client.reply(false), 403);
        }
    }
}

#[test]
fn a_foreign_host_in_a_target_is_forbidden() {
    let server = Serving::new();
    let mut client = server.connect();
    let target = format!("http://evil.example/{}/profile.json", server.token);
    client.send(format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes());
    assert_learns_nothing(&server, &client.reply(false), 403);
}

#[test]
fn the_loopback_names_are_allowed_under_any_port() {
    let server = Serving::new();
    for host in
        ["localhost", "LOCALHOST:9999", "127.0.0.1:3000", "127.1.2.3", "[::1]:80", "nyquist.localhost"]
    {
        let mut client = server.connect();
        let path = format!("/{}/profile.json", server.token);
        client.send(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
        assert_eq!(client.reply(false).status, 200, "{host}");
    }
}

#[test]
fn only_the_front_end_may_read_with_the_token() {
    let server = Serving::new();
    for (method, path) in [("GET", "profile.json"), ("POST", "source/v1"), ("GET", "asm/v1"), ("GET", "none")]
    {
        for origin in ["https://profiler.firefox.com", "https://evil.example", "null"] {
            let reply = server.ask(method, &format!("{path}\nOrigin: {origin}"), "");
            let allowed = reply.header("access-control-allow-origin");
            assert_eq!(allowed, Some("https://profiler.firefox.com"), "{path}");
        }
    }
}

#[test]
fn a_preflight_allows_the_headers_it_asks_for() {
    let server = Serving::new();
    let request_headers = "Origin: https://profiler.firefox.com\nAccess-Control-Request-Method: POST\n\
                 Access-Control-Request-Headers: user-agent\nAccess-Control-Request-Private-Network: true";
    let reply = server.ask("OPTIONS", &format!("symbolicate/v5\n{request_headers}"), "");
    assert_eq!((reply.status, reply.text()), (204, ""));
    assert_eq!(reply.header("access-control-allow-origin"), Some("https://profiler.firefox.com"));
    assert_eq!(reply.header("access-control-allow-headers"), Some("user-agent"));
    assert_eq!(reply.header("access-control-allow-methods"), Some("POST, OPTIONS"));
    assert_eq!(reply.header("access-control-allow-private-network"), Some("true"));
    let plain = server.ask("OPTIONS", "profile.json", "");
    assert_eq!(plain.header("access-control-allow-methods"), Some("GET, HEAD, OPTIONS"));
    assert_eq!(plain.header("access-control-allow-headers"), None);
    assert_eq!(plain.header("access-control-allow-private-network"), None);
}

#[test]
fn a_wrong_method_is_refused_with_those_allowed() {
    let server = Serving::new();
    for (method, path, allowed) in [
        ("POST", "profile.json", "GET, HEAD, OPTIONS"),
        ("DELETE", "profile.json", "GET, HEAD, OPTIONS"),
        ("GET", "symbolicate/v5", "POST, OPTIONS"),
        ("PUT", "source/v1", "POST, OPTIONS"),
        ("BREW", "asm/v1", "POST, OPTIONS"),
    ] {
        let reply = server.ask(method, path, "");
        assert_eq!((reply.status, reply.header("allow")), (405, Some(allowed)), "{method} {path}");
        assert!(reply.error().contains(allowed));
    }
}

#[test]
fn the_profile_is_served_as_it_is_stored() {
    let server = Serving::new();
    let reply = server.ask("GET", "profile.json?cache=1\nAccept-Encoding: gzip", "");
    assert_eq!((reply.status, &*reply.body), (200, PROFILE));
    assert_eq!(reply.header("content-type"), Some("application/gzip"));
    assert_eq!(reply.header("content-encoding"), None);
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    let head = server.ask("HEAD", "profile.json", "");
    let length = PROFILE.len().to_string();
    assert_eq!((head.status, head.header("content-length"), &*head.body), (200, Some(&*length), &[][..]));
}
