//! The user whose process is at the other end of a connection from this machine.
//!
//! Any process may query the kernel for the owners of all TCP sockets of a network namespace. The peer's
//! socket is the one whose own address is the connection's peer. Some kernels support queries for one
//! socket. All of them can list all sockets.

mod canonical;
#[cfg(target_os = "linux")]
mod socket_query;
mod table;

use std::io;
use std::net::SocketAddr;

#[cfg(target_os = "linux")]
use socket_query::SocketQuery;
use tokio::net::TcpStream;

use crate::unauthenticated_connections::Owner;

/// Distinguishes the served user's connections from others when they are accepted.
pub(crate) struct Owners {
    user: Option<u32>,
    #[cfg(target_os = "linux")]
    query: Option<SocketQuery>,
}

impl Owners {
    /// `user` is the id of the served user.
    pub(crate) fn new(user: Option<u32>) -> Self {
        Self {
            user,
            #[cfg(target_os = "linux")]
            query: user.and_then(|_| SocketQuery::open().ok()),
        }
    }

    /// The owner of the process at the other end. O(1): if the kernel cannot query a single socket, it is
    /// another user.
    pub(crate) fn of(&self, stream: &TcpStream) -> Owner {
        match self.user_of(stream) {
            Some(user) if user == 0 || Some(user) == self.user => Owner::Served,
            _ => Owner::Other,
        }
    }

    #[cfg(target_os = "linux")]
    fn user_of(&self, stream: &TcpStream) -> Option<u32> {
        let query = self.query.as_ref()?;
        query.owner(stream.peer_addr().ok()?, stream.local_addr().ok()?).ok()?
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "Linux is queried through it")]
    fn user_of(&self, _stream: &TcpStream) -> Option<u32> {
        None
    }
}

/// The owner of the socket that is at `peer` and connected to `local`. `None` if there is none, because it
/// is not in this network namespace or no longer connected. O(sockets on this machine) if the kernel
/// cannot query a single socket.
pub(crate) fn of(peer: SocketAddr, local: SocketAddr) -> io::Result<Option<u32>> {
    #[cfg(target_os = "linux")]
    if let Some(user) = SocketQuery::open().and_then(|query| query.owner(peer, local)).ok().flatten() {
        return Ok(Some(user));
    }
    table::owner(peer, local)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    /// A connection of this process to itself: the client, the server's stream, and the server's address.
    fn connection(address: &str) -> (TcpStream, TcpStream, SocketAddr) {
        let listener = TcpListener::bind(address).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, peer) = listener.accept().unwrap();
        assert_eq!(peer, client.local_addr().unwrap());
        (client, server, peer)
    }

    #[test]
    fn both_ways_tell_this_process_user() {
        let user = fs::metadata("/proc/self").unwrap().uid();
        let (_client, server, peer) = connection("127.0.0.1:0");
        let local = server.local_addr().unwrap();
        assert_eq!(table::owner(peer, local).unwrap(), Some(user));
        assert_eq!(SocketQuery::open().unwrap().owner(peer, local).unwrap(), Some(user));
        assert_eq!(of(peer, local).unwrap(), Some(user));
    }

    #[test]
    fn a_socket_that_was_closed_has_no_owner() {
        let (client, server, peer) = connection("127.0.0.1:0");
        drop(client);
        let local = server.local_addr().unwrap();
        assert_eq!(SocketQuery::open().unwrap().owner(peer, local).unwrap(), None);
        assert_eq!(of(peer, local).unwrap(), None);
    }

    /// If no connection has a port, the kernel returns the port's listener.
    #[test]
    fn a_listener_at_the_address_is_not_the_peer() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let query = SocketQuery::open().unwrap();
        assert_eq!(query.owner(address, "127.0.0.1:1".parse().unwrap()).unwrap(), None);
    }

    #[test]
    fn one_query_asks_again_and_again() {
        let query = SocketQuery::open().unwrap();
        let user = fs::metadata("/proc/self").unwrap().uid();
        let (client, server, peer) = connection("[::1]:0");
        let local = server.local_addr().unwrap();
        for _ in 0..3 {
            assert_eq!(query.owner(peer, local).unwrap(), Some(user));
            assert_eq!(query.owner("127.0.0.1:1".parse().unwrap(), local).unwrap(), None);
        }
        drop(client);
    }
}
