//! Malicious or faulty clients: none of them ends the server or keeps others from their responses.

use std::thread;
use std::time::Duration;

use nyquist_server::Limits;

use crate::client::request;
use crate::serving::{FakeSymbols, ID, PROFILE, Serving};

/// Limits that a test reaches soon. The times suffice for a slow machine to send a request.
fn tight() -> Limits {
    let soon = Duration::from_secs(1);
    Limits {
        body_bytes: 1024,
        header_timeout: soon,
        stall_timeout: soon,
        connections: 4,
        ..Limits::default()
    }
}

#[test]
fn a_body_too_long_is_refused_readably() {
    let server = Serving::with_limits(tight());
    for length in [1025, 2048, 4096, 100_000] {
        let reply = server.ask("POST", "symbolicate/v5", vec![b' '; length]);
        assert_eq!((reply.status, &*reply.error()), (413, "the request's body is longer than 1024 bytes"));
    }
    assert_eq!(server.ask("POST", "symbolicate/v5", vec![b' '; 1024]).status, 400);
}

#[test]
fn a_body_too_long_is_taken_whole_before_refusal() {
    let server = Serving::with_limits(Limits { body_bytes: 8 << 20, ..Limits::default() });
    let mut client = server.connect();
    assert!(client.send(&request(&server.head("POST", "source/v1"), &vec![b' '; 31 << 20])));
    assert_eq!(client.reply(false).status, 413);
}

#[test]
fn a_length_that_is_only_claimed_costs_nothing() {
    let server = Serving::new();
    let mut client = server.connect();
    let head = server.head("POST", "symbolicate/v5");
    client.send(
        format!("{head} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1099511627776\r\n\r\n").as_bytes(),
    );
    let reply = client.reply(false);
    assert_eq!(reply.status, 413);
    server.assert_well();
}

