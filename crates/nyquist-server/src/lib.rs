//! The HTTP server that a profile viewer asks for profiles, symbols, source and assembly.
//!
//! [`Server::bind`] takes a port and makes a secret token. [`Server::open_url`] gives the address that opens
//! the profile in the Firefox Profiler. [`Server::one_time_url`] gives one that does so once and does not hold
//! the token. [`Server::run`] serves until a [`ShutdownHandle`] ends it. Nothing in here prints, opens a
//! browser or ends the process: that is the caller's.
//!
//! | path | method | answer |
//! |---|---|---|
//! | `/TOKEN/profile.json` | GET | the profile's bytes as they are stored |
//! | `/TOKEN/symbolicate/v5` | POST | names, files, lines and inlined frames of addresses |
//! | `/TOKEN/source/v1` | POST | the text of a source file that the profile's debug info names |
//! | `/TOKEN/asm/v1` | POST | the instructions of a function |
//! | `/TOKEN/`, `/TOKEN/assets/...` | GET | the built-in viewer, where one is served |
//! | `/TOKEN/api/v1/...` | GET | what the viewer asks |
//! | `/TOKEN/api/v1/open` | POST | another profile for the viewer to show |
//! | `/open/CODE` | GET | once, for the user who is to see it: where the profile is opened |
//!
//! What needs binaries comes from a [`SymbolSource`]; [`ProfileSymbols`] is the one over the files of a profile's
//! libs.
//!
//! Access: a request needs the token. Of pages in a browser, only those of the front end may read answers, by
//! the cross-origin headers. A request without the token gets a 404 and one under a foreign host name (DNS
//! rebinding) a 403, and neither says what this server is. Connections on which no token has come are few and
//! short (`unauthenticated`). Every error is `{"error": "..."}`, except for bytes that are not HTTP, which the
//! protocol layer answers with a bare status.

#![forbid(unsafe_code)]

mod body;
mod config;
mod cors;
mod endpoints;
mod error;
mod hosts;
mod links;
mod made_code;
mod one_time;
mod peer_user;
mod profile_symbols;
mod reply;
mod router;
mod server;
mod stall;
mod symbol_source;
mod token;
mod unauthenticated;
mod viewer;

pub use config::{Config, Limits, PortChoice};
pub use error::ServerError;
pub use made_code::{MadeCode, MadeLib};
pub use profile_symbols::ProfileSymbols;
pub use server::{Page, Server, ShutdownHandle};
pub use symbol_source::{
    AddressInfo, Assembly, AssemblyRequest, InlineFrame, Instruction, LibKey, LookupError, SourceRequest,
    SymbolSource,
};
pub use viewer::{Answer, Asset, Client, Refusal, Viewer};
