//! The server over real HTTP on loopback, asked by a client of these tests' own.

mod access;
mod client;
mod endpoints;
mod hostile;
mod lifetime;
#[cfg(target_os = "linux")]
mod one_time;
mod serving;
mod unauthenticated;