#[test]
fn a_body_in_chunks_is_read_and_bounded() {
    let server = Serving::with_limits(tight());
    let head = format!(
        "{} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
        server.head("POST", "symbolicate/v5")
    );
    let mut client = server.connect();
    client.send(format!("{head}4\r\n{{\"jo\r\n7\r\nbs\":[]}}\r\n0\r\n\r\n").as_bytes());
    assert_eq!(client.reply(false).text(), r#"{"results":[]}"#);
    let mut client = server.connect();
    client.send(format!("{head}{}0\r\n\r\n", format!("100\r\n{}\r\n", "[".repeat(256)).repeat(5)).as_bytes());
    assert_eq!(client.reply(false).status, 413);
}

#[test]
fn an_answer_that_would_be_too_long_is_refused() {
    let server = Serving::with_limits(Limits { answer_bytes: 10_000, ..Limits::default() });
    let frames = vec!["[0,4992]"; 1000].join(",");
    let body = format!(r#"{{"memoryMap":[["prog","{ID}"]],"stacks":[[{frames}]]}}"#);
    let reply = server.ask("POST", "symbolicate/v5", body);
    assert_eq!((reply.status, &*reply.error()), (200, "the answer is too long; ask for less at once"));
}

#[test]
fn json_of_any_depth_and_size_is_answered() {
    let server = Serving::new();
    let million = 1_000_000;
    for body in [
        "[".repeat(million),
        "{\"a\":".repeat(million),
        format!("{{\"x\":{}}}", "[".repeat(million)),
        format!("{{\"x\":{}{}}}", "[".repeat(million), "]".repeat(million)),
        format!("{{\"jobs\":[{}0]}}", "0,".repeat(million)),
        format!("{{\"memoryMap\":[],\"stacks\":[{}0]}}", "[],".repeat(million)),
        format!("\"{}\"", "a".repeat(million)),
        "9".repeat(million),
        format!("{{\"jobs\":[{}]}}", "\0".repeat(million)),
    ] {
        for path in ["symbolicate/v5", "source/v1", "asm/v1"] {
            let reply = server.ask("POST", path, &body);
            assert_eq!(reply.status, 400);
            assert!(reply.error().starts_with("bad request: "));
        }
    }
}

/// Every change of a valid request gets a response in JSON, all on one connection.
#[test]
fn changed_requests_are_answered_in_json() {
    let server = Serving::new();
    let requests = [
        ("symbolicate/v5", r#"{"jobs":[{"memoryMap":[["prog","ID"]],"stacks":[[[0,4992],[0,4726]]]}]}"#),
        ("source/v1", r#"{"debugName":"prog","debugId":"ID","moduleOffset":"0x510","file":"/src/foo.cc"}"#),
        ("asm/v1", r#"{"debugName":"prog","debugId":"ID","startAddress":"0x500","size":"0x11","x":[{}]}"#),
    ];
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut client = server.connect();
    for round in 0..1000 {
        let (path, right) = requests[round % requests.len()];
        let mut body = right.replace("ID", ID).into_bytes();
        for _ in 0..=random.below(3) {
            random.change(&mut body);
        }
        let reply = client.request(&server.head("POST", path), &body);
        assert!(matches!(reply.status, 200 | 400), "{reply:?}");
        let answer = serde_json::from_slice::<serde_json::Value>(&reply.body);
        assert!(answer.is_ok_and(|answer| answer.is_object()), "{}", String::from_utf8_lossy(&body));
    }
    server.assert_well();
}

/// xorshift64, so that a failure repeats.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    /// Removes, duplicates or overwrites a range, or truncates the end.
    fn change(&mut self, bytes: &mut Vec<u8>) {
        const PIECES: [&[u8]; 8] = [b"-1", b"null", b"\xff", b"[[[[", b"99999999999", b"\"", b"0x", b"}"];
        let at = self.below(bytes.len() + 1);
        let end = at + self.below(bytes.len() - at + 1).min(8);
        let stretch = bytes[at..end].to_vec();
        match self.below(4) {
            0 => drop(bytes.drain(at..end)),
            1 => drop(bytes.splice(at..at, stretch)),
            2 => drop(bytes.splice(at..end, PIECES[self.below(PIECES.len())].iter().copied())),
            _ => bytes.truncate(at),
        }
    }
}

#[test]
fn a_panic_in_a_lookup_costs_only_its_request() {
    let server = Serving::with_limits(Limits { lookups: 1, ..Limits::default() });
    for _ in 0..3 {
        let mut client = server.connect();
        let body = br#"{"memoryMap":[["panic",""]],"stacks":[[[0,1]]]}"#;
        let reply = client.request(&server.head("POST", "symbolicate/v5"), body);
        assert_eq!((reply.status, &*reply.error()), (500, "internal error"));
        assert_eq!(client.request(&server.head("POST", "symbolicate/v5"), br#"{"jobs":[]}"#).status, 200);
    }
}

#[test]
fn bytes_not_http_end_their_connection_only() {
    let server = Serving::new();
    let long_line = [b"GET /".to_vec(), vec![b'a'; 200_000], b" HTTP/1.1\r\n\r\n".to_vec()].concat();
    let many_headers = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(10_000));
    let garbage: [&[u8]; 9] = [
        b"\0\0\0\0\r\n\r\n",
        b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET\r\n\r\n",
        b"\r\n\r\n\r\n\r\n\xff\xff\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        &long_line,
        many_headers.as_bytes(),
    ];
    for bytes in garbage {
        let mut client = server.connect();
        client.send(bytes);
        client.finish_sending();
        client.wait_for_end();
    }
    server.assert_well();
}

#[test]
fn a_body_with_two_lengths_is_a_bad_request() {
    let server = Serving::new();
    let mut client = server.connect();
    let head = server.head("POST", "symbolicate/v5");
    let lengths = "Content-Length: 2\r\nContent-Length: 3";
    client.send(format!("{head} HTTP/1.1\r\nHost: localhost\r\n{lengths}\r\n\r\n{{}}").as_bytes());
    assert_eq!(client.reply(false).status, 400);
}

#[test]
fn silent_connections_are_closed_and_make_room() {
    let server = Serving::with_limits(tight());
    let silent: Vec<_> = (0..8).map(|_| server.connect()).collect();
    server.assert_well();
    for mut client in silent {
        client.wait_for_end();
    }
}

#[test]
fn a_head_that_never_ends_is_not_waited_for() {
    let server = Serving::with_limits(tight());
    let begin = || {
        let mut client = server.connect();
        client.send(b"GET / HTTP/1.1\r\nHost: loc");
        client
    };
    let half: Vec<_> = (0..8).map(|_| begin()).collect();
    server.assert_well();
    for mut client in half {
        client.wait_for_end();
    }
}

#[test]
fn an_idle_connection_is_closed() {
    let server = Serving::with_limits(tight());
    let mut client = server.connect();
    assert_eq!(client.request(&server.head("GET", "profile.json"), b"").status, 200);
    client.wait_for_end();
}

#[test]
fn a_body_that_never_ends_is_not_waited_for() {
    let server = Serving::with_limits(Limits { lookups: 1, ..tight() });
    let mut client = server.connect();
    let head = server.head("POST", "symbolicate/v5");
    client.send(format!("{head} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{{").as_bytes());
    let reply = client.reply(false);
    assert_eq!((reply.status, &*reply.error()), (408, "the request's body did not come in time"));
    assert_eq!(server.ask("POST", "symbolicate/v5", r#"{"jobs":[]}"#).status, 200);
}

/// A server reads a body, and sends `100 Continue`, when it is the request's turn.
#[test]
fn no_more_bodies_are_read_than_lookups_allowed() {
    let server = Serving::with_limits(Limits { lookups: 1, ..tight() });
    let mut first = server.connect();
    let head = server.head("POST", "symbolicate/v5");
    let headers = "Host: localhost\r\nContent-Length: 100\r\nExpect: 100-continue";
    first.send(format!("{head} HTTP/1.1\r\n{headers}\r\n\r\n").as_bytes());
    assert_eq!(first.reply(false).status, 100);
    assert_eq!(server.ask("POST", "symbolicate/v5", r#"{"jobs":[]}"#).status, 200);
    assert!(first.has_more(), "the second was answered ahead of the first");
    assert_eq!(first.reply(false).status, 408);
}

#[test]
fn a_body_that_breaks_off_is_given_up() {
    let server = Serving::with_limits(Limits { lookups: 1, ..Limits::default() });
    let mut client = server.connect();
    let head = server.head("POST", "symbolicate/v5");
    client.send(format!("{head} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{{").as_bytes());
    client.finish_sending();
    client.wait_for_end();
    assert_eq!(server.ask("POST", "symbolicate/v5", r#"{"jobs":[]}"#).status, 200);
}

/// The profile is longer than the system's buffers, so the server cannot finish sending it.
#[test]
fn a_client_that_does_not_read_is_given_up() {
    let profile = vec![b'{'; 64 << 20];
    let server = Serving::with(Limits { connections: 1, ..tight() }, profile, FakeSymbols::default());
    let mut stuck = server.connect();
    stuck.send(&request(&server.head("GET", "profile.json"), b""));
    assert_eq!(server.ask("HEAD", "profile.json", "").status, 200);
}

#[test]
fn fifty_clients_at_once_are_all_answered() {
    let server = Serving::new();
    thread::scope(|scope| {
        for index in 0..50 {
            let server = &server;
            scope.spawn(move || {
                let body = format!(r#"{{"memoryMap":[["prog{index}",""]],"stacks":[[[0,{index}]]]}}"#);
                let reply = server.ask("POST", "symbolicate/v5", body);
                assert!(reply.text().contains(&format!("\"found_modules\":{{\"prog{index}/\":false}}")));
                assert_eq!(server.ask("GET", "profile.json", "").body, PROFILE);
            });
        }
    });
}

#[test]
fn pipelined_requests_are_answered_in_turn() {
    let server = Serving::new();
    let mut client = server.connect();
    let first = request(&server.head("GET", "profile.json"), b"");
    let second = request(&server.head("POST", "symbolicate/v5"), br#"{"jobs":[]}"#);
    client.send(&[first, second].concat());
    client.finish_sending();
    assert_eq!(client.reply(false).body, PROFILE);
    assert_eq!(client.reply(false).text(), r#"{"results":[]}"#);
}
