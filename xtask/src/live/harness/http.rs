//! The tests' own HTTP client, which sends the bytes of a browser.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::Value;

/// An HTTP response.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The status code.
    pub status: u16,
    /// The header lines.
    pub headers: Vec<(String, String)>,
    /// The body, in which chunks are joined.
    pub body: Vec<u8>,
}

impl Answer {
    /// The value of a header. Names are compared without regard to case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body).with_context(|| format!("not JSON: {}", self.text()))
    }
}

/// A server's port, and the host name that requests carry.
pub(crate) struct Client {
    /// The port on 127.0.0.1.
    pub port: u16,
    /// The value of `Host`.
    pub host: String,
}

impl Client {
    pub(crate) fn new(port: u16) -> Self {
        Self { port, host: format!("127.0.0.1:{port}") }
    }

    /// A client of the same server that uses another host name.
    pub(crate) fn as_host(&self, host: &str) -> Self {
        Self { port: self.port, host: host.to_owned() }
    }

    pub(crate) fn get(&self, path: &str) -> Result<Answer> {
        self.request("GET", path, &[], "")
    }

    /// Posts as the Firefox Profiler does: without a JSON content type.
    pub(crate) fn post(&self, path: &str, body: &str) -> Result<Answer> {
        self.request("POST", path, &[("Content-Type", "text/plain;charset=UTF-8")], body)
    }

    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<Answer> {
        let mut text = self.head(method, path);
        // Writing to a string cannot fail.
        for (name, value) in headers {
            let _ = write!(text, "{name}: {value}\r\n");
        }
        if !body.is_empty() {
            let _ = write!(text, "Content-Length: {}\r\n", body.len());
        }
        self.raw(format!("{text}\r\n{body}").as_bytes())
    }

    fn head(&self, method: &str, path: &str) -> String {
        format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.host)
    }

    /// Sends these bytes unchanged.
    pub(crate) fn raw(&self, request: &[u8]) -> Result<Answer> {
        ask_on(self.connect()?, request)
    }

    /// A connection on which nothing was sent yet.
    pub(crate) fn connect(&self) -> Result<TcpStream> {
        TcpStream::connect(("127.0.0.1", self.port)).context("cannot connect to the server")
    }

    /// Sends a request on an existing connection.
    pub(crate) fn get_on(&self, connection: TcpStream, path: &str) -> Result<Answer> {
        ask_on(connection, format!("{}\r\n", self.head("GET", path)).as_bytes())
    }
}

fn ask_on(mut stream: TcpStream, request: &[u8]) -> Result<Answer> {
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    stream.write_all(request)?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).context("the server did not answer")?;
    parse(&bytes)
}

fn parse(bytes: &[u8]) -> Result<Answer> {
    let end = bytes
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .context("an answer without an end of headers")?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).context("no status line")?.parse()?;
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect();
    let mut answer = Answer { status, headers, body: bytes[end + 4..].to_vec() };
    if answer.header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
        answer.body = join_chunks(&answer.body)?;
    }
    Ok(answer)
}

fn join_chunks(mut bytes: &[u8]) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = bytes.windows(2).position(|two| two == b"\r\n").context("a chunk without a length")?;
        let length = usize::from_str_radix(std::str::from_utf8(&bytes[..end])?.trim(), 16)?;
        let rest = &bytes[end + 2..];
        if length == 0 {
            return Ok(body);
        }
        body.extend_from_slice(rest.get(..length).context("a chunk is cut off")?);
        bytes = rest.get(length + 2..).context("a chunk is cut off")?;
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn plain_and_chunked_answers_have_the_same_body() {
        let plain = parse(b"HTTP/1.1 404 Not Found\r\nX-A:  b\r\n\r\nhello").unwrap();
        assert_eq!((plain.status, plain.header("x-a"), plain.text().as_str()), (404, Some("b"), "hello"));
        let chunked =
            parse(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n")
                .unwrap();
        assert_eq!(chunked.text(), "hello");
    }
}
