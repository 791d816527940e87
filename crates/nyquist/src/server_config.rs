//! The address and the users of a server, from the options.

use crate::args::ServerArgs;
use crate::identity;
use crate::system::users;
use nyquist_server::{Config, PortChoice};

/// The address and the users of the server.
pub(crate) fn server_config(args: &ServerArgs) -> Config {
    let port = args.port.map_or_else(PortChoice::default, PortChoice::Fixed);
    let front_end = args.profiler_url.clone();
    let user = identity::user_at_the_browser().map_or_else(users::own_uid, |user| Some(user.uid));
    Config { address: args.address, port, front_end, user, ..Config::default() }
}
