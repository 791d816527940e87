//! The caller's choices: the address to listen on, and limits for all requests.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// The configuration of a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// The address to bind to. Any address except a loopback one lets other machines send requests, if
    /// they know the token.
    pub address: IpAddr,
    /// The port or ports to try.
    pub port: PortChoice,
    /// The address of the front end that shows the profile. Among all pages in a browser, only its own may
    /// read responses.
    pub front_end: String,
    /// The user id of the served user. Only processes of this user and of root may use the one-time link.
    /// Other users' connections cannot take the slots of their connections. `None`: the connections of all
    /// users are equal, and there is no such link.
    pub user: Option<u32>,
    /// The limits on the cost of a request.
    pub limits: Limits,
}

impl Default for Config {
    /// 127.0.0.1, the first free port from 3000, for profiler.firefox.com.
    fn default() -> Self {
        Self {
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: PortChoice::default(),
            front_end: "https://profiler.firefox.com".to_owned(),
            user: None,
            limits: Limits::default(),
        }
    }
}

/// The port to listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortChoice {
    /// This port only; with 0 the system chooses.
    Fixed(u16),
    /// The first free port.
    FirstFreeFrom {
        /// The first port to try.
        first: u16,
        /// The number of ports to try, including the first.
        tries: u16,
    },
}

impl Default for PortChoice {
    /// 3000 and the 99 ports after it.
    fn default() -> Self {
        Self::FirstFreeFrom { first: 3000, tries: 100 }
    }
}

/// The limits on the cost of a request. The defaults are two orders of magnitude above the needs of a viewer
/// (about 10,000 addresses per request).
#[derive(Clone, Debug)]
pub struct Limits {
    /// The longest request body, in bytes.
    pub body_bytes: usize,
    /// The maximum size of a profile that a client opens in a viewer, in bytes.
    pub profile_bytes: usize,
    /// The maximum response to a symbolication request, in bytes.
    pub answer_bytes: usize,
    /// How long a connection may take to send the header of a request, and how long an idle one is kept.
    /// Unauthenticated connections have the shorter [`Limits::unauthenticated_timeout`].
    pub header_timeout: Duration,
    /// How long a connection may be idle in the middle of a body, in either direction.
    pub stall_timeout: Duration,
    /// The number of connections that are served concurrently. Further ones wait to be accepted.
    pub connections: u16,
    /// The maximum number of unauthenticated connections: those without a request with the token so far.
    /// One more closes the oldest of them. The limit applies to the served user, and to all other users
    /// together.
    pub unauthenticated: u16,
    /// How long a connection may be unauthenticated, after it is accepted.
    pub unauthenticated_timeout: Duration,
    /// The number of requests that are read and processed concurrently. Further ones wait.
    pub lookups: u16,
    /// How long a shutdown waits for responses in progress.
    pub shutdown_grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 16 << 20,
            profile_bytes: 512 << 20,
            answer_bytes: 256 << 20,
            header_timeout: Duration::from_secs(30),
            stall_timeout: Duration::from_mins(1),
            connections: 256,
            unauthenticated: 64,
            unauthenticated_timeout: Duration::from_secs(5),
            lookups: 4,
            shutdown_grace: Duration::from_secs(1),
        }
    }
}
