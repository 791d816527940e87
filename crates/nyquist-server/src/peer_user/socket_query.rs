//! Queries the kernel for the owner of one socket, by a `sock_diag` netlink socket (sock_diag(7)). The
//! cost does not depend on the number of sockets.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use super::canonical::canonical;

/// `struct nlmsghdr`.
const HEADER: usize = 16;
/// The header and `struct inet_diag_req_v2`.
const REQUEST: usize = HEADER + 8 + SOCKET_ID;
/// `struct inet_diag_sockid`: both ports, both addresses, an interface and a cookie.
const SOCKET_ID: usize = 48;
/// The header and `struct inet_diag_msg`; attributes may follow.
const ANSWER: usize = HEADER + 4 + SOCKET_ID + 20;
/// The offset of the owner in a response: after the socket's id, a timer and the lengths of two queues.
const OWNER: usize = HEADER + 4 + SOCKET_ID + 12;

/// `SOCK_DIAG_BY_FAMILY`: the type of the request, and of a successful response.
const BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST`.
const FLAG_REQUEST: u16 = 1;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;
/// `TCP_ESTABLISHED`. A socket in another state may have been closed by its process, and belongs to root
/// then.
const ESTABLISHED: u8 = 1;

/// A netlink socket for queries. It can be used any number of times.
pub(crate) struct SocketQuery(OwnedFd);

impl SocketQuery {
    /// Connects to the kernel, so that no other process can respond.
    pub(crate) fn open() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket =
            rustix::net::socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(SOCK_DIAG))?;
        rustix::net::connect(&socket, &SocketAddrNetlink::new(0, 0))?;
        Ok(Self(socket))
    }

    /// The owner of the socket that is at `peer` and connected to `local`; `None` if there is none, or the
    /// kernel does not support the query.
    pub(crate) fn owner(&self, peer: SocketAddr, local: SocketAddr) -> io::Result<Option<u32>> {
        let Some(request) = request(canonical(peer), canonical(local)) else { return Ok(None) };
        rustix::net::send(&self.0, &request, SendFlags::empty())?;
        // The kernel has responded by the time that the request is sent.
        let mut answer = [0; 1024];
        let (length, _) = rustix::net::recv(&self.0, &mut answer, RecvFlags::empty())?;
        Ok(answer.get(..length).and_then(|answer| established_owner(answer, &request)))
    }
}

/// A request for the socket with these addresses, its own first. Both must have the same protocol.
fn request(own: SocketAddr, remote: SocketAddr) -> Option<[u8; REQUEST]> {
    let family = match (own.ip(), remote.ip()) {
        (IpAddr::V4(_), IpAddr::V4(_)) => AF_INET,
        (IpAddr::V6(_), IpAddr::V6(_)) => AF_INET6,
        _ => return None,
    };
    let mut bytes = Vec::with_capacity(REQUEST);
    bytes.extend(u32::try_from(REQUEST).ok()?.to_ne_bytes());
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend(FLAG_REQUEST.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([family, IPPROTO_TCP, 0, 0]);
    bytes.extend((1_u32 << ESTABLISHED).to_ne_bytes());
    bytes.extend(own.port().to_be_bytes());
    bytes.extend(remote.port().to_be_bytes());
    bytes.extend(address(own.ip()));
    bytes.extend(address(remote.ip()));
    bytes.extend([0; 4]);
    // No cookie.
    bytes.extend([0xff; 8]);
    bytes.try_into().ok()
}

/// An address in the 16 bytes used for both protocols.
fn address(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, c, d] = ip.octets();
            [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        }
        IpAddr::V6(ip) => ip.octets(),
    }
}

/// The owner in a response, if it is about the requested socket. The kernel returns a listener if no
/// connection has the addresses.
fn established_owner(answer: &[u8], request: &[u8; REQUEST]) -> Option<u32> {
    let kind = u16::from_ne_bytes(*answer.get(4..)?.first_chunk()?);
    if kind != BY_FAMILY || answer.len() < ANSWER || answer[HEADER + 1] != ESTABLISHED {
        return None;
    }
    // Both ports and addresses.
    let requested = &request[HEADER + 8..][..36];
    let answered = &answer[HEADER + 4..][..36];
    let owner = u32::from_ne_bytes(*answer.get(OWNER..)?.first_chunk()?);
    (requested == answered).then_some(owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requested() -> [u8; REQUEST] {
        request("127.0.0.1:49153".parse().unwrap(), "127.0.0.1:3000".parse().unwrap()).unwrap()
    }

    /// A response about the requested socket.
    fn answer(state: u8) -> Vec<u8> {
        let mut bytes = vec![0; ANSWER];
        bytes[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
        bytes[HEADER..HEADER + 2].copy_from_slice(&[AF_INET, state]);
        bytes[HEADER + 4..][..SOCKET_ID].copy_from_slice(&requested()[HEADER + 8..]);
        bytes[OWNER..][..4].copy_from_slice(&1000_u32.to_ne_bytes());
        bytes
    }

    #[test]
    fn an_established_socket_has_its_owner() {
        assert_eq!(established_owner(&answer(ESTABLISHED), &requested()), Some(1000));
        assert_eq!(established_owner(&answer(ESTABLISHED + 1), &requested()), None);
    }

    #[test]
    fn other_answers_tell_none() {
        let good = answer(ESTABLISHED);
        for length in 0..good.len() {
            assert_eq!(established_owner(&good[..length], &requested()), None, "{length}");
        }
        let mut error = good.clone();
        error[4] = 2;
        assert_eq!(established_owner(&error, &requested()), None);
        let mut other_port = good;
        other_port[HEADER + 5] ^= 1;
        assert_eq!(established_owner(&other_port, &requested()), None);
    }

    #[test]
    fn addresses_of_two_protocols_are_no_connection() {
        assert_eq!(request("[::1]:1".parse().unwrap(), "127.0.0.1:1".parse().unwrap()), None);
    }
}
