//! The kernel's tables of all TCP sockets of a network namespace, with their owners.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::canonical::canonical;

/// The tables of the sockets of both protocols.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// The state of an established connection (`TCP_ESTABLISHED`). A socket in another state may have been
/// closed by its process, and is listed as root's then.
const ESTABLISHED: &str = "01";

/// The owner of the socket that is at `peer` and connected to `local`, if it is listed. O(sockets on this
/// machine).
pub(super) fn owner(peer: SocketAddr, local: SocketAddr) -> io::Result<Option<u32>> {
    for table in TABLES {
        match File::open(table) {
            Ok(file) => {
                if let Some(user) = listed_owner(BufReader::new(file), peer, local)? {
                    return Ok(Some(user));
                }
            }
            // A kernel without IPv6 has one table.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

fn listed_owner(table: impl BufRead, peer: SocketAddr, local: SocketAddr) -> io::Result<Option<u32>> {
    for line in table.lines() {
        let line = line?;
        let fields: Vec<&str> = line.split_ascii_whitespace().take(8).collect();
        let &[_, own, remote, ESTABLISHED, _, _, _, user] = fields.as_slice() else { continue };
        if address(own) == Some(canonical(peer)) && address(remote) == Some(canonical(local)) {
            return Ok(user.parse().ok());
        }
    }
    Ok(None)
}

/// `0100007F:0BB8`: the address as native words in hexadecimal, and the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |index: usize| {
        let digits = address.get(index * 8..index * 8 + 8)?;
        u32::from_str_radix(digits, 16).ok().map(u32::to_ne_bytes)
    };
    let ip = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?];
            IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(words.as_flattened()).ok()?)).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_endian = "little")]
    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:0BB8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 0100007F:0BB8 0100007F:C001 01 00000000:00000000 00:00000000 00000000     7        0 2 1 0 20 4 30 10 -1
   2: 0100007F:C001 0100007F:0BB8 01 00000000:00000000 00:00000000 00000000  1000        0 3 1 0 20 4 30 10 -1
   3: 0100007F:C002 0100007F:0BB8 05 00000000:00000000 00:00000000 00000000     0        0 0 1 0 20 4 30 10 -1
   4: 0000000000000000FFFF00000100007F:C003 0000000000000000FFFF00000100007F:0BB8 01 0:0 00:0 0  1001 0 4
   5: 00000000000000000000000001000000:C004 00000000000000000000000001000000:0BB8 01 0:0 00:0 0  1002 0 4
   6: garbage 0100007F:0BB8 01 0 0 0 9
   7: 0100007F:C005 0100007F:0BB9 01 00000000:00000000 00:00000000 00000000  1003        0 3 1 0 20 4 30 10 -1
";

    #[test]
    #[cfg(target_endian = "little")]
    fn the_peers_socket_has_its_owner() {
        let check = |peer: &str, local: &str, expected| {
            let found =
                listed_owner(TABLE.as_bytes(), peer.parse().unwrap(), local.parse().unwrap()).unwrap();
            assert_eq!(found, expected, "{peer}");
        };
        check("127.0.0.1:49153", "127.0.0.1:3000", Some(1000));
        check("127.0.0.1:49155", "127.0.0.1:3000", Some(1001));
        check("[::ffff:127.0.0.1]:49155", "[::ffff:127.0.0.1]:3000", Some(1001));
        check("[::1]:49156", "[::1]:3000", Some(1002));
        // A socket that its process has closed, one connected to another server, and one that does not exist.
        check("127.0.0.1:49154", "127.0.0.1:3000", None);
        check("127.0.0.1:49157", "127.0.0.1:3000", None);
        check("127.0.0.1:49160", "127.0.0.1:3000", None);
    }
}
