//! Recordings of perf: adds names, and notes about missing parts.

use crate::args::{RecordingArgs, SymbolArgs};
use crate::failure::{Failure, io_reason};
use crate::finder::finder;
use crate::folders::UserFolders;
use crate::memory;
use crate::number::counted;
use crate::printer::Printer;
use crate::symbolicate::{finish, import_with_lookup, symbolicator};
use crate::watch::Watch;
use nyquist_convert::perf_data::{EventUse, ImportError, ImportOptions, ImportedProfile, import};
use nyquist_convert::{LibSource, Libs, Progress, name_by_address};
use nyquist_download::PerfArchive;
use nyquist_perf::file::FileReader;
use nyquist_profile::Profile;
use nyquist_symbols::KernelFiles;
use nyquist_system::{open_regular, ownership};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// Reads a recording, looks up names, and prints notes about incomplete parts.
pub(crate) fn read(
    reader: FileReader,
    path: &Path,
    kernel: Option<KernelFiles>,
    args: &RecordingArgs,
    symbols: &SymbolArgs,
    printer: Printer,
) -> Result<Profile, Failure> {
    let symbols = &with_its_files(path, symbols, printer);
    let progress = Arc::new(Progress::default());
    let finder = finder(symbols, Watch::new(printer, Some(Arc::clone(&progress)))).with_kernel_files(kernel);
    let mut symbolicator = symbolicator(&finder);
    let imported = import_with_lookup(&mut symbolicator, args.no_symbols, |sender| {
        import(reader, ImportOptions { sender, ..options(path, args, symbols, printer) })
            .map_err(|error| import_failure(&error))
    });
    let ImportedProfile { finished, events, notes, other_machine } = imported?;
    for note in notes {
        printer.warn(note);
    }
    report_events(&events, printer);
    if finished.statistics.lost > 0 {
        printer.warn(format_args!("the recorder lost {}", counted(finished.statistics.lost, "record")));
    }
    report_missing(&finished.profile, &finished.libs, other_machine.as_deref(), printer);
    if args.no_symbols {
        return Ok(name_by_address(finished.profile));
    }
    Ok(finish(finished.profile, &finished.libs, &mut symbolicator, printer, &progress))
}

fn options(path: &Path, args: &RecordingArgs, symbols: &SymbolArgs, printer: Printer) -> ImportOptions {
    let modified = std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let saved = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    ImportOptions {
        finder: finder(symbols, Watch::new(printer, None)),
        selection: args.selection(),
        events: args.event.clone(),
        name: args.profile_name.clone(),
        architecture: args.override_arch,
        aux_folders: aux_folders(path, args),
        owner: open_regular(path).and_then(|file| ownership(&file)).ok().map(|owner| owner.user),
        side_files: memory::side_files(symbols.max_memory),
        saved_ns: saved.map(|time| time.as_nanos() as u64),
        shape: args.rows.into(),
        threads: None,
        sender: None,
    }
}

/// The user's folders, and the recording's own.
fn aux_folders(path: &Path, args: &RecordingArgs) -> Vec<PathBuf> {
    args.aux_file_dir.iter().cloned().chain(own_folder(path)).collect()
}

/// Adds the folders of files that came with a recording: its own folder, and that of its archive, which is
/// unpacked on first use.
pub(crate) fn with_its_files(path: &Path, symbols: &SymbolArgs, printer: Printer) -> SymbolArgs {
    let mut symbols = symbols.clone();
    symbols.symbol_dir.extend(own_folder(path).into_iter().chain(unpacked(path, printer)));
    symbols
}

/// The folder of the binaries that `perf archive` has packed, if there is such an archive.
fn unpacked(path: &Path, printer: Printer) -> Option<PathBuf> {
    let folders = UserFolders::of_user();
    let archive = PerfArchive::of_recording(path, &folders.archives()?)?;
    if !archive.is_unpacked() {
        let packed = archive.path().display();
        printer.say(format_args!("Unpacking {packed}"));
        if let Err(error) = archive.unpack() {
            printer.warn(format_args!("not all of {packed} could be unpacked: {}", io_reason(&error)));
        }
    }
    Some(archive.folder().to_owned())
}

fn own_folder(path: &Path) -> Option<PathBuf> {
    let own = path.parent().filter(|_| path != Path::new("-"))?;
    Some(if own == Path::new("") { PathBuf::from(".") } else { own.to_owned() })
}

fn import_failure(error: &ImportError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        ImportError::NoSuchEvent { there, .. } => failure.hint(format!("it has {}", there.join(", "))),
        ImportError::DifferentMeasures { first, .. } => {
            failure.hint(format!("--event {first} shows one of them alone"))
        }
    }
}

/// Prints which events are not shown.
fn report_events(events: &[EventUse], printer: Printer) {
    for event in events.iter().filter(|event| !event.used && event.samples > 0) {
        let samples = counted(event.samples, "sample");
        printer.say(format_args!(
            "{samples} of {} are not shown; --event {} shows them",
            event.name, event.name
        ));
    }
}

/// Lists the files without which stacks end early and functions have no names.
fn report_missing(profile: &Profile, libs: &Libs, other_machine: Option<&str>, printer: Printer) {
    let missing = libs.sources().iter().filter_map(|(lib, source)| match source {
        LibSource::File(request) if request.alternatives.is_empty() => Some(*lib),
        LibSource::Unknown => Some(*lib),
        _ => None,
    });
    let mut lines: Vec<String> = missing
        .map(|lib| {
            let lib = profile.lib(lib);
            match &lib.code_id {
                Some(id) => format!("  {} (build id {id})", lib.path),
                None => format!("  {}", lib.path),
            }
        })
        .collect();
    if lines.is_empty() {
        return;
    }
    lines.sort();
    let from = other_machine.map_or_else(String::new, |machine| format!(" from {machine}"));
    printer.warn(format_args!(
        "{} missing{from}; stacks may end early and functions have no names without them (put them into a folder for --symbol-dir):\n{}",
        if lines.len() == 1 { "a file is".to_owned() } else { format!("{} files are", lines.len()) },
        lines.join("\n")
    ));
}
