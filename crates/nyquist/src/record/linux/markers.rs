//! The recorded program's own markers: receives and reports them.

use crate::number::counted;
use crate::printer::Printer;
use nyquist_convert::Converter;
use nyquist_convert::event::Pid;
use nyquist_perf::Budget;
use nyquist_record::linux::Credentials;
use nyquist_record::linux::markers::MarkerReader;

/// Listens for the markers of a command, or of a running process. On failure the recording continues without
/// them.
pub(crate) fn listen(
    pid: Option<u32>,
    user: Option<&Credentials>,
    budget: &Budget,
    printer: Printer,
) -> Option<MarkerReader> {
    let listening = match pid {
        None => MarkerReader::for_command(user.map(|user| (user.uid, user.gid)), budget).map(Some),
        Some(pid) => MarkerReader::attach(Pid(pid), budget),
    };
    listening.unwrap_or_else(|error| {
        printer.detail(format_args!("the program's markers are not recorded: {error}"));
        None
    })
}

/// Adds the last markers to the recording, and reports losses.
pub(crate) fn finish(markers: MarkerReader, converter: &mut Converter, printer: Printer) {
    let mut events = Vec::new();
    let summary = markers.finish(&mut events);
    for event in events {
        converter.push(event);
    }
    if summary.lost > 0 {
        printer.warn(format_args!(
            "the program dropped {}: it made them faster than they were read",
            counted(summary.lost, "marker")
        ));
    }
    if summary.unreadable > 0 {
        printer.warn(format_args!("{} could not be understood", counted(summary.unreadable, "marker")));
    }
    if summary.unknown_processes > 0 {
        let files = counted(summary.unknown_processes, "file");
        printer.warn(format_args!(
            "left out: {files} with markers, of a process that is not known or another user's"
        ));
    }
    if summary.refused > 0 {
        let files = counted(summary.refused, "file");
        printer.warn(format_args!(
            "left out: {files} with markers, which the program may not be allowed to read"
        ));
    }
    if summary.cut > 0 {
        printer.warn("the program shortened a file with its markers, so some are missing");
    }
    if summary.is_full {
        printer.warn("the program made more markers than memory was allowed for: later ones are missing (--max-memory)");
    }
    if summary.markers > 0 {
        printer.detail(format_args!("read {}", counted(summary.markers, "marker")));
    }
}
