//! A simple client that can send malformed requests.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A timeout that only a hanging server reaches, or one that uses other limits than configured.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection that stays open between requests.
pub(crate) struct Client {
    stream: TcpStream,
    /// Received data after the last reply.
    received: Vec<u8>,
}

/// A reply, read to the length that it declares.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("a reply in UTF-8")
    }

    /// The message of a reply that is an error.
    pub(crate) fn error(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        let body: serde_json::Value = serde_json::from_slice(&self.body).expect("an error in JSON");
        body["error"].as_str().unwrap_or_else(|| panic!("no error in {body}")).to_owned()
    }
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::of(TcpStream::connect(address).expect("a connection"))
    }

    /// A client of a connection.
    pub(crate) fn of(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self { stream, received: Vec::new() }
    }

    /// Sends bytes, and returns whether the server accepted them. A disconnection is also noticed when the
    /// reply is read.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// Sends a request with an allowed `Host`; `head` is the method and path, and optionally more headers.
    pub(crate) fn request(&mut self, head: &str, body: &[u8]) -> Reply {
        self.send(&request(head, body));
        self.reply(head.starts_with("HEAD "))
    }

    /// Reads one reply.
    pub(crate) fn reply(&mut self, head_only: bool) -> Reply {
        let end_of_head = loop {
            match self.received.windows(4).position(|four| four == b"\r\n\r\n") {
                Some(at) => break at,
                None => self.receive().expect("the head of a reply"),
            }
        };
        let head: Vec<u8> = self.received.drain(..end_of_head + 4).collect();
        let mut reply = parse_head(std::str::from_utf8(&head).expect("a head in UTF-8"));
        let length = reply.header("content-length").map_or(0, |length| length.parse().unwrap());
        let length: usize = if head_only { 0 } else { length };
        while self.received.len() < length {
            self.receive().expect("the body of a reply");
        }
        reply.body = self.received.drain(..length).collect();
        reply
    }

    /// Reads until the server disconnects in any way.
    pub(crate) fn wait_for_end(&mut self) {
        loop {
            match self.receive() {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    panic!("the server does not hang up")
                }
                Err(_) => return,
            }
        }
    }

    /// Closes the sending side, if the server has not disconnected already.
    pub(crate) fn finish_sending(&self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
    }

    /// Whether unread data has arrived.
    pub(crate) fn has_more(&self) -> bool {
        self.stream.set_nonblocking(true).unwrap();
        let more = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false).unwrap();
        more.is_ok_and(|length| length > 0)
    }

    fn receive(&mut self) -> io::Result<()> {
        let mut buffer = [0; 16 << 10];
        match self.stream.read(&mut buffer)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            length => {
                self.received.extend_from_slice(&buffer[..length]);
                Ok(())
            }
        }
    }
}

/// The bytes of a request.
pub(crate) fn request(head: &str, body: &[u8]) -> Vec<u8> {
    let (line, headers) = head.split_once('\n').unwrap_or((head, ""));
    let mut text = format!("{line} HTTP/1.1\r\nHost: localhost:1\r\nContent-Length: {}\r\n", body.len());
    for header in headers.lines() {
        text.push_str(header.trim());
        text.push_str("\r\n");
    }
    text.push_str("\r\n");
    [text.as_bytes(), body].concat()
}

fn parse_head(head: &str) -> Reply {
    let (line, headers) = head.split_once("\r\n").expect("a status line");
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let headers = headers.lines().filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
    Reply { status, headers, body: Vec::new() }
}
