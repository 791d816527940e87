//! Errors before and around serving. Those of single requests are not among them.

use std::io;
use std::net::{IpAddr, SocketAddr};

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The one address that was asked for cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address and port.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// Every port of the range is taken.
    #[error("no free port on {address} from {first} to {last}")]
    NoFreePort {
        /// The address.
        address: IpAddr,
        /// The first port that was tried.
        first: u16,
        /// The last port that was tried.
        last: u16,
    },
    /// The system gave no random bytes for the token; without a secret nothing is served.
    #[error("the system gives no random bytes for the server's token")]
    NoRandomness(#[source] getrandom::Error),
    /// The event loop could not be set up.
    #[error("cannot start the server's event loop")]
    EventLoop(#[source] io::Error),
}
