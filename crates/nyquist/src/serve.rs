//! Serving a profile and its symbols until it is ended.

use crate::args::{ServerArgs, SymbolArgs};
use crate::browser;
use crate::control::{Control, Phase};
use crate::dropped;
use crate::failure::Failure;
use crate::finder::{finder, source_files};
use crate::identity;
use crate::live_page::GrowingSymbols;
use crate::made_code::SideFiles;
use crate::printer::Printer;
use crate::source_paths::name_specially;
use crate::watch::Watch;
use nyquist_profile::Profile;
use nyquist_server::{Config, PortChoice, ProfileSymbols, Server, SymbolSource};
use nyquist_symbols::StatedAnswers;
use nyquist_viewer::BuiltinViewer;
use std::sync::Arc;

/// What is served.
pub(crate) struct Served {
    /// The profile as a file.
    pub(crate) bytes: Vec<u8>,
    /// The profile.
    pub(crate) profile: Profile,
    /// The run that it is compared with.
    pub(crate) before: Option<Profile>,
    /// The answers that came with it.
    pub(crate) stated: Option<StatedAnswers>,
}

impl Served {
    /// A profile that was made here, and its bytes as a file.
    pub(crate) fn new(bytes: Vec<u8>, profile: Profile, stated: Option<StatedAnswers>) -> Self {
        Self { bytes, profile, before: None, stated }
    }
}

/// Where it is served, and whom.
pub(crate) fn config(args: &ServerArgs) -> Config {
    let port = args.port.map_or_else(PortChoice::default, PortChoice::Fixed);
    let front_end = args.profiler_url.clone();
    let user =
        identity::user_at_the_browser().map_or_else(|| rustix::process::geteuid().as_raw(), |user| user.uid);
    Config { address: args.address, port, front_end, user: Some(user), ..Config::default() }
}

/// Serves a profile and the viewer of it until Ctrl-C.
pub(crate) fn serve(
    served: Served,
    args: &ServerArgs,
    symbols: &SymbolArgs,
    printer: Printer,
    control: &Control,
) -> Result<(), Failure> {
    let Served { bytes, profile, before, stated } = served;
    let finder = finder(symbols, Watch::new(printer, None)).with_stated_answers(stated);
    let symbols = ProfileSymbols::new(&profile, finder, source_files(symbols));
    let known = Arc::new(GrowingSymbols::new(symbols.with_made_code(SideFiles)));
    let symbols: Arc<dyn SymbolSource> = Arc::<GrowingSymbols>::clone(&known);
    let viewer = match before {
        Some(before) => BuiltinViewer::comparing(before, profile, Arc::clone(&symbols)),
        None => BuiltinViewer::new(profile, Arc::clone(&symbols)),
    };
    let viewer = viewer.opening(Box::new(move |bytes| {
        let mut profile = dropped::read(bytes)?;
        name_specially(&mut profile);
        known.take_libs(&profile);
        Ok(profile)
    }));
    let server = Server::bind(config(args), bytes, symbols).map_err(|error| {
        Failure::because("cannot serve the profile", &error).hint("choose another port with -P PORT")
    })?;
    let server = server.with_viewer(Arc::new(viewer));
    control.enter(Phase::Serving(server.shutdown_handle()));
    browser::show(printer, &server, args);
    printer.say("Serving the profile and its symbols; Ctrl-C ends");
    server.run().map_err(|error| Failure::because("the server failed", &error))
}
