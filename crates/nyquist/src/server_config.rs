//! The address and the users of a server, from the options, and advice if it cannot be had.

use crate::args::ServerArgs;
use crate::failure::Failure;
use crate::identity;
use crate::system::users;
use nyquist_server::{Config, PortChoice, ServerError};
use std::error::Error as _;
use std::io;

/// The address and the users of the server.
pub(crate) fn server_config(args: &ServerArgs) -> Config {
    let port = args.port.map_or_else(PortChoice::default, PortChoice::Fixed);
    let front_end = args.profiler_url.clone();
    let user = identity::user_at_the_browser().map_or_else(users::own_uid, |user| Some(user.uid));
    Config { address: args.address, port, front_end, user, ..Config::default() }
}

/// The failure of a server that cannot be started.
pub(crate) fn cannot_serve(what: &str, error: &ServerError) -> Failure {
    let kind = error.source().and_then(|source| source.downcast_ref::<io::Error>()).map(io::Error::kind);
    let hint = match kind {
        Some(io::ErrorKind::AddrNotAvailable) => {
            "choose an address of this machine with --address, such as 127.0.0.1"
        }
        _ => "choose another port with -P PORT",
    };
    Failure::because(format!("cannot serve {what}"), error).hint(hint)
}
