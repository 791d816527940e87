//! Input of profiles: reads them, and looks up names that are missing.

use crate::args::{FilterArgs, RecordingArgs, SymbolArgs};
use crate::failure::Failure;
use crate::finder::finder;
use crate::memory;
use crate::module_request::module_request;
use crate::printer::Printer;
use crate::profile_file;
use crate::sidecar;
use crate::source_paths::{DiskPaths, name_specially};
use crate::symbolicate;
use crate::text::one_line;
use crate::watch::Watch;
use nyquist_convert::{LibSource, Progress, SymbolicatedProfile, unnamed_libs};
use nyquist_profile::Profile;
use nyquist_symbols::KernelError;
use std::path::{Path, PathBuf};

/// The number of libs without symbols that a warning names.
const LIBS_NAMED: usize = 3;

/// Reads a profile for a command that shows functions. Missing names are looked up in the files on this
/// machine that have the recorded identities. Source files get their paths on this disk.
pub(crate) fn read(
    path: &PathBuf,
    filter: &FilterArgs,
    args: &SymbolArgs,
    printer: Printer,
) -> Result<Profile, Failure> {
    let mut profile = read_as(path, &of_samples(filter), args, printer)?;
    DiskPaths::of_user().name(&mut profile);
    Ok(profile)
}

/// Reads several profiles, as [`read`] does. All files are opened before any is read.
pub(crate) fn read_all<'a>(
    paths: impl IntoIterator<Item = &'a PathBuf>,
    filter: &FilterArgs,
    args: &SymbolArgs,
    printer: Printer,
) -> Result<Vec<Profile>, Failure> {
    let (recording, disk_paths) = (of_samples(filter), DiskPaths::of_user());
    let read = |opened: profile_file::InputFile| {
        let path = opened.path.clone();
        let profile = profile_file::read_opened(opened, &recording, args, printer)?;
        let mut profile = named(&path, profile, &recording, args, printer);
        disk_paths.name(&mut profile);
        Ok(profile)
    };
    profile_file::open(paths)?.into_iter().map(read).collect()
}

/// The options for reading a file if an event, or samples with labels, are requested.
fn of_samples(filter: &FilterArgs) -> RecordingArgs {
    RecordingArgs {
        event: filter.event.iter().cloned().collect(),
        label: filter.label.clone(),
        ..RecordingArgs::default()
    }
}

/// Reads a profile with its names, and the wanted part of a recording. Source files are named as in the
/// Firefox Profiler.
pub(crate) fn read_as(
    path: &PathBuf,
    recording: &RecordingArgs,
    args: &SymbolArgs,
    printer: Printer,
) -> Result<Profile, Failure> {
    let profile = profile_file::read(path, recording, args, printer)?;
    let mut profile = named(path, profile, recording, args, printer);
    name_specially(&mut profile);
    Ok(profile)
}

/// Looks up the missing names of a profile.
fn named(
    path: &Path,
    profile: Profile,
    recording: &RecordingArgs,
    args: &SymbolArgs,
    printer: Printer,
) -> Profile {
    let _held = memory::hold(path, args.max_memory);
    // Names that were looked up at recording time are looked up again only if there are new places to search.
    if recording.no_symbols || profile.meta().symbolicated && args.symbol_dir.is_empty() {
        return profile;
    }
    let libs = unnamed_libs(&profile);
    if libs.is_empty() {
        return profile;
    }
    let sources: Vec<_> =
        libs.into_iter().map(|lib| (lib, LibSource::File(module_request(profile.lib(lib))))).collect();
    let was_symbolicated = profile.meta().symbolicated;
    let finder = finder(args, Watch::new(printer, None));
    let finder = finder.with_stated_answers(sidecar::symbols_of(path, args, printer));
    let symbolicated = symbolicate::look_up(
        profile,
        &sources,
        &finder,
        // The kernel of a saved profile may differ from the running one.
        |_| Err(KernelError::Empty),
        printer,
        &Progress::default(),
    );
    if !was_symbolicated {
        warn_of_missing(&symbolicated, printer);
    }
    symbolicated.profile
}

/// Warns about libs whose functions have no names.
fn warn_of_missing(symbolicated: &SymbolicatedProfile, printer: Printer) {
    let missing = symbolicated.libs.iter().filter(|report| report.symbols_from.is_none());
    let names: Vec<_> = missing.map(|report| one_line(&symbolicated.profile.lib(report.lib).name)).collect();
    if names.is_empty() {
        return;
    }
    let named = names.iter().take(LIBS_NAMED).map(AsRef::as_ref).collect::<Vec<&str>>().join(", ");
    let text = match names.len().saturating_sub(LIBS_NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    };
    printer.warn(format_args!("no files with the recorded identity for {text}: their functions have no names (-v shows the paths that were tried)"));
}
