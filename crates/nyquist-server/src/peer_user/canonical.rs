//! The form in which addresses of sockets are compared.

use std::net::SocketAddr;

/// A common form of both protocols' addresses, because an IPv4 connection may belong to an IPv6 socket.
pub(super) fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
