//! The messages about what is missing from a file that was read.

use crate::failure::io_reason;
use crate::number::counted;
use crate::printer::Printer;
use crate::text::one_line;
use nyquist_input::{LostAmount, MissingFile, Note, SamplySymbolsError};
use std::borrow::Cow;
use std::error::Error as _;

/// The number of libs without symbols that a warning names.
const LIBS_NAMED: usize = 3;

/// Prints a note.
pub(super) fn print(note: &Note, printer: Printer) {
    match note {
        Note::Cut { path, error } => printer.warn(format_args!(
            "{} is cut off or damaged ({error}): what comes before is read",
            path.display()
        )),
        Note::LeftOut(note) => printer.warn(note),
        Note::Incomplete(sentence) => printer.warn(sentence),
        Note::Lost(LostAmount::Records(lost)) => {
            printer.warn(format_args!("the recorder lost {}", counted(*lost, "record")));
        }
        Note::Lost(LostAmount::Events(lost)) => {
            printer.warn(format_args!("the session lost {}", counted(*lost, "event")));
        }
        Note::EventNotShown { name, samples } => {
            let samples = counted(*samples, "sample");
            printer.say(format_args!("{samples} of {name} are not shown; --event {name} shows them"));
        }
        Note::EventInstead { shown, empty } => {
            printer.say(format_args!("there are no samples of {empty}: those of {shown} are shown"));
        }
        Note::MissingFiles { machine, files } => printer.warn(missing_files(machine.as_deref(), files)),
        Note::NoStacks => {
            printer.warn("the trace has no stacks: only the function that ran is known");
            printer.say(
                "xperf -on PROC_THREAD+LOADER+PROFILE -stackwalk Profile, or wpr -start CPU, records stacks",
            );
        }
        Note::Unpacking { archive } => printer.say(format_args!("Unpacking {}", archive.display())),
        Note::NotUnpacked { archive, error } => printer.warn(format_args!(
            "not all of {} could be unpacked: {}",
            archive.display(),
            io_reason(error)
        )),
        Note::LookupEnded => {
            printer.warn("the lookup of names was stopped early, so some functions have no name");
        }
        Note::NoKernelNames(error) => {
            printer.warn(format_args!("kernel functions have no names: {error}"));
        }
        Note::NoFilesOf { libs } => printer.warn(no_files_of(libs)),
        Note::SamplySymbols { path, libs } => {
            let libs = counted(*libs as u64, "lib");
            printer.detail(format_args!("{}: names for {libs}", path.display()));
        }
        Note::SamplySymbolsRefused { path, reason } => {
            let reason = reason_of(reason);
            printer.warn(format_args!("the names in {} are not used: {reason}", path.display()));
        }
    }
}

/// Lists the files without which stacks end early and functions have no names.
fn missing_files(machine: Option<&str>, files: &[MissingFile]) -> String {
    let line = |file: &MissingFile| match &file.build_id {
        Some(id) => format!("  {} (build id {id})", file.path),
        None => format!("  {}", file.path),
    };
    let mut lines: Vec<_> = files.iter().map(line).collect();
    lines.sort();
    let from = machine.map_or_else(String::new, |machine| format!(" from {machine}"));
    format!(
        "{} missing{from}; stacks may end early and functions have no names without them (put them into a folder for --symbol-dir):\n{}",
        if lines.len() == 1 { "a file is".to_owned() } else { format!("{} files are", lines.len()) },
        lines.join("\n")
    )
}

/// Names the libs whose functions have no names.
fn no_files_of(libs: &[String]) -> String {
    let named = libs.iter().take(LIBS_NAMED).map(|lib| one_line(lib));
    let named = named.collect::<Vec<Cow<'_, str>>>().join(", ");
    let text = match libs.len().saturating_sub(LIBS_NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    };
    format!(
        "no files with the recorded identity for {text}: their functions have no names (-v shows the paths that were tried)"
    )
}

/// Why samply's file is not used.
fn reason_of(reason: &SamplySymbolsError) -> String {
    match reason {
        SamplySymbolsError::NotRegular => "it is not a regular file".to_owned(),
        SamplySymbolsError::Unreadable(error) => io_reason(error),
        SamplySymbolsError::TooLarge { most } => {
            format!("it is larger than {} MiB; --max-memory allows more", most >> 20)
        }
        SamplySymbolsError::Malformed(error) => {
            let cause = error.source().map(|cause| format!(" ({cause})"));
            format!("{error}{}", cause.unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_of_many_libs_are_named() {
        let check = |libs: &[&str], expected: &str| {
            let libs: Vec<_> = libs.iter().map(|&lib| lib.to_owned()).collect();
            let text = no_files_of(&libs);
            assert!(
                text.starts_with(&format!("no files with the recorded identity for {expected}: ")),
                "{text}"
            );
        };
        check(&["a"], "a");
        check(&["a", "b", "c"], "a, b, c");
        check(&["a", "b", "c", "d", "e"], "a, b, c and 2 more");
    }

    #[test]
    fn missing_files_are_in_order() {
        let file = |path: &str, build_id: Option<&str>| MissingFile {
            path: path.to_owned(),
            build_id: build_id.map(str::to_owned),
        };
        let text = missing_files(Some("pi"), &[file("/b", Some("c0de")), file("/a", None)]);
        assert!(
            text.starts_with("2 files are missing from pi; ")
                && text.ends_with(":\n  /a\n  /b (build id c0de)")
        );
        assert!(missing_files(None, &[file("/a", None)]).starts_with("a file is missing; "));
    }

    #[test]
    fn a_refused_file_of_samply_has_a_reason() {
        let malformed = nyquist_formats::samply_sidecar::read(b"{}").unwrap_err();
        let malformed = reason_of(&SamplySymbolsError::Malformed(malformed));
        assert!(
            malformed.starts_with("the file is not a symbol file of samply (missing field"),
            "{malformed}"
        );
        let too_large = reason_of(&SamplySymbolsError::TooLarge { most: 3 << 20 });
        assert_eq!(too_large, "it is larger than 3 MiB; --max-memory allows more");
    }
}
