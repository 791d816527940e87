//! The socket at which a recording takes requests. Nothing here waits for a client.

use super::folder::SocketFolder;
use super::message::{self, CtlAnswer};
use crate::args::CtlAction;
use crate::failure::io_reason;
use crate::identity;
use rustix::net::sockopt::socket_peercred;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

/// How long a client may take for its line.
const MAX_CLIENT_TIME: Duration = Duration::from_secs(2);

/// The most clients whose lines are waited for: the newest ones. Who has sent a line is answered before.
const MAX_CLIENTS: usize = 8;

/// The most new clients at a time. Others wait for their turn in the kernel.
const MAX_ACCEPTED: usize = 256;

/// The longest line, in bytes.
const MAX_LINE: usize = 64;

/// The socket of a running recording. It is removed with it.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    folder: SocketFolder,
    listener: UnixListener,
    name: String,
    clients: Vec<Client>,
}

/// A client whose line is not complete.
#[derive(Debug)]
struct Client {
    stream: UnixStream,
    line: Vec<u8>,
    since: Instant,
}

/// A request, whose sender waits for the answer.
#[derive(Debug)]
pub(crate) struct CtlRequest {
    stream: UnixStream,
    action: CtlAction,
}

impl CtlRequest {
    /// What to do.
    pub(crate) fn action(&self) -> CtlAction {
        self.action
    }

    /// Answers it. A client that is gone gets no answer.
    pub(crate) fn answer(mut self, answer: &CtlAnswer) {
        let line = serde_json::to_string(answer).unwrap_or_default() + "\n";
        let _ = self.stream.write_all(line.as_bytes());
    }
}

impl ControlSocket {
    /// Listens for requests about a recording of these processes. Returns the reason if that is not possible.
    pub(crate) fn open(recorded: &[u32]) -> Result<Self, String> {
        let opened = identity::as_invoking_user(|| {
            let folder = SocketFolder::make()?;
            let (listener, name) = folder.listen(recorded)?;
            io::Result::Ok(Self { folder, listener, name, clients: Vec::new() })
        });
        let opened = opened.map_err(|error| error.to_string())?;
        opened.map_err(|error| {
            format!("there is no folder for its socket ({}): set XDG_RUNTIME_DIR", io_reason(&error))
        })
    }

    /// The requests that have come. Does not wait.
    pub(crate) fn take(&mut self) -> Vec<CtlRequest> {
        for _ in 0..MAX_ACCEPTED {
            let Ok((stream, _)) = self.listener.accept() else { break };
            if is_allowed(&stream) && stream.set_nonblocking(true).is_ok() {
                self.clients.push(Client { stream, line: Vec::new(), since: Instant::now() });
            }
        }
        let mut requests = Vec::new();
        for client in std::mem::take(&mut self.clients) {
            match client.read() {
                Progress::Waits(client) => self.clients.push(client),
                Progress::Asks(request) => requests.push(request),
                Progress::Ended => {}
            }
        }
        // Clients that say nothing keep nobody waiting.
        self.clients.drain(..self.clients.len().saturating_sub(MAX_CLIENTS));
        requests
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let _ = identity::as_invoking_user(|| self.folder.remove(&self.name));
    }
}

/// How far a client has come.
enum Progress {
    Waits(Client),
    Asks(CtlRequest),
    Ended,
}

impl Client {
    fn read(mut self) -> Progress {
        let mut bytes = [0; MAX_LINE];
        match self.stream.read(&mut bytes) {
            Ok(0) => return Progress::Ended,
            Ok(length) => self.line.extend_from_slice(&bytes[..length]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return Progress::Ended,
        }
        let Some(end) = self.line.iter().position(|byte| *byte == b'\n') else {
            let goes_on = self.line.len() < MAX_LINE && self.since.elapsed() < MAX_CLIENT_TIME;
            return if goes_on { Progress::Waits(self) } else { Progress::Ended };
        };
        match std::str::from_utf8(&self.line[..end]).ok().and_then(message::action) {
            Some(action) => Progress::Asks(CtlRequest { stream: self.stream, action }),
            None => Progress::Ended,
        }
    }
}

/// Whether a client is of the served user or root.
fn is_allowed(stream: &UnixStream) -> bool {
    let Ok(peer) = socket_peercred(stream) else { return false };
    let own = identity::invoking_user().map_or_else(|| rustix::process::getuid().as_raw(), |user| user.uid);
    [0, own].contains(&peer.uid.as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::DirBuilderExt as _;

    #[test]
    fn silent_clients_keep_no_other_waiting() {
        let path = std::env::temp_dir().join(format!("nyquist-ctl-silent-{}", std::process::id()));
        // One of an earlier process.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::DirBuilder::new().mode(0o700).create(&path).unwrap();
        let folder = SocketFolder::open(&path, rustix::process::getuid().as_raw()).unwrap();
        let (listener, name) = folder.listen(&[]).unwrap();
        let mut socket = ControlSocket { folder, listener, name: name.clone(), clients: Vec::new() };
        let connect = || UnixStream::connect(path.join(&name)).unwrap();
        let silent: Vec<_> = (0..2 * MAX_CLIENTS).map(|_| connect()).collect();
        let mut asking = connect();
        asking.write_all(b"status\n").unwrap();
        let requests = socket.take();
        assert_eq!(requests.iter().map(CtlRequest::action).collect::<Vec<_>>(), [CtlAction::Status]);
        assert_eq!((socket.clients.len(), silent.len()), (MAX_CLIENTS, 2 * MAX_CLIENTS));
        drop(socket);
        std::fs::remove_dir(path).unwrap();
    }
}
