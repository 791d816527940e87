//! `nyquist load`: serves a profile of any format.

use crate::args::LoadArgs;
use crate::control::Control;
use crate::failure::Failure;
use crate::input;
use crate::printer::Printer;
use crate::serve::{ServedProfile, serve};
use crate::system::process_memory;
use crate::system::signals::Requests;
use nyquist_input::Document;
use nyquist_server::StoredProfile;
use std::path::{Path, PathBuf};

/// Runs the subcommand: serves the profile until Ctrl-C.
pub(crate) fn run(args: &LoadArgs) -> Result<(), Failure> {
    let printer = Printer::new(args.presentation.verbosity);
    // This process keeps the profile for long, and not what reading it took.
    process_memory::map_large_blocks();
    // Until the server starts, Ctrl-C ends this program immediately.
    let read =
        |file: &PathBuf| input::read_as_saved(file, &args.recording, &args.presentation.symbols, printer);
    let first = read(&args.file)?;
    let (path, (profile, file), before) = match &args.after {
        Some(after) => (after, read(after)?, Some(first.0)),
        None => (&args.file, first, None),
    };
    let requests =
        Requests::take_over().map_err(|error| Failure::because("cannot take over signals", &error))?;
    let control = Control::start(requests);
    let document = stored(nyquist_input::document(file, &profile)?)?;
    let symbols = input::with_its_folders(path, &args.presentation.symbols);
    let provided = input::samply_symbols(path, &symbols, printer);
    let name = |file: &Path| file.file_name().map(|name| name.to_string_lossy().into_owned());
    let files = [name(path), before.as_ref().and_then(|_| name(&args.file))];
    let served = ServedProfile { document, profile, before, provided, files };
    serve(served, &args.presentation.server, &symbols, printer, &control)
}

/// A document as it is served. A file is read when it is requested, because the Firefox Profiler may never be opened.
fn stored(document: Document) -> Result<StoredProfile, Failure> {
    match document {
        Document::Bytes(bytes) => Ok(bytes.into()),
        Document::File(file) => StoredProfile::in_file(file)
            .map_err(|error| Failure::because("cannot serve the profile's file", &error)),
    }
}
