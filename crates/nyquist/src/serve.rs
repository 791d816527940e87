//! Serves a profile and its symbols until it is stopped.

use crate::args::{ServerArgs, SymbolArgs};
use crate::browser;
use crate::control::{Control, Phase};
use crate::dropped;
use crate::failure::Failure;
use crate::finder::{finder, source_files};
use crate::generated_code::SideFiles;
use crate::live_page::GrowingSymbols;
use crate::memory;
use crate::printer::Printer;
use crate::server_config::{cannot_serve, server_config};
use crate::source_paths::name_specially;
use crate::watch::Watch;
use nyquist_profile::Profile;
use nyquist_server::{Page, ProfileSymbols, Server, StoredProfile, SymbolSource};
use nyquist_symbols::ProvidedAnswers;
use nyquist_viewer::BuiltinViewer;
use std::sync::Arc;

/// The profile and the symbols that are served.
pub(crate) struct ServedProfile {
    /// The profile as a document of the Firefox Profiler.
    pub(crate) document: StoredProfile,
    /// The profile.
    pub(crate) profile: Profile,
    /// The run to compare it with.
    pub(crate) before: Option<Profile>,
    /// The symbols that came with it.
    pub(crate) provided: Option<ProvidedAnswers>,
    /// The names of its file, and of that of the other run.
    pub(crate) files: [Option<String>; 2],
}

impl ServedProfile {
    /// A profile of this program, and its bytes as a file.
    pub(crate) fn new(bytes: Vec<u8>, profile: Profile, provided: Option<ProvidedAnswers>) -> Self {
        Self { document: bytes.into(), profile, before: None, provided, files: [None, None] }
    }
}

/// Serves a profile and its viewer until Ctrl-C.
pub(crate) fn serve(
    served: ServedProfile,
    args: &ServerArgs,
    symbols: &SymbolArgs,
    printer: Printer,
    control: &Control,
) -> Result<(), Failure> {
    let ServedProfile { document, profile, before, provided, files: [file, file_before] } = served;
    let limit = memory::limit(symbols.max_memory);
    let finder = finder(symbols, Watch::new(printer, None)).with_provided_answers(provided);
    let symbols = ProfileSymbols::new(&profile, finder, source_files(symbols));
    let is_empty = profile.threads().iter().all(|thread| thread.samples.is_empty());
    let known = Arc::new(GrowingSymbols::new(symbols.with_generated_code(SideFiles)));
    let symbols: Arc<dyn SymbolSource> = Arc::<GrowingSymbols>::clone(&known);
    let viewer = match before {
        Some(before) => BuiltinViewer::comparing(before, profile, Arc::clone(&symbols)),
        None => BuiltinViewer::new(profile, Arc::clone(&symbols)),
    };
    let viewer = viewer.named(file, file_before).opening(Box::new(move |bytes| {
        let mut profile = dropped::read(bytes, limit)?;
        name_specially(&mut profile);
        known.take_libs(&profile);
        Ok(profile)
    }));
    let server = Server::bind(server_config(args), Some(document), symbols)
        .map_err(|error| cannot_serve("the profile", &error))?;
    let viewer = Arc::new(viewer);
    let server = server.with_viewer(Arc::<BuiltinViewer>::clone(&viewer));
    control.enter(Phase::Serving(server.shutdown_handle()));
    if browser::show(printer, &server, args, is_empty) == Some(Page::Viewer) {
        viewer.begin();
    }
    printer.say("Serving the profile and its symbols; Ctrl-C ends");
    server.run().map_err(|error| Failure::because("the server failed", &error))
}
