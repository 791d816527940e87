//! Saving a profile: where it was asked for, or, when that fails, wherever there is room.

use crate::failure::{Failure, io_reason};
use crate::output::Output;
use crate::printer::Printer;
use nyquist_profile::Profile;
use nyquist_profile::firefox::{self, FormatVersion, WriteOptions};
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

/// A profile that was saved.
#[derive(Debug)]
pub(crate) struct Saved {
    /// The file; a stream has none.
    pub(crate) path: Option<PathBuf>,
    /// Whether it is where it was asked for, at first or on the terminal.
    pub(crate) as_asked: bool,
}

/// Saves the profile.
///
/// What was recorded is not given up because a disk is full: the user is asked for another place, or, without a
/// terminal, the folders for temporary files are tried.
pub(crate) fn save(
    profile: &Profile,
    output: Output,
    version: FormatVersion,
    printer: Printer,
) -> Result<Saved, Failure> {
    let wanted = output.name().to_owned();
    let error = match write(profile, output, version) {
        Ok(path) => return Ok(Saved { path, as_asked: true }),
        Err(error) => error,
    };
    printer.warn(format_args!("cannot write {}: {}", wanted.display(), io_reason(&error)));
    for (place, as_asked) in other_places(&wanted) {
        match Output::open(&place, None).and_then(|output| write(profile, output, version)) {
            Ok(path) => {
                printer.warn(format_args!("the profile was saved as {} instead", place.display()));
                return Ok(Saved { path, as_asked });
            }
            Err(error) => {
                printer.warn(format_args!("cannot write {}: {}", place.display(), io_reason(&error)));
            }
        }
    }
    Err(Failure::new(format!("the profile could not be saved: {}", io_reason(&error))))
}

fn write(profile: &Profile, output: Output, version: FormatVersion) -> io::Result<Option<PathBuf>> {
    let path = output.path().map(Path::to_owned);
    output.save(|out| firefox::write(profile, WriteOptions { version, gzip: true }, out))?;
    Ok(path)
}

/// Other places, as they are wanted: what the user types, then the folders for temporary files.
fn other_places(wanted: &Path) -> impl Iterator<Item = (PathBuf, bool)> {
    let asked = std::iter::from_fn(ask).map(|place| (place, true));
    let name = wanted.file_name().filter(|_| wanted != Path::new("-")).unwrap_or("profile.json.gz".as_ref());
    let name = format!("{}-{}", std::process::id(), name.to_string_lossy());
    let folders = [std::env::temp_dir(), PathBuf::from("/var/tmp"), PathBuf::from("/dev/shm")];
    asked.chain(folders.map(|folder| (folder.join(&name), false)))
}

/// Asks for a path on the terminal; nothing typed, or no terminal, is `None`.
fn ask() -> Option<PathBuf> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return None;
    }
    let _ = write!(io::stderr(), "Save the profile where? (Enter: a folder for temporary files) ");
    let mut line = String::new();
    io::stdin().read_line(&mut line).ok()?;
    let line = line.trim();
    (!line.is_empty()).then(|| PathBuf::from(line))
}
