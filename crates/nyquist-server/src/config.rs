//! What the caller decides: where to listen, and the bounds that no request can pass.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// Where to listen.
#[derive(Clone, Debug)]
pub struct Config {
    /// The address to bind to. Anything but a loopback address lets other machines ask, if they know the token.
    pub address: IpAddr,
    /// The port or ports to try.
    pub port: PortChoice,
    /// The address of the front end that shows the profile. Of all pages that a browser shows, only its own may read
    /// answers.
    pub front_end: String,
    /// The user id of the served user. Only this user's processes and root's may use the one-time link, and
    /// their connections have places that others' cannot take. `None`: all users' connections are alike, and
    /// there is no such link.
    pub user: Option<u32>,
    /// The bounds of what a request may cost.
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

/// Which port to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortChoice {
    /// This port or none; 0 leaves the choice to the system.
    Fixed(u16),
    /// The first port that is free.
    FirstFreeFrom {
        /// The first port to try.
        first: u16,
        /// How many ports to try, the first included.
        tries: u16,
    },
}

impl Default for PortChoice {
    /// 3000 and the 99 ports after it.
    fn default() -> Self {
        Self::FirstFreeFrom { first: 3000, tries: 100 }
    }
}

/// The bounds of what a request may cost. The defaults leave a viewer (about 10,000 addresses a request) two
/// orders of magnitude of room.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The longest request body, in bytes.
    pub body_bytes: usize,
    /// The longest profile that a viewer is given to show, in bytes.
    pub profile_bytes: usize,
    /// The longest answer to a symbolication request, in bytes.
    pub answer_bytes: usize,
    /// How long a connection may take to send a request's head; it is also how long an idle one is kept. Unauthenticated have
    /// the shorter [`Limits::unauthenticated_timeout`].
    pub header_timeout: Duration,
    /// How long a connection may be idle in the middle of a body, in either direction.
    pub stall_timeout: Duration,
    /// How many connections are served at the same time. More wait to be accepted.
    pub connections: u16,
    /// How many of them may be unauthenticated: those on which no request with the token has come so far. One more closes the
    /// oldest of them. The served user has this many, and all others together.
    pub unauthenticated: u16,
    /// How long a connection may be unauthenticated, from when it is accepted.
    pub unauthenticated_timeout: Duration,
    /// How many requests are read and worked on at the same time. More wait.
    pub lookups: u16,
    /// How long a shutdown waits for answers that are under way.
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
