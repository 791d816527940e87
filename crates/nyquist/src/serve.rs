//! Serving a profile and its symbols until it is ended.

use crate::args::{ServerArgs, SymbolArgs};
use crate::browser;
use crate::control::{Control, Phase};
use crate::failure::{Failure, io_reason};
use crate::finder::finder;
use crate::memory;
use crate::output::Owner;
use crate::printer::Printer;
use crate::watch::Watch;
use nyquist_profile::Profile;
use nyquist_server::{Config, PortChoice, ProfileSymbols, Server};
use std::path::Path;
use std::sync::Arc;

/// Serves the saved profile until Ctrl-C.
pub(crate) fn serve(
    path: &Path,
    profile: &Profile,
    args: &ServerArgs,
    symbols: &SymbolArgs,
    user: Option<Owner>,
    printer: Printer,
    control: &Control,
) -> Result<(), Failure> {
    let bytes = std::fs::read(path)
        .map_err(|error| Failure::new(format!("cannot read {}: {}", path.display(), io_reason(&error))))?;
    serve_bytes(bytes, profile, args, symbols, user, printer, control)
}

/// Serves a profile that is no file: these are its bytes as one.
pub(crate) fn serve_bytes(
    bytes: Vec<u8>,
    profile: &Profile,
    args: &ServerArgs,
    symbols: &SymbolArgs,
    user: Option<Owner>,
    printer: Printer,
    control: &Control,
) -> Result<(), Failure> {
    // A browser is nothing that reads a profile for us.
    memory::lift();
    let port = args.port.map_or_else(PortChoice::default, PortChoice::Fixed);
    let config = Config { address: args.address, port, ..Config::default() };
    let symbols = Arc::new(ProfileSymbols::new(profile, finder(symbols, Watch::new(printer, None))));
    let server = Server::bind(config, bytes, symbols).map_err(|error| {
        Failure::because("cannot serve the profile", &error).hint("choose another port with -P PORT")
    })?;
    control.enter(Phase::Serving(server.shutdown_handle()));
    let url = server.open_url(&args.profiler_url);
    browser::show(printer, &url, server.local_addr().port(), !args.no_open, user);
    printer.say("Serving the profile and its symbols; Ctrl-C ends");
    server.run().map_err(|error| Failure::because("the server failed", &error))
}
