//! A server on loopback with configurable responses, including wrong ones.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// The response to requests for a path.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// The file.
    File(Vec<u8>),
    /// This status, without a file.
    Status(u16),
    /// The start of a file with a false length; then the connection ends.
    Cut(Vec<u8>, u64),
    /// No response.
    Silence,
    /// The header, then nothing.
    SilentBody,
    /// Bytes without an end, and without a length.
    Endless,
    /// A redirect to this path.
    Redirect(String),
    /// Bytes that are not HTTP.
    Garbage,
    /// The connection is closed immediately the first time. After that, the file.
    SecondTime(Vec<u8>),
}

/// A server. Its threads end with the test's process.
pub(crate) struct Server {
    pub(crate) url: String,
    answers: Arc<Mutex<HashMap<String, Answer>>>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = Self { url, answers: Arc::default(), requests: Arc::default() };
        let (answers, requests) = (server.answers.clone(), server.requests.clone());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answers, requests) = (answers.clone(), requests.clone());
                // A client that has stopped waiting causes an error, which is ignored.
                thread::spawn(move || drop(serve(stream, &answers, &requests)));
            }
        });
        server
    }

    /// A server with this one response.
    pub(crate) fn with(path: &str, answer: Answer) -> Self {
        let server = Self::new();
        server.answer(path, answer);
        server
    }

    pub(crate) fn answer(&self, path: &str, answer: Answer) {
        self.answers.lock().unwrap().insert(path.to_owned(), answer);
    }

    /// The requested paths so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(
    mut stream: TcpStream,
    answers: &Mutex<HashMap<String, Answer>>,
    requests: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    let earlier = {
        let mut requests = requests.lock().unwrap();
        requests.push(path.clone());
        requests.iter().filter(|known| **known == path).count() - 1
    };
    let answer = answers.lock().unwrap().get(&path).cloned().unwrap_or(Answer::Status(404));
    let head = |stream: &mut TcpStream, status: u16, more: &str| {
        write!(stream, "HTTP/1.1 {status} X\r\nConnection: close\r\n{more}\r\n")
    };
    match answer {
        Answer::SecondTime(_) if earlier == 0 => Ok(()),
        Answer::File(bytes) | Answer::SecondTime(bytes) => {
            head(&mut stream, 200, &format!("Content-Length: {}\r\n", bytes.len()))?;
            stream.write_all(&bytes)
        }
        Answer::Status(status) => head(&mut stream, status, "Content-Length: 0\r\n"),
        Answer::Cut(bytes, claimed) => {
            head(&mut stream, 200, &format!("Content-Length: {claimed}\r\n"))?;
            stream.write_all(&bytes)
        }
        Answer::Silence => wait_for_the_end(reader),
        Answer::SilentBody => {
            head(&mut stream, 200, "Content-Length: 1000\r\n")?;
            wait_for_the_end(reader)
        }
        Answer::Endless => {
            head(&mut stream, 200, "")?;
            loop {
                stream.write_all(&[b'x'; 1 << 14])?;
            }
        }
        Answer::Redirect(to) => head(&mut stream, 302, &format!("Location: {to}\r\nContent-Length: 0\r\n")),
        Answer::Garbage => stream.write_all(b"220 mail.example ESMTP\r\n\r\n"),
    }
}

/// Waits until the client has disconnected.
fn wait_for_the_end(mut reader: BufReader<TcpStream>) -> std::io::Result<()> {
    reader.read_line(&mut String::new()).map(drop)
}
