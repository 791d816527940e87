//! A server on the loopback interface that has a few files, or never answers.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::Result;

/// A running server. Its threads end with the process of the tests.
pub(crate) struct FileServer {
    /// Its address, `http://127.0.0.1:PORT`.
    pub url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl FileServer {
    /// A server with these files, by their paths. It answers 404 for any other path.
    pub(crate) fn of(files: HashMap<String, Vec<u8>>) -> Result<Self> {
        Self::start(move |path, stream| {
            let (status, bytes) = files.get(path).map_or((404, &[][..]), |bytes| (200, bytes));
            let length = bytes.len();
            let head =
                format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
            // A client that closes early does not want the rest, so an error is ignored.
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(bytes));
        })
    }

    /// A server that accepts every request and answers none.
    pub(crate) fn silent() -> Result<Self> {
        Self::start(|_, stream| drop(BufReader::new(stream).read_line(&mut String::new())))
    }

    fn start(answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let server = Self { url: format!("http://{}", listener.local_addr()?), requests: Arc::default() };
        let (requests, answer) = (server.requests.clone(), Arc::new(answer));
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (requests, answer) = (requests.clone(), answer.clone());
                thread::spawn(move || {
                    if let Some(path) = read_path(&stream) {
                        requests.lock().unwrap_or_else(PoisonError::into_inner).push(path.clone());
                        answer(&path, &mut stream);
                    }
                });
            }
        });
        Ok(server)
    }

    /// The paths that were requested so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn read_path(stream: &TcpStream) -> Option<String> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut line = String::new();
    while reader.read_line(&mut line).ok()? > 2 {
        line.clear();
    }
    first.split(' ').nth(1).map(str::to_owned)
}
