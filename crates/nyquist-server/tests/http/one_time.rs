//! The link for opening a browser: valid once, and without the token.

use std::net::TcpStream;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::thread;

use nyquist_server::{Config, Page, PortChoice, Server};

use crate::client::Client;
use crate::serving::{FakeSymbols, PROFILE, Serving};

/// The user of this test's connections.
fn own_user() -> u32 {
    std::fs::metadata("/proc/self").unwrap().uid()
}

/// A server whose one-time link is for `user`; the link's path, and its target.
fn serving_for(user: u32) -> (Serving, String, String) {
    let config = Config { port: PortChoice::Fixed(0), user: Some(user), ..Config::default() };
    let server =
        Server::bind(config, Some(PROFILE.to_vec().into()), Arc::new(FakeSymbols::default())).unwrap();
    let url = server.one_time_url(Page::FrontEnd).unwrap();
    let (_, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let (path, target) = (format!("/{path}"), server.open_url());
    (Serving::of(server), path, target)
}

fn ask(server: &Serving, method: &str, path: &str) -> (u16, Option<String>) {
    let reply = server.connect().request(&format!("{method} {path}"), b"");
    (reply.status, reply.header("location").map(str::to_owned))
}

#[test]
fn a_link_opens_the_front_end_once() {
    let (server, path, target) = serving_for(own_user());
    assert!(!path.contains(&server.token) && target.contains(&server.token));
    assert_eq!(ask(&server, "GET", &path), (302, Some(target)));
    assert_eq!(ask(&server, "GET", &path), (410, None));
    server.assert_well();
}

#[test]
fn only_the_request_of_a_page_uses_it_up() {
    let (server, path, target) = serving_for(own_user());
    for method in ["HEAD", "OPTIONS", "POST"] {
        assert_eq!(ask(&server, method, &path), (405, None), "{method}");
    }
    assert_eq!(ask(&server, "GET", &path), (302, Some(target)));
}

#[test]
fn another_code_is_not_found() {
    let (server, path, _) = serving_for(own_user());
    let mut other = path.clone();
    other.replace_range(path.len() - 1.., if path.ends_with('a') { "b" } else { "a" });
    for path in [&*other, "/open/", "/open", &format!("/open/{}", server.token)] {
        assert_eq!(ask(&server, "GET", path), (404, None), "{path}");
    }
    let without = Serving::new();
    assert_eq!(ask(&without, "GET", "/open/"), (404, None));
}

/// Root's connections are treated as the user's, so root cannot be another user here.
#[test]
fn another_users_connection_does_not_use_it_up() {
    let own = own_user();
    if own == 0 {
        return;
    }
    let (server, path, _) = serving_for(own + 1);
    assert_eq!(ask(&server, "GET", &path), (403, None));
    assert_eq!(ask(&server, "GET", &path), (403, None));
}

#[test]
fn of_many_at_once_one_gets_it() {
    let (server, path, _) = serving_for(own_user());
    let statuses: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(|| ask(&server, "GET", &path).0)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 302).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 410).count(), 15, "{statuses:?}");
}

/// A socket whose other end is closed no longer has an owner.
#[test]
fn who_hangs_up_at_once_does_not_use_it_up() {
    let (server, path, target) = serving_for(own_user());
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let mut half = Client::of(TcpStream::connect(server.address).unwrap());
    half.send(request.as_bytes());
    half.finish_sending();
    let status = half.reply(false).status;
    // The server may have checked before the connection was closed.
    let expected = if status == 302 { (410, None) } else { (302, Some(target)) };
    assert!(matches!(status, 302 | 403), "{status}");
    assert_eq!(ask(&server, "GET", &path), expected);
}
