//! The failure of a file that cannot be read, with hints.

use crate::failure::Failure;
use crate::text::one_line;
use nyquist_convert::etw::EtwError;
use nyquist_convert::perf_data::ImportError;
use nyquist_etw::file::FileError;
use nyquist_input::{InputError, UnknownContent};
use std::error::Error;
use std::ffi::OsStr;
use std::io;
use std::path::Path;

/// The hint for files of an unknown format.
const READ_FORMATS: &str = "files of the Firefox Profiler, perf (perf.data), Windows (.etl), pprof, speedscope, Chrome, folded \
                            stacks and others are read: docs/formats.md lists them all";

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        match &error {
            InputError::Archive { .. } => because(&error).hint(
                "if `perf archive` made it, put it into the folder of its perf.data and load the perf.data: the archive is unpacked automatically",
            ),
            InputError::Read { path, source } => cannot_read(path, source),
            InputError::UnknownFormat { path, content } => with_hint(because(&error), path, *content),
            InputError::Events(cause) => of_events(cause),
            InputError::Trace { source, .. } => of_trace(because(&error), source),
            InputError::NoSuchEvent { path, event, known } => no_such_event(path, event, known),
            _ => because(&error),
        }
    }
}

/// The failure with all causes of an error, without hints.
fn because(error: &InputError) -> Failure {
    error.source().map_or_else(|| Failure::new(error.to_string()), |cause| Failure::because(error, cause))
}

fn cannot_read(path: &Path, error: &io::Error) -> Failure {
    let failure = Failure::io(format_args!("cannot read {}", path.display()), error);
    match error.kind() {
        // The user may not have typed this name, because it is the default.
        io::ErrorKind::NotFound if path == Path::new("profile.json.gz") => {
            failure.hint("record a program first: nyquist record -s ./app")
        }
        io::ErrorKind::IsADirectory if path.extension() == Some(OsStr::new("trace")) => of_instruments(path),
        io::ErrorKind::IsADirectory => failure.hint("name a profile, such as profile.json.gz"),
        _ => failure,
    }
}

/// The failure for a trace of Instruments, which is a folder that only Apple's own program can read.
fn of_instruments(path: &Path) -> Failure {
    let path = path.display();
    Failure::new(format!("cannot load {path}: it is an Instruments trace; only an export of it can be read"))
        .hint(format!(
            "on the Mac: xcrun xctrace export --input '{path}' --output profile.xml --xpath \
             '/trace-toc/run[@number=\"1\"]/data/table[@schema=\"time-profile\"]'"
        ))
        .hint("then: nyquist load profile.xml")
}

/// Adds the hint for a file of an unknown format.
fn with_hint(failure: Failure, path: &Path, content: UnknownContent) -> Failure {
    match content {
        UnknownContent::Nothing => failure,
        UnknownContent::Program => {
            // A shell would search a name without a folder in PATH.
            let folder = if path.components().count() == 1 { "./" } else { "" };
            failure.hint(format!("to record a program: nyquist record {folder}{}", path.display()))
        }
        UnknownContent::Other => failure.hint(READ_FORMATS),
    }
}

fn of_events(error: &ImportError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        ImportError::NoSuchEvent { there, .. } => failure.hint(format!("it has {}", there.join(", "))),
        ImportError::DifferentMeasures { first, .. } => {
            failure.hint(format!("--event {first} shows one of them alone"))
        }
        _ => failure,
    }
}

fn of_trace(failure: Failure, error: &EtwError) -> Failure {
    match error {
        EtwError::NoSamples => failure
            .hint(
                "xperf -on PROC_THREAD+LOADER+PROFILE -stackwalk Profile, or wpr -start CPU, records samples",
            )
            .hint("both need an administrator's rights"),
        EtwError::File(FileError::Compressed(_)) => {
            failure.hint("on Windows, xperf -merge TRACE.etl OUT.etl writes it without compression")
        }
        _ => failure,
    }
}

fn no_such_event(path: &Path, event: &str, known: &[String]) -> Failure {
    let (path, event) = (path.display(), one_line(event));
    if known.is_empty() {
        return Failure::new(format!("{path} holds no events, and so no {event}"))
            .hint("`nyquist record -e EVENT` records events in addition to the samples");
    }
    let known = known.iter().map(|event| one_line(event)).collect::<Vec<_>>().join(", ");
    Failure::new(format!("{path} holds no event {event}: its events are {known}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_format_says_what_is_read() {
        let hints = |path: &str, content| {
            Failure::from(InputError::UnknownFormat { path: path.into(), content }).hints
        };
        assert_eq!(hints("notes.txt", UnknownContent::Other), [READ_FORMATS]);
        assert_eq!(hints("app", UnknownContent::Program), ["to record a program: nyquist record ./app"]);
        assert_eq!(
            hints("bin/run", UnknownContent::Program),
            ["to record a program: nyquist record bin/run"]
        );
        assert!(hints("empty", UnknownContent::Nothing).is_empty());
    }

    #[test]
    fn the_cause_follows_what_was_tried() {
        let message = |error| Failure::from(error).message;
        let source = || io::Error::other("The disk is on fire");
        let read = InputError::Read { path: "x".into(), source: source() };
        assert_eq!(message(read), "cannot read x: the disk is on fire");
        let unpack = InputError::Unpack { path: "x".into(), source: source() };
        assert_eq!(message(unpack), "cannot unpack x: The disk is on fire");
        let event = |known: &[&str]| InputError::NoSuchEvent {
            path: "x".into(),
            event: "a".into(),
            known: known.iter().map(|&name| name.to_owned()).collect(),
        };
        assert_eq!(message(event(&[])), "x holds no events, and so no a");
        assert_eq!(message(event(&["b", "c"])), "x holds no event a: its events are b, c");
    }
}
