//! Files of profiles and recordings: which format each has, and reading it.

use crate::args::{RecordingArgs, SymbolArgs};
use crate::failure::{Failure, io_reason};
use crate::memory;
use crate::perf_data;
use crate::printer::Printer;
use crate::sys;
use nyquist_download::PerfArchive;
use nyquist_formats::{Format, PREFIX_BYTES, detect};
use nyquist_perf::file::{FileError, FileReader};
use nyquist_profile::Profile;
use nyquist_profile::firefox::{self, WriteOptions};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

/// Reads a profile of any format that is known, or a recording with what `recording` wants of it; `-` is standard
/// input.
pub(crate) fn read(
    path: &Path,
    recording: &RecordingArgs,
    symbols: &SymbolArgs,
    printer: Printer,
) -> Result<Profile, Failure> {
    let cannot_load = |error: &(dyn std::error::Error + 'static)| {
        Failure::because(format_args!("cannot load {}", path.display()), error)
    };
    if PerfArchive::has_name_of_one(path) {
        return Err(archive(path));
    }
    let _held = memory::hold(path, symbols.max_memory);
    let source = Source::find(path).map_err(|error| cannot_read(path, &error))?;
    let format = source.format(path).map_err(|error| cannot_read(path, &error))?;
    if format == Some(Format::PerfData) {
        sys::map_large_blocks();
        let reader = source.recording().map_err(|error| cannot_load(&error))?;
        return perf_data::read(reader, path, recording, symbols, printer);
    }
    if let Some(option) = recording.given() {
        return Err(Failure::new(format!("{option} is for recordings (perf.data); this is a saved profile")));
    }
    let what_to_do = if format.is_none() { source.advice() } else { None };
    let mut input = source.bytes().map_err(|error| cannot_read(path, &error))?;
    match format {
        // What is nothing known gets the error of the format that most files have.
        None | Some(Format::Firefox) => firefox::read(input).map_err(|error| {
            let failure = cannot_load(&error);
            match what_to_do {
                Some(hint) => failure.hint(hint),
                None => failure,
            }
        }),
        Some(format @ Format::Etl) => Err(Failure::new(format!(
            "cannot load {}: it is {format}, which cannot be read yet",
            path.display()
        ))),
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

/// Where a file's bytes come from.
enum Source {
    /// A file that can be read from any place of it, as a redirected one can too.
    File(PathBuf),
    /// A folder of `perf record --threads`.
    Folder(PathBuf),
    /// A pipe, and how it begins.
    Pipe { start: Vec<u8> },
}

impl Source {
    fn find(path: &Path) -> io::Result<Self> {
        const STDIN: &str = "/dev/stdin";
        if path != Path::new("-") {
            let folder = path.is_dir();
            return Ok(if folder { Self::Folder(path.to_owned()) } else { Self::File(path.to_owned()) });
        }
        if Path::new(STDIN).is_file() {
            return Ok(Self::File(PathBuf::from(STDIN)));
        }
        Ok(Self::Pipe { start: prefix(io::stdin().lock())? })
    }

    /// The format, by how the bytes begin and, where that leaves it open, by how the file is called.
    fn format(&self, path: &Path) -> io::Result<Option<Format>> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match self {
            Self::File(file) => Ok(detect(&prefix(File::open(file)?)?, &name)),
            Self::Pipe { start } => Ok(detect(start, &name)),
            // The file in it says whether it is a recording's.
            Self::Folder(folder) => match File::open(folder.join("data")) {
                Ok(data) => Ok(detect(&prefix(data)?, "")),
                Err(_) => Err(io::ErrorKind::IsADirectory.into()),
            },
        }
    }

    /// What to do about a file that is none that is known.
    fn advice(&self) -> Option<String> {
        let Self::File(path) = self else { return None };
        let start = prefix(File::open(path).ok()?).ok()?;
        let is_program = start.starts_with(b"\x7fELF") || start.starts_with(b"#!");
        // A shell looks for a name without a folder elsewhere.
        let folder = if path.components().count() == 1 { "./" } else { "" };
        is_program.then(|| format!("to record a program: nyquist record {folder}{}", path.display()))
    }

    fn recording(self) -> Result<FileReader, FileError> {
        match self {
            Self::File(path) | Self::Folder(path) => FileReader::open(&path),
            Self::Pipe { start } => FileReader::open_stream(Cursor::new(start).chain(io::stdin())),
        }
    }

    fn bytes(self) -> io::Result<Box<dyn Read>> {
        match self {
            Self::File(path) => Ok(Box::new(File::open(path)?)),
            Self::Folder(_) => Err(io::ErrorKind::IsADirectory.into()),
            Self::Pipe { start } => Ok(Box::new(Cursor::new(start).chain(io::stdin()))),
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

fn archive(path: &Path) -> Failure {
    Failure::new(format!("cannot load {}: it is an archive, and no profile", path.display())).hint(
        "if `perf archive` made it, put it beside the perf.data that it belongs to and load that: it is unpacked by itself",
    )
}

fn prefix(input: impl Read) -> io::Result<Vec<u8>> {
    let mut prefix = Vec::new();
    input.take(PREFIX_BYTES as u64).read_to_end(&mut prefix)?;
    Ok(prefix)
}

fn cannot_read(path: &Path, error: &io::Error) -> Failure {
    let failure = Failure::new(format!("cannot read {}: {}", path.display(), io_reason(error)));
    match error.kind() {
        // Nobody has to have typed this name: it is taken where none is given.
        io::ErrorKind::NotFound if path == Path::new("profile.json.gz") => {
            failure.hint("record a program first: nyquist record -s ./app")
        }
        io::ErrorKind::IsADirectory if path.extension() == Some(OsStr::new("trace")) => failure.hint(
            "a trace of Instruments is exported by: xctrace export --input FILE.trace --output FILE.xml \
             --xpath '/trace-toc/run[@number=\"1\"]/data/table[@schema=\"time-profile\"]'",
        ),
        io::ErrorKind::IsADirectory => failure.hint("name a profile, such as profile.json.gz"),
        _ => failure,
    }
}
