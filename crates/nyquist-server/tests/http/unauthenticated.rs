//! Connections without the token: they have little time and few slots, and never exclude clients with the
//! token.

use std::time::Duration;

use nyquist_server::Limits;

use crate::client::Client;
use crate::serving::{FakeSymbols, PROFILE, Serving};

/// No connection is closed because of its age within a test.
const NEVER: Duration = Duration::from_hours(1);

fn unlimited_times() -> Limits {
    Limits {
        header_timeout: NEVER,
        stall_timeout: NEVER,
        unauthenticated_timeout: NEVER,
        ..Limits::default()
    }
}

/// Only connections without the token are closed because of their age.
fn impatient() -> Limits {
    Limits { unauthenticated_timeout: Duration::from_millis(50), ..unlimited_times() }
}

fn silent(server: &Serving, count: usize) -> Vec<Client> {
    (0..count).map(|_| server.connect()).collect()
}

#[test]
fn any_number_of_silent_connections_leaves_room() {
    let server = Serving::with_limits(unlimited_times());
    let _silent = silent(&server, 300);
    server.assert_well();
}

#[test]
fn half_a_head_is_not_authenticated() {
    let server = Serving::with_limits(unlimited_times());
    let mut half = silent(&server, 100);
    let head = format!("GET /{}/profile.json HTTP/1.1\r\nHost: localhost\r\nX: ", server.token);
    for client in &mut half {
        client.send(head.as_bytes());
    }
    server.assert_well();
}

#[test]
fn the_oldest_is_closed_for_the_newest() {
    let server = Serving::with_limits(Limits { unauthenticated: 3, ..unlimited_times() });
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
fn room_is_made_where_all_places_are_taken() {
    let server = Serving::with_limits(Limits { connections: 2, unauthenticated: 100, ..unlimited_times() });
    let mut known = server.connect();
    let head = server.head("GET", "profile.json");
    assert_eq!(known.request(&head, b"").status, 200);
    let _silent = silent(&server, 20);
    server.assert_well();
    assert_eq!(known.request(&head, b"").status, 200);
}

#[test]
fn who_has_shown_the_token_stays_whoever_comes() {
    let server = Serving::with_limits(Limits { unauthenticated: 1, ..unlimited_times() });
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
fn time_is_short_whatever_is_sent() {
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

/// The time of the first connection is over when the silent connection, which came later, has been closed.
#[test]
fn a_connection_with_the_token_is_not_too_old() {
    let limits = Limits { unauthenticated_timeout: Duration::from_secs(2), ..unlimited_times() };
    let server = Serving::with(limits, PROFILE.to_vec(), FakeSymbols::default());
    let mut known = server.connect();
    let head = server.head("GET", "profile.json");
    assert_eq!(known.request(&head, b"").status, 200);
    server.connect().wait_for_end();
    assert_eq!(known.request(&head, b"").status, 200);
}
