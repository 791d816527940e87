//! A server on the loopback interface that takes what an agent posts, and answers as a test wants.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::Result;

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Posted {
    /// The path with its query.
    pub path: String,
    /// The header lines, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Posted {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }
}

/// What the server does with a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reply {
    /// This status, with further header lines.
    Status(u16, &'static str),
    /// It closes the connection without an answer.
    Close,
    /// It closes it in the middle of an answer.
    Half,
    /// It answers what is no HTTP.
    Garbage,
    /// It never answers.
    Never,
}

/// A running server. Its threads end with the process of the tests.
pub(crate) struct Receiver {
    /// Its address, `http://127.0.0.1:PORT`.
    pub url: String,
    posted: Arc<Mutex<Vec<Posted>>>,
}

impl Receiver {
    /// A server that answers a request by its number, from 0 on, and its path.
    pub(crate) fn start(reply: impl Fn(usize, &str) -> Reply + Send + Sync + 'static) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let receiver = Self { url: format!("http://{}", listener.local_addr()?), posted: Arc::default() };
        let (posted, reply) = (Arc::clone(&receiver.posted), Arc::new(reply));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (posted, reply) = (Arc::clone(&posted), Arc::clone(&reply));
                thread::spawn(move || serve(stream, &posted, &*reply));
            }
        });
        Ok(receiver)
    }

    /// The requests so far.
    pub(crate) fn posted(&self) -> Vec<Posted> {
        self.posted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Answers the requests of a connection.
fn serve(stream: TcpStream, posted: &Mutex<Vec<Posted>>, reply: &dyn Fn(usize, &str) -> Reply) {
    let Ok(mut out) = stream.try_clone() else { return };
    let mut reader = BufReader::new(stream);
    while let Some(request) = read(&mut reader) {
        let path = request.path.clone();
        let number = {
            let mut posted = posted.lock().unwrap_or_else(PoisonError::into_inner);
            posted.push(request);
            posted.len() - 1
        };
        let sent = match reply(number, &path) {
            Reply::Status(status, headers) => {
                write!(out, "HTTP/1.1 {status} X\r\nContent-Length: 0\r\n{headers}\r\n")
            }
            Reply::Close => return,
            Reply::Half => return drop(write!(out, "HTTP/1.1 200 X\r\nContent-Length: 99\r\n\r\nx")),
            Reply::Garbage => return drop(out.write_all(b"\xff\0\x1b[31m no protocol\n\n")),
            Reply::Never => return drop(reader.read_to_end(&mut Vec::new())),
        };
        if sent.is_err() {
            return;
        }
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Posted> {
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let path = first.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        match line.trim_end().split_once(':') {
            Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.trim().to_owned())),
            None => break,
        }
    }
    let mut posted = Posted { path, headers, body: Vec::new() };
    let length = posted.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    reader.take(length).read_to_end(&mut posted.body).ok()?;
    (posted.body.len() as u64 == length).then_some(posted)
}
