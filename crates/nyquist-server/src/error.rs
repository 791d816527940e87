//! Errors before and around serving, but not those of single requests.

use std::io;
use std::net::{IpAddr, SocketAddr};

/// The reason why a server could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// Listening on the only requested address failed.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address and port.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// Every port of the range is in use.
    #[error("no free port on {address} from {first} to {last}")]
    NoFreePort {
        /// The address.
        address: IpAddr,
        /// The first port that was tried.
        first: u16,
        /// The last port that was tried.
        last: u16,
    },
    /// The system provided no random bytes for the token. Nothing is served without a secret.
    #[error("the system gives no random bytes for the server's token")]
    NoRandomness(#[source] getrandom::Error),
    /// The event loop could not be set up.
    #[error("cannot start the server's event loop")]
    EventLoop(#[source] io::Error),
}
