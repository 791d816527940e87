//! One thread that answers short requests of many clients. None of them keeps the others from their answers for long.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The longest head of a request.
const MAX_HEAD: usize = 4 << 10;

/// How long a client may take to send its request.
const PATIENCE: Duration = Duration::from_secs(2);

/// The clients whose request is not there yet. Beyond them, the one that has waited longest is let go: whoever has a
/// request sends it at once.
const MAX_CLIENTS: usize = 64;

/// The clients that are accepted before others get their answers. After so many at once there is a pause, so that a
/// flood of clients does not take the CPU time of what is recorded.
const MAX_ACCEPTED: usize = 32;
const PAUSE: Duration = Duration::from_millis(50);

/// A client whose request is not whole.
struct Client {
    stream: TcpStream,
    head: Vec<u8>,
    deadline: Instant,
}

/// What became of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waits,
    IsDone,
}

/// The clients of a port.
pub(super) struct BriefClients {
    listener: TcpListener,
    clients: Vec<Client>,
}

impl BriefClients {
    /// The clients that connect to this socket.
    pub(super) fn new(listener: TcpListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self { listener, clients: Vec::new() })
    }

    /// Answers forever. `answer` returns the whole answer to the head of a request.
    pub(super) fn serve(mut self, answer: impl Fn(&str) -> String) -> ! {
        loop {
            if self.turn(&answer).is_err() {
                // There are no descriptors, or no memory: it would fail again at once.
                thread::sleep(PAUSE);
            }
        }
    }

    /// Waits for clients, and answers those whose request is there.
    fn turn(&mut self, answer: &impl Fn(&str) -> String) -> io::Result<()> {
        let left =
            self.clients.first().map(|client| client.deadline.saturating_duration_since(Instant::now()));
        let left =
            left.map(|left| Timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos().into() });
        let mut polled = vec![PollFd::new(&self.listener, PollFlags::IN)];
        polled.extend(self.clients.iter().map(|client| PollFd::new(&client.stream, PollFlags::IN)));
        match poll(&mut polled, left.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let now = Instant::now();
        self.clients.retain_mut(|client| client.advance(answer) == State::Waits && client.deadline > now);
        self.accept(answer)
    }

    fn accept(&mut self, answer: &impl Fn(&str) -> String) -> io::Result<()> {
        for _ in 0..MAX_ACCEPTED {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // The client is gone.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(error),
            };
            stream.set_nonblocking(true)?;
            let mut client = Client { stream, head: Vec::new(), deadline: Instant::now() + PATIENCE };
            if client.advance(answer) == State::IsDone {
                continue;
            }
            if self.clients.len() == MAX_CLIENTS {
                self.clients.remove(0);
            }
            self.clients.push(client);
        }
        thread::sleep(PAUSE);
        Ok(())
    }
}

impl Client {
    /// Reads what is there of the request, and answers if that is all of it.
    fn advance(&mut self, answer: &impl Fn(&str) -> String) -> State {
        loop {
            let mut part = [0; 512];
            let count = match self.stream.read(&mut part) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return State::Waits,
                Err(_) => return State::IsDone,
            };
            self.head.extend_from_slice(&part[..count]);
            if self.head.windows(4).any(|four| four == b"\r\n\r\n") {
                let text = answer(&String::from_utf8_lossy(&self.head));
                // The empty buffer of a new connection takes all of it. A client that is gone needs no answer.
                let _ = self.stream.write_all(text.as_bytes());
                return State::IsDone;
            }
            if count == 0 || self.head.len() > MAX_HEAD {
                return State::IsDone;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, SocketAddr};

    fn serve() -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let clients = BriefClients::new(listener).unwrap();
        thread::spawn(move || {
            clients.serve(|head| format!("to {}", head.lines().next().unwrap_or_default()))
        });
        address
    }

    /// What a client gets until the end of the connection.
    fn answer_to(address: SocketAddr, parts: &[&str]) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        for part in parts {
            stream.write_all(part.as_bytes()).unwrap();
        }
        let mut answer = String::new();
        // A connection that is reset has no more of an answer.
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    #[test]
    fn silent_clients_keep_nobody_waiting() {
        let address = serve();
        let silent: Vec<_> = (0..2 * MAX_CLIENTS).map(|_| TcpStream::connect(address).unwrap()).collect();
        assert_eq!(answer_to(address, &["GET /", "metrics\r\nHost: a\r\n", "\r\n"]), "to GET /metrics");
        // The first of them were let go.
        let mut first = &silent[0];
        first.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        assert_eq!(first.read(&mut [0; 8]).unwrap(), 0);
    }

    #[test]
    fn a_request_has_an_end_and_a_size() {
        let address = serve();
        let started = Instant::now();
        // It never ends; the connection does.
        assert_eq!(answer_to(address, &["GET / HTTP/1.1\r\n"]), "");
        assert!(started.elapsed() >= PATIENCE);
        assert_eq!(answer_to(address, &[&"x".repeat(MAX_HEAD + 1024)]), "");
    }
}
