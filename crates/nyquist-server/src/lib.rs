//! The HTTP server from which a profile viewer gets profiles, symbols, source and assembly.
//!
//! [`Server::bind`] opens a port and makes a secret token. [`Server::open_url`] returns the address that
//! opens the profile in the Firefox Profiler. [`Server::one_time_url`] returns one that does so once and
//! does not contain the token. [`Server::run`] serves until a [`ShutdownHandle`] ends it. This crate does
//! not print, open a browser or end the process; the caller does.
//!
//! | path | method | response |
//! |---|---|---|
//! | `/TOKEN/profile.json` | GET | the profile's stored bytes |
//! | `/TOKEN/symbolicate/v5` | POST | names, files, lines and inlined frames of addresses |
//! | `/TOKEN/source/v1` | POST | the text of a source file in the profile's debug info |
//! | `/TOKEN/asm/v1` | POST | the instructions of a function |
//! | `/TOKEN/`, `/TOKEN/assets/...` | GET | the built-in viewer, if there is one |
//! | `/TOKEN/api/v1/...` | GET | the viewer's requests |
//! | `/TOKEN/api/v1/open` | POST | another profile for the viewer to show |
//! | `/open/CODE` | GET | once, for the served user: a redirect to the page with the profile |
//!
//! Data from binaries come from a [`SymbolSource`]; [`ProfileSymbols`] is the implementation for the files
//! of a profile's libs.
//!
//! Access: a request needs the token. Among pages in a browser, the cross-origin headers let only those of
//! the front end read responses. A request without the token gets a 404, and one with a foreign host name
//! (DNS rebinding) a 403. Neither reveals what this server is. Connections without the token are limited
//! in number and time (`unauthenticated`). Every error is `{"error": "..."}`, except for bytes that are
//! not HTTP, for which the protocol layer responds with only a status.

#![forbid(unsafe_code)]

mod body;
mod config;
mod cors;
mod endpoints;
mod error;
mod generated_code;
mod hosts;
mod links;
mod one_time;
mod peer_user;
mod profile_symbols;
mod reply;
mod router;
mod server;
mod stall;
mod stored_profile;
mod symbol_source;
mod token;
mod unauthenticated_connections;
mod viewer;

pub use config::{Config, Limits, PortChoice};
pub use error::ServerError;
pub use generated_code::{GeneratedCode, GeneratedLib};
pub use profile_symbols::ProfileSymbols;
pub use server::{Page, Server, ShutdownHandle};
pub use stored_profile::StoredProfile;
pub use symbol_source::{
    AddressInfo, Assembly, AssemblyInstruction, AssemblyRequest, InlineFrame, LibKey, LookupError,
    SourceRequest, SymbolSource,
};
pub use viewer::{Asset, Client, Viewer, ViewerError, ViewerResponse};

/// The example of the page that the registry shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
