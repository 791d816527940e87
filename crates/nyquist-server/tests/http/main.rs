//! The server over real HTTP on loopback, with a client of these tests.

mod access;
mod client;
mod endpoints;
mod hostile;
mod lifetime;
#[cfg(target_os = "linux")]
mod one_time;
mod serving;
mod unauthenticated;
