//! Files of profiles: which format each has, and reading it.

use crate::failure::{Failure, io_reason};
use crate::printer::Printer;
use nyquist_formats::{Format, PREFIX_BYTES, detect};
use nyquist_profile::Profile;
use nyquist_profile::firefox::{self, WriteOptions};
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;

/// Reads a profile of any format that is known; `-` is standard input.
pub(crate) fn read(path: &Path, printer: Printer) -> Result<Profile, Failure> {
    let cannot_load = |error: &(dyn std::error::Error + 'static)| {
        Failure::because(format_args!("cannot load {}", path.display()), error)
    };
    if is_archive(path) {
        return Err(archive(path));
    }
    let mut input = open(path)?;
    let prefix = prefix(&mut input).map_err(|error| cannot_read(path, &error))?;
    let format = detect(&prefix, &path.file_name().unwrap_or_default().to_string_lossy());
    let mut input = Cursor::new(prefix).chain(input);
    match format {
        // What is nothing known gets the error of the format that most files have.
        None | Some(Format::Firefox) => firefox::read(input).map_err(|error| cannot_load(&error)),
        // A recording that is a file never comes here: `perf_data` reads it.
        Some(Format::PerfData) => {
            Err(Failure::new("standard input is a perf.data file, which this command takes as a file only")
                .hint("convert it first: nyquist import - -o profile.json.gz"))
        }
        Some(Format::Etl) => {
            let format = Format::Etl;
            Err(Failure::new(format!(
                "cannot load {}: it is {format}, which cannot be read yet",
                path.display()
            )))
        }
        Some(format) => {
            let mut bytes = Vec::new();
            input.read_to_end(&mut bytes).map_err(|error| cannot_read(path, &error))?;
            let imported = nyquist_formats::read(format, &bytes).map_err(|error| cannot_load(&error))?;
            for note in &imported.notes {
                printer.warn(note);
            }
            Ok(imported.profile)
        }
    }
}

/// The file's profile as a document of the Firefox Profiler: its bytes if it is one, else `profile` as it was read.
pub(crate) fn document(path: &Path, profile: &Profile) -> Result<Vec<u8>, Failure> {
    if path.is_file() {
        let bytes = std::fs::read(path).map_err(|error| cannot_read(path, &error))?;
        let start = &bytes[..bytes.len().min(PREFIX_BYTES)];
        if matches!(detect(start, ""), None | Some(Format::Firefox)) {
            return Ok(bytes);
        }
    }
    let mut document = Vec::new();
    firefox::write(profile, WriteOptions { gzip: true, ..WriteOptions::default() }, &mut document)
        .map_err(|error| Failure::because("cannot convert the profile", &error))?;
    Ok(document)
}

fn open(path: &Path) -> Result<Box<dyn Read>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin().lock()));
    }
    let file = File::open(path).map_err(|error| cannot_read(path, &error))?;
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return Err(folder(path));
    }
    Ok(Box::new(file))
}

/// Whether a file is an archive by its name; what `perf archive` makes is one.
fn is_archive(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    [".tar", ".tar.bz2", ".tar.zst", ".tar.gz", ".tar.xz"].iter().any(|ending| name.ends_with(ending))
}

fn archive(path: &Path) -> Failure {
    Failure::new(format!("cannot load {}: it is an archive, and no profile", path.display())).hint(format!(
        "if `perf archive` made it, it has the recording's binaries: \
         mkdir -p ~/.debug && tar xf {} -C ~/.debug, then load the perf.data that it belongs to",
        path.display()
    ))
}

fn folder(path: &Path) -> Failure {
    let failure = cannot_read(path, &io::ErrorKind::IsADirectory.into());
    if path.extension().is_some_and(|extension| extension == "trace") {
        return failure.hint(
            "a trace of Instruments is exported by: xctrace export --input FILE.trace --output FILE.xml \
             --xpath '/trace-toc/run[@number=\"1\"]/data/table[@schema=\"time-profile\"]'",
        );
    }
    failure.hint("name a profile, such as profile.json.gz")
}

fn prefix(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut prefix = Vec::new();
    input.take(PREFIX_BYTES as u64).read_to_end(&mut prefix)?;
    Ok(prefix)
}

fn cannot_read(path: &Path, error: &io::Error) -> Failure {
    let failure = Failure::new(format!("cannot read {}: {}", path.display(), io_reason(error)));
    // Nobody has to have typed this name: it is taken where none is given.
    if error.kind() == io::ErrorKind::NotFound && path == Path::new("profile.json.gz") {
        return failure.hint("record a program first: nyquist record -s ./app");
    }
    failure
}
