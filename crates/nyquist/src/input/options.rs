//! The options of the command line for reading a file, as the library takes them.

use crate::args::{RecordingArgs, SymbolArgs};
use crate::failure::Failure;
use crate::finder::finder;
use crate::folders::UserFolders;
use crate::memory;
use crate::printer::Printer;
use crate::watch::Watch;
use nyquist_convert::Progress;
use nyquist_input::{Finders, ReadObserver, ReadOptions, UnpackedInput};
use nyquist_symbols::Finder;
use std::path::PathBuf;
use std::sync::Arc;

/// Refuses an option that a file lacks the data for.
pub(super) fn check_options(input: &UnpackedInput, args: &RecordingArgs) -> Result<(), Failure> {
    let path = input.path().display();
    if !input.has_labels() && !args.label.is_empty() {
        return Err(Failure::new(format!(
            "--label is for files of pprof and OpenTelemetry, whose samples have labels; {path} is none of them"
        )));
    }
    let denied = if input.is_recording() {
        None
    } else if input.is_trace() {
        let denied = |option| format!("{option} cannot be used with {path}, which is a trace of Windows");
        args.not_for_traces().map(denied)
    } else {
        let has_value = input.has_values() && args.event.len() == 1;
        let denied = |option| format!("{option} is for recordings (perf.data); this is a saved profile");
        args.not_for_profiles(has_value).map(denied)
    };
    denied.map_or(Ok(()), |denied| Err(Failure::new(denied)))
}

/// What of a file is read.
pub(super) fn read_options<'a>(
    args: &RecordingArgs,
    finders: &'a CommandFinders<'_>,
    observer: &'a dyn ReadObserver,
) -> ReadOptions<'a> {
    let symbols = finders.symbols;
    ReadOptions {
        selection: args.selection(),
        events: args.event.clone(),
        labels: args.label.clone(),
        name: args.profile_name.clone(),
        architecture: args.override_arch,
        aux_folders: args.aux_file_dir.clone(),
        shape: args.rows.into(),
        no_symbols: args.no_symbols,
        has_new_places: !symbols.symbol_dir.is_empty(),
        side_files: memory::side_files(symbols.max_memory),
        process_memory: Some(memory::of_processes(symbols.max_memory)),
        archives: UserFolders::of_user().archives(),
        finders,
        observer,
    }
}

/// The options with more folders to search.
pub(super) fn with_folders(symbols: &SymbolArgs, folders: impl IntoIterator<Item = PathBuf>) -> SymbolArgs {
    let mut symbols = symbols.clone();
    symbols.symbol_dir.extend(folders);
    symbols
}

/// Makes finders as the options say, whose downloads are shown.
pub(super) struct CommandFinders<'a> {
    pub(super) symbols: &'a SymbolArgs,
    pub(super) printer: Printer,
}

impl Finders for CommandFinders<'_> {
    fn finder(&self, folders: &[PathBuf], work: Option<&Arc<Progress>>) -> Finder {
        let symbols = with_folders(self.symbols, folders.iter().cloned());
        finder(&symbols, Watch::new(self.printer, work.cloned()))
    }
}
