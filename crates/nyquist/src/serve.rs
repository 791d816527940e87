//! Serving a profile and its symbols until it is ended.

use crate::args::{ServerArgs, SymbolArgs};
use crate::browser;
use crate::control::{Control, Phase};
use crate::failure::{Failure, io_reason};
use crate::finder::finder;
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
    printer: Printer,
    control: &Control,
) -> Result<(), Failure> {
    serve_bytes(read_back(path)?, profile, args, symbols, printer, control)
}

/// The bytes of a profile that was saved.
pub(crate) fn read_back(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path)
        .map_err(|error| Failure::new(format!("cannot read {}: {}", path.display(), io_reason(&error))))
}

/// Serves a profile that is no file: these are its bytes as one.
pub(crate) fn serve_bytes(
    bytes: Vec<u8>,
    profile: &Profile,
    args: &ServerArgs,
    symbols: &SymbolArgs,
    printer: Printer,
    control: &Control,
) -> Result<(), Failure> {
    let port = args.port.map_or_else(PortChoice::default, PortChoice::Fixed);
    let config = Config { address: args.address, port, ..Config::default() };
    let symbols = Arc::new(ProfileSymbols::new(profile, finder(symbols, Watch::new(printer, None))));
    let server = Server::bind(config, bytes, symbols).map_err(|error| {
        Failure::because("cannot serve the profile", &error).hint("choose another port with -P PORT")
    })?;
    control.enter(Phase::Serving(server.shutdown_handle()));
    let url = server.open_url(&args.profiler_url);
    browser::show(printer, &url, server.local_addr().port(), !args.no_open);
    printer.say("Serving the profile and its symbols; Ctrl-C ends");
    server.run().map_err(|error| Failure::because("the server failed", &error))
}
