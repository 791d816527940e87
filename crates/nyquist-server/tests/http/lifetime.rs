//! From the port to the end: the chosen port, the form of the addresses, and the shutdown.

use std::net::TcpListener;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use nyquist_server::{Config, Limits, PortChoice, Server, ServerError};

use crate::client::request;
use crate::serving::{FakeSymbols, PROFILE, Serving};

fn bind(port: PortChoice) -> Result<Server, ServerError> {
    let config = Config { port, ..Config::default() };
    Server::bind(config, Some(PROFILE.to_vec().into()), Arc::new(FakeSymbols::default()))
}

fn taken_port() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

#[test]
fn a_range_of_ports_gives_the_first_that_is_free() {
    let (_listener, first) = taken_port();
    let server = bind(PortChoice::FirstFreeFrom { first, tries: 100 }).unwrap();
    assert!(server.local_addr().port() > first);
}

#[test]
fn a_range_without_a_free_port_is_a_named_error() {
    let (_listener, first) = taken_port();
    let error = bind(PortChoice::FirstFreeFrom { first, tries: 1 }).err().unwrap();
    assert_eq!(error.to_string(), format!("no free port on 127.0.0.1 from {first} to {first}"));
}

#[test]
fn a_fixed_port_that_is_taken_is_a_named_error() {
    let (_listener, port) = taken_port();
    let error = bind(PortChoice::Fixed(port)).err().unwrap();
    assert_eq!(error.to_string(), format!("cannot listen on 127.0.0.1:{port}"));
    assert!(
        matches!(error, ServerError::Listen { source, .. } if source.kind() == std::io::ErrorKind::AddrInUse)
    );
}

#[test]
fn a_range_ends_with_the_last_port_there_is() {
    let last = bind(PortChoice::FirstFreeFrom { first: 65535, tries: 100 });
    assert!(last.is_ok() || matches!(last, Err(ServerError::NoFreePort { last: 65535, .. })));
}

#[test]
fn an_address_of_another_machine_is_an_error() {
    let config = Config { address: "192.0.2.1".parse().unwrap(), ..Config::default() };
    let error =
        Server::bind(config, Some(Vec::new().into()), Arc::new(FakeSymbols::default())).err().unwrap();
    assert_eq!(error.to_string(), "cannot listen on 192.0.2.1:3000");
}

#[test]
fn the_addresses_hold_the_port_and_the_token() {
    let config =
        Config { port: PortChoice::Fixed(0), front_end: "http://front/".to_owned(), ..Config::default() };
    let server =
        Server::bind(config, Some(PROFILE.to_vec().into()), Arc::new(FakeSymbols::default())).unwrap();
    let (port, token) = (server.local_addr().port(), server.token());
    assert_eq!(server.symbol_server_url(), format!("http://127.0.0.1:{port}/{token}"));
    assert_eq!(server.profile_url(), format!("http://127.0.0.1:{port}/{token}/profile.json"));
    let encoded = format!("http%3A%2F%2F127.0.0.1%3A{port}%2F{token}");
    let expected =
        format!("http://front/from-url/{encoded}%2Fprofile.json%3Fcounters%3D0/?symbolServer={encoded}");
    assert_eq!(server.open_url(), expected);
}

#[test]
fn a_shutdown_before_the_start_is_kept() {
    let server = bind(PortChoice::Fixed(0)).unwrap();
    server.shutdown_handle().shut_down();
    server.run().unwrap();
}

#[test]
fn a_shutdown_frees_the_port() {
    let mut server = Serving::new();
    server.assert_well();
    server.end();
    TcpListener::bind(server.address).unwrap();
}

/// The times are so long that the test passes only if a shutdown does not wait for idle connections.
#[test]
fn a_shutdown_does_not_wait_for_idle_connections() {
    let long = Duration::from_hours(1);
    let limits = Limits { shutdown_grace: long, header_timeout: long, ..Limits::default() };
    let mut server = Serving::with_limits(limits);
    let mut idle = server.connect();
    assert_eq!(idle.request(&server.head("GET", "profile.json"), b"").status, 200);
    server.shutdown.shut_down();
    idle.wait_for_end();
    server.end();
}

const GATED: &[u8] = br#"{"memoryMap":[["gate",""]],"stacks":[]}"#;

#[test]
fn a_shutdown_lets_an_answer_under_way_out() {
    let (symbols, was_requested, open) = FakeSymbols::with_gate();
    let limits = Limits { shutdown_grace: Duration::from_hours(1), ..Limits::default() };
    let mut server = Serving::with(limits, PROFILE.to_vec(), symbols);
    let mut client = server.connect();
    client.send(&request(&server.head("POST", "symbolicate/v5"), GATED));
    was_requested.recv().unwrap();
    server.shutdown.shut_down();
    open.send(()).unwrap();
    assert_eq!(client.reply(false).status, 200);
    server.end();
}

#[test]
fn a_shutdown_does_not_wait_for_ever() {
    let (symbols, was_requested, open) = FakeSymbols::with_gate();
    let limits = Limits { shutdown_grace: Duration::from_millis(1), ..Limits::default() };
    let mut server = Serving::with(limits, PROFILE.to_vec(), symbols);
    let mut client = server.connect();
    client.send(&request(&server.head("POST", "symbolicate/v5"), GATED));
    was_requested.recv().unwrap();
    server.end();
    drop(open);
    client.wait_for_end();
}

#[test]
fn a_shutdown_may_come_from_anywhere_and_twice() {
    let mut server = Serving::new();
    let handle = server.shutdown.clone();
    thread::spawn(move || (handle.shut_down(), handle.shut_down())).join().unwrap();
    let thread = server.thread.take().unwrap();
    thread.join().unwrap().unwrap();
}
