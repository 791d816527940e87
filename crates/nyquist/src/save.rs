//! Saves a profile: at the requested place, or in another folder if that fails.

use crate::failure::{Failure, io_reason};
use crate::form::Form;
use crate::output::Output;
use crate::output::files;
use crate::printer::{self, Printer};
use crate::{export, flamegraph};
use nyquist_profile::Profile;
use nyquist_profile::firefox::{self, FormatVersion, WriteOptions};
use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _, Seek as _, Write};
use std::path::{Path, PathBuf};

/// The form of a written profile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SaveFormat {
    pub(crate) form: Form,
    pub(crate) version: FormatVersion,
}

/// A profile that was saved.
#[derive(Debug)]
pub(crate) struct SavedProfile {
    /// The path of the file; `None` for a stream.
    pub(crate) path: Option<PathBuf>,
    /// Whether it is at a place that the user requested, in the arguments or on the terminal.
    pub(crate) as_requested: bool,
    /// The file itself, if it holds the profile in full. Its name may refer to another file by now.
    file: Option<File>,
}

impl SavedProfile {
    /// The profile as a file of the Firefox Profiler's format.
    pub(crate) fn bytes(&self, profile: &Profile) -> Result<Vec<u8>, Failure> {
        let cannot_read = |error: io::Error| Failure::because("cannot read the saved profile", &error);
        let mut bytes = Vec::new();
        match &self.file {
            Some(file) => {
                let mut file = file;
                file.rewind().and_then(|()| file.read_to_end(&mut bytes)).map_err(cannot_read)?;
            }
            None => {
                firefox::write(profile, WriteOptions { gzip: true, ..WriteOptions::default() }, &mut bytes)
                    .map_err(|error| Failure::because("cannot convert the profile", &error))?;
            }
        }
        Ok(bytes)
    }
}

/// Saves the profile.
///
/// A full disk must not cause the loss of a recording. The program asks the user for another place. Without a
/// terminal, it tries the folders for temporary files.
pub(crate) fn save(
    profile: &Profile,
    output: Output,
    written: SaveFormat,
    printer: Printer,
) -> Result<SavedProfile, Failure> {
    let requested = output.name().to_owned();
    let error = match write(profile, output, written) {
        Ok(saved) => return Ok(saved),
        Err(error) => error,
    };
    printer.warn(format_args!("cannot write {}: {}", requested.display(), io_reason(&error)));
    for place in std::iter::from_fn(ask) {
        // The typed name determines the format, as on the command line.
        let opened = Form::of(&place).and_then(|form| {
            let output = Output::open(&place);
            Ok((form, output.map_err(|refused| refused.failure(&place, "-o"))?))
        });
        let saved = opened.and_then(|(form, output)| {
            let cannot_write = |error: io::Error| Failure::cannot_write(&place, &error);
            write(profile, output, SaveFormat { form, ..written }).map_err(cannot_write)
        });
        match saved {
            Ok(saved) => {
                printer.warn(format_args!("the profile was saved as {} instead", place.display()));
                return Ok(saved);
            }
            Err(failure) => printer.warn(failure.message),
        }
    }
    let name = name_of(&requested);
    for folder in files::other_folders() {
        match Output::open_in_private_folder(&folder, name) {
            Ok(output) => {
                let place = output.name().to_owned();
                match write(profile, output, written) {
                    Ok(saved) => {
                        printer.warn(format_args!("the profile was saved as {} instead", place.display()));
                        return Ok(SavedProfile { as_requested: false, ..saved });
                    }
                    Err(error) => printer.warn(Failure::cannot_write(&place, &error).message),
                }
            }
            Err(refused) => printer.warn(refused.failure_at(&folder).message),
        }
    }
    Err(Failure::io("the profile could not be saved", &error))
}

/// Writes a profile to an opened output.
pub(crate) fn write(profile: &Profile, output: Output, written: SaveFormat) -> io::Result<SavedProfile> {
    let path = output.name().to_owned();
    let file = output.save(|out| write_as(profile, written, out))?;
    Ok(SavedProfile {
        path: file.as_ref().map(|_| path),
        as_requested: true,
        file: file.filter(|_| written.form.is_profile()),
    })
}

fn write_as(profile: &Profile, written: SaveFormat, out: &mut dyn Write) -> io::Result<()> {
    let SaveFormat { form, version } = written;
    match form {
        Form::Profile { gzip } => firefox::write(profile, WriteOptions { version, gzip }, out),
        Form::Export(format) => {
            export::write(profile, format, export::Options { version, ..export::Options::default() }, out)
        }
        Form::Picture => flamegraph::write_picture(profile, out),
    }
}

/// The name for the file in another folder. The name of a stream is not useful, and `-` is not a name.
fn name_of(requested: &Path) -> &Path {
    let named = requested.file_name().map(Path::new).filter(|name| name.extension().is_some());
    named.unwrap_or(Path::new("profile.json.gz"))
}

/// Asks for a path on the terminal; `None` if nothing was typed, or without a terminal.
fn ask() -> Option<PathBuf> {
    if !io::stdin().is_terminal() || !printer::is_terminal() {
        return None;
    }
    printer::ask("Save the profile where? (Enter: a folder for temporary files) ").ok()?;
    let mut line = String::new();
    io::stdin().read_line(&mut line).ok()?;
    let line = line.trim();
    (!line.is_empty()).then(|| PathBuf::from(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_elsewhere_keeps_its_name() {
        let check =
            |requested: &str, expected: &str| assert_eq!(name_of(Path::new(requested)), Path::new(expected));
        check("/full/p.svg", "p.svg");
        for stream in ["-", "/dev/full", "/proc/self/fd/3"] {
            check(stream, "profile.json.gz");
        }
    }
}
