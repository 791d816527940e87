//! Traces of Windows (.etl): adds names, and notes about missing parts.

use crate::args::{RecordingArgs, SymbolArgs};
use crate::failure::Failure;
use crate::finder::finder;
use crate::number::counted;
use crate::perf_data::with_its_files;
use crate::printer::Printer;
use crate::symbolicate::{finish, import_with_lookup, symbolicator};
use crate::watch::Watch;
use crate::watched_file::WatchedFile;
use nyquist_convert::etw::{EtwCounts, EtwError, EtwImported, EtwOptions, import};
use nyquist_convert::{Progress, name_by_address};
use nyquist_etw::file::{FileError, FileReader};
use nyquist_profile::Profile;
use std::io::{Read, Seek};
use std::path::Path;
use std::sync::Arc;

/// Reads a trace, looks up names, and prints notes about incomplete parts.
pub(crate) fn read(
    file: impl Read + Seek,
    path: &Path,
    args: &RecordingArgs,
    symbols: &SymbolArgs,
    printer: Printer,
) -> Result<Profile, Failure> {
    if let Some(option) = args.not_for_traces() {
        return Err(Failure::new(format!(
            "{option} cannot be used with {}, which is a trace of Windows",
            path.display()
        )));
    }
    // It is read twice: for what it says of the whole, and for its events.
    let file =
        WatchedFile::new(file, 2, printer).map_err(|error| failure(path, &FileError::from(error).into()))?;
    let reader = FileReader::open(file).map_err(|error| failure(path, &error.into()))?;
    let symbols = &with_its_files(path, symbols, printer);
    let progress = Arc::new(Progress::default());
    let finder = finder(symbols, Watch::new(printer, Some(Arc::clone(&progress))));
    let mut symbolicator = symbolicator(&finder);
    let imported = import_with_lookup(&mut symbolicator, args.no_symbols, |sender| {
        let options = EtwOptions { sender, ..options(path, args, symbols, printer) };
        import(reader, options).map_err(|error| failure(path, &error))
    });
    let EtwImported { finished, counts, notes } = imported?;
    for note in notes {
        printer.warn(note);
    }
    report_stacks(counts, printer);
    if finished.statistics.lost > 0 {
        printer.warn(format_args!("the session lost {}", counted(finished.statistics.lost, "event")));
    }
    if args.no_symbols {
        return Ok(name_by_address(finished.profile));
    }
    Ok(finish(finished.profile, &finished.libs, &mut symbolicator, printer, &progress))
}

fn options(path: &Path, args: &RecordingArgs, symbols: &SymbolArgs, printer: Printer) -> EtwOptions {
    let file_name = || path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    EtwOptions {
        finder: finder(symbols, Watch::new(printer, None)),
        selection: args.selection(),
        name: args.profile_name.clone().unwrap_or_else(file_name),
        shape: args.rows.into(),
        sender: None,
    }
}

fn failure(path: &Path, error: &EtwError) -> Failure {
    let failure = Failure::because(format_args!("cannot load {}", path.display()), error);
    match error {
        EtwError::NoSamples => failure
            .hint(
                "xperf -on PROC_THREAD+LOADER+PROFILE -stackwalk Profile, or wpr -start CPU, records samples",
            )
            .hint("both need an administrator's rights"),
        EtwError::File(FileError::Compressed(_)) => {
            failure.hint("on Windows, xperf -merge TRACE.etl OUT.etl writes it without compression")
        }
        EtwError::File(_) => failure,
    }
}

/// Says so if the samples have no stacks.
fn report_stacks(counts: EtwCounts, printer: Printer) {
    if counts.with_stack == 0 && counts.without_stack > 0 {
        printer.warn("the trace has no stacks: only the function that ran is known");
        printer.say(
            "xperf -on PROC_THREAD+LOADER+PROFILE -stackwalk Profile, or wpr -start CPU, records stacks",
        );
    }
}
