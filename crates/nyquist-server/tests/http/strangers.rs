//! Connections without the token: they have little time and little room, and never keep out who knows it.

use std::time::Duration;

use nyquist_server::Limits;

use crate::client::Client;
use crate::serving::{FakeSymbols, PROFILE, Serving};

/// Nothing is closed for its age within a test.
const NEVER: Duration = Duration::from_hours(1);

fn patient() -> Limits {
    Limits { header_timeout: NEVER, stall_timeout: NEVER, stranger_timeout: NEVER, ..Limits::default() }
}

/// Only strangers are closed for their age.
fn impatient() -> Limits {
    Limits { stranger_timeout: Duration::from_millis(50), ..patient() }
}

fn silent(server: &Serving, count: usize) -> Vec<Client> {
    (0..count).map(|_| server.connect()).collect()
}

#[test]
fn any_number_of_silent_connections_leaves_room_for_the_token() {
    let server = Serving::with_limits(patient());
    let _silent = silent(&server, 300);
    server.assert_well();
}

#[test]
fn half_a_head_is_a_stranger_as_long_as_it_is_half() {
    let server = Serving::with_limits(patient());
    let mut half = silent(&server, 100);
    let head = format!("GET /{}/profile.json HTTP/1.1\r\nHost: localhost\r\nX: ", server.token);
    for client in &mut half {
        client.send(head.as_bytes());
    }
    server.assert_well();
}

#[test]
fn the_oldest_stranger_makes_room_and_the_newest_stays() {
    let server = Serving::with_limits(Limits { strangers: 3, ..patient() });
    let mut clients = silent(&server, 5);
    let mut newest = clients.split_off(2);
    for client in &mut clients {
        client.wait_for_end();
    }
    for client in &mut newest {
        assert_eq!(client.request("GET /", b"").status, 404);
    }
}

#[test]
fn strangers_make_room_where_all_connections_are_taken() {
    let server = Serving::with_limits(Limits { connections: 2, strangers: 100, ..patient() });
    let mut known = server.connect();
    let head = server.head("GET", "profile.json");
    assert_eq!(known.request(&head, b"").status, 200);
    let _silent = silent(&server, 20);
    server.assert_well();
    assert_eq!(known.request(&head, b"").status, 200);
}

#[test]
fn who_has_shown_the_token_stays_whoever_comes() {
    let server = Serving::with_limits(Limits { strangers: 1, ..patient() });
    let mut known = server.connect();
    let head = server.head("HEAD", "profile.json");
    assert_eq!(known.request(&head, b"").status, 200);
    let mut silent = silent(&server, 10);
    silent.pop();
    for client in &mut silent {
        client.wait_for_end();
    }
    assert_eq!(known.request(&head, b"").status, 200);
}

#[test]
fn strangers_have_little_time_whatever_they_send() {
    let server = Serving::with_limits(impatient());
    let beginnings: [&[u8]; 5] = [
        b"",
        b"GET / HTTP/1.1\r\nHost: loc",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
        b"GET /wrong/profile.json HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ];
    for beginning in beginnings {
        let mut client = server.connect();
        client.send(beginning);
        client.wait_for_end();
    }
}

/// The time of a stranger is over once the silent connection, which came later, has been closed.
#[test]
fn who_has_shown_the_token_is_not_closed_for_its_age() {
    let limits = Limits { stranger_timeout: Duration::from_secs(2), ..patient() };
    let server = Serving::with(limits, PROFILE.to_vec(), FakeSymbols::default());
    let mut known = server.connect();
    let head = server.head("GET", "profile.json");
    assert_eq!(known.request(&head, b"").status, 200);
    server.connect().wait_for_end();
    assert_eq!(known.request(&head, b"").status, 200);
}
