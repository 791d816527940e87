//! Files of profiles and recordings: detects their format, and reads them.

use crate::args::{RecordingArgs, SymbolArgs};
use crate::event_trace;
use crate::failure::{Failure, io_reason};
use crate::identity::{self, Rights};
use crate::memory;
use crate::perf_data;
use crate::printer::Printer;
use crate::system::{files, process_memory};
use crate::text::one_line;
use nyquist_download::PerfArchive;
use nyquist_formats::{Format, PREFIX_BYTES, Packing, UnpackedFile, detect};
use nyquist_perf::file::{FileError, FileReader};
use nyquist_profile::Profile;
use nyquist_profile::firefox::{self, WriteOptions};
use nyquist_symbols::KernelFiles;
use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek};
use std::path::{Path, PathBuf};

/// The hint for files of an unknown format.
const READ_FORMATS: &str = "files of the Firefox Profiler, perf (perf.data), Windows (.etl), pprof, speedscope, Chrome, folded \
                            stacks and others are read: docs/formats.md lists them all";

/// A file that is open; `-` is standard input.
pub(crate) struct InputFile {
    pub(crate) path: PathBuf,
    source: Source,
    format: Option<Format>,
    /// Facts for a recording that the kernel shows only to privileged processes.
    kernel: Option<KernelFiles>,
}

/// Opens files, and gives up all rights that the user does not have. A file that only root can read is opened
/// by root, but its contents are read without root's rights.
pub(crate) fn open<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Result<Vec<InputFile>, Failure> {
    let opened = paths.into_iter().map(|path| InputFile::open(path)).collect::<Result<_, _>>()?;
    identity::give_up_privileges()?;
    Ok(opened)
}

impl InputFile {
    fn open(path: &Path) -> Result<Self, Failure> {
        if PerfArchive::has_name_of_one(path) {
            return Err(archive(path));
        }
        let find = || {
            let source = Source::find(path)?;
            let format = source.format(path)?;
            let hidden = source.packing()?.is_some_and(|packing| packing.hides(format));
            Ok((source, format, hidden))
        };
        let ((source, format, hidden), _) =
            Rights::to_open(find).map_err(|error| cannot_read(path, &error))?;
        let may_be_recording = format == Some(Format::PerfData) || hidden;
        let kernel = may_be_recording.then(KernelFiles::open).flatten();
        Ok(Self { path: path.to_owned(), source, format, kernel })
    }

    /// The same file with unpacked contents, if the readers do not support its compression.
    fn unpacked(self, printer: Printer) -> Result<Self, Failure> {
        let Self { path, source, format, kernel } = self;
        let cannot_read = |error: io::Error| cannot_read(&path, &error);
        let packing = source.packing().map_err(cannot_read)?.filter(|packing| packing.hides(format));
        let Some(packing) = packing else { return Ok(Self { path, source, format, kernel }) };
        let UnpackedFile { file, cut } = source
            .bytes()
            .and_then(|packed| packing.unpack(packed, files::nameless()?))
            .map_err(|error| Failure::because(format_args!("cannot unpack {}", path.display()), &error))?;
        if let Some(error) = cut {
            printer.warn(format_args!(
                "{} is cut off or damaged ({error}): what comes before is read",
                path.display()
            ));
        }
        let source = Source::File(file);
        // The name without the suffix shows the inner format: `x.folded.xz`.
        let format = source.format(&path.with_extension("")).map_err(cannot_read)?;
        Ok(Self { path, source, format, kernel })
    }
}

/// Opens and reads a profile, as [`open`] and [`read_opened`] do.
pub(crate) fn read(
    path: &PathBuf,
    recording: &RecordingArgs,
    symbols: &SymbolArgs,
    printer: Printer,
) -> Result<Profile, Failure> {
    let mut opened = open([path])?;
    let opened = opened.pop().ok_or_else(|| Failure::new("no file is open"))?;
    read_opened(opened, recording, symbols, printer)
}

/// Reads a profile of any known format, or the part of a recording that `recording` selects.
pub(crate) fn read_opened(
    opened: InputFile,
    recording: &RecordingArgs,
    symbols: &SymbolArgs,
    printer: Printer,
) -> Result<Profile, Failure> {
    let _held = memory::hold(&opened.path, symbols.max_memory);
    let InputFile { path, source, format, kernel } = opened.unpacked(printer)?;
    let path = path.as_path();
    if !format.is_some_and(Format::has_labels) && !recording.label.is_empty() {
        let path = path.display();
        return Err(Failure::new(format!(
            "--label is for files of pprof and OpenTelemetry, whose samples have labels; {path} is none of them"
        )));
    }
    match format {
        Some(Format::PerfData) => {
            process_memory::map_large_blocks();
            let reader = source.recording().map_err(|error| cannot_load(path, &error))?;
            perf_data::read(reader, path, kernel, recording, symbols, printer)
        }
        Some(Format::Etl) => {
            let file = source.seekable().map_err(|error| cannot_read(path, &error))?;
            event_trace::read(file, path, recording, symbols, printer)
        }
        _ => read_profile(path, source, format, recording, printer),
    }
}

/// Reads a saved profile, or the values of another tool's file that `recording` selects.
fn read_profile(
    path: &Path,
    source: Source,
    format: Option<Format>,
    recording: &RecordingArgs,
    printer: Printer,
) -> Result<Profile, Failure> {
    // Unknown JSON gets the error of the most common format.
    let other = format.filter(|format| *format != Format::Firefox);
    let value = match (other, recording.event.as_slice()) {
        (Some(other), [event]) if other.has_values() => Some(event.as_str()),
        (None, [event]) => Some(event.as_str()),
        _ => None,
    };
    if let Some(option) = recording.not_for_profiles(value.is_some()) {
        return Err(Failure::new(format!("{option} is for recordings (perf.data); this is a saved profile")));
    }
    let Some(format) = other else {
        let profile = read_firefox(path, source, format.is_some())?;
        return of_event(path, profile, value);
    };
    let mut bytes = Vec::new();
    let mut input = source.bytes().map_err(|error| cannot_read(path, &error))?;
    input.read_to_end(&mut bytes).map_err(|error| cannot_read(path, &error))?;
    let imported = nyquist_formats::read_wanted(format, &bytes, value, &recording.label)
        .map_err(|error| cannot_load(path, &error))?;
    for note in &imported.notes {
        printer.warn(note);
    }
    Ok(demangled(imported.profile))
}

/// Reads a profile of the Firefox Profiler, also one whose text has another encoding than UTF-8.
fn read_firefox(path: &Path, source: Source, is_certain: bool) -> Result<Profile, Failure> {
    let start = source.start().map_err(|error| cannot_read(path, &error))?;
    if !is_certain && !nyquist_formats::may_be_json(&start) {
        return Err(unknown(path, &start));
    }
    let mut input = source.bytes().map_err(|error| cannot_read(path, &error))?;
    let read = if nyquist_formats::is_recoded(&start) {
        let mut bytes = Vec::new();
        input.read_to_end(&mut bytes).map_err(|error| cannot_read(path, &error))?;
        let text = nyquist_formats::plain_text(&bytes).map_err(|error| cannot_load(path, &error))?;
        firefox::read(&*text)
    } else {
        firefox::read(input)
    };
    read.map_err(|error| cannot_load(path, &error))
}

fn cannot_load(path: &Path, error: &(dyn std::error::Error + 'static)) -> Failure {
    Failure::because(format_args!("cannot load {}", path.display()), error)
}

/// The profile with demangled names, because files of other tools often have mangled ones.
fn demangled(profile: Profile) -> Profile {
    profile.with_functions_renamed(|name| match nyquist_symbols::demangle(name) {
        Cow::Borrowed(_) => None,
        Cow::Owned(demangled) => Some(demangled),
    })
}

/// The profile with an event instead of CPU time, if one is requested.
fn of_event(path: &Path, profile: Profile, event: Option<&str>) -> Result<Profile, Failure> {
    let Some(event) = event else { return Ok(profile) };
    let known = profile.recorded_events().into_iter().map(one_line).collect::<Vec<_>>().join(", ");
    profile.with_event_as_samples(event).ok_or_else(|| {
        let (path, event) = (path.display(), one_line(event));
        if known.is_empty() {
            return Failure::new(format!("{path} holds no events, and so no {event}"))
                .hint("`nyquist record -e EVENT` records events in addition to the samples");
        }
        Failure::new(format!("{path} holds no event {event}: its events are {known}"))
    })
}

/// What can be read at any offset.
trait ReadSeek: Read + Seek {}

impl<T: Read + Seek> ReadSeek for T {}

/// The source of a file's bytes.
enum Source {
    /// A file that can be read at any offset, such as a redirected one.
    File(File),
    /// A folder of `perf record --threads`. Its files are opened if the first of them is a recording.
    Folder { start: Vec<u8>, recording: Box<Result<FileReader, FileError>> },
    /// A pipe: its first bytes, and the rest.
    Pipe { start: Vec<u8>, rest: Box<dyn Read + Send> },
}

impl Source {
    fn find(path: &Path) -> io::Result<Self> {
        const STDIN: &str = "/dev/stdin";
        if path != Path::new("-") {
            return if path.is_dir() { Self::folder(path) } else { Self::file(File::open(path)?) };
        }
        if Path::new(STDIN).is_file() {
            return Self::file(File::open(STDIN)?);
        }
        Ok(Self::Pipe { start: prefix(io::stdin().lock())?, rest: Box::new(io::stdin()) })
    }

    /// A file that is not regular is read like a pipe.
    fn file(file: File) -> io::Result<Self> {
        if file.metadata()?.is_file() {
            return Ok(Self::File(file));
        }
        Ok(Self::Pipe { start: prefix(&file)?, rest: Box::new(file) })
    }

    fn folder(path: &Path) -> io::Result<Self> {
        let data = File::open(path.join("data")).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => error,
            _ => io::ErrorKind::IsADirectory.into(),
        })?;
        let start = prefix(&data)?;
        match FileReader::open(path) {
            Err(FileError::Read { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => {
                Err(source)
            }
            recording => Ok(Self::Folder { start, recording: Box::new(recording) }),
        }
    }

    /// The format, determined by the first bytes. If they are ambiguous, the file's name decides.
    fn format(&self, path: &Path) -> io::Result<Option<Format>> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match self {
            // The file in it shows whether it is a recording.
            Self::Folder { start, .. } => Ok(detect(start, "")),
            Self::File(_) | Self::Pipe { .. } => Ok(detect(&self.start()?, &name)),
        }
    }

    /// The compression, if any.
    fn packing(&self) -> io::Result<Option<Packing>> {
        match self {
            Self::Folder { .. } => Ok(None),
            Self::File(_) | Self::Pipe { .. } => Ok(Packing::of(&self.start()?)),
        }
    }

    /// The first bytes of the file.
    fn start(&self) -> io::Result<Vec<u8>> {
        match self {
            Self::File(file) => start_of(file),
            Self::Pipe { start, .. } | Self::Folder { start, .. } => Ok(start.clone()),
        }
    }

    fn recording(self) -> Result<FileReader, FileError> {
        match self {
            Self::File(file) => FileReader::open_file(file),
            Self::Folder { recording, .. } => *recording,
            Self::Pipe { start, rest } => FileReader::open_stream(Cursor::new(start).chain(rest)),
        }
    }

    /// The contents, for readers that go back and forth. A pipe is read to its end.
    fn seekable(self) -> io::Result<Box<dyn ReadSeek>> {
        if let Self::File(file) = self {
            return Ok(Box::new(file));
        }
        let mut bytes = Vec::new();
        self.bytes()?.read_to_end(&mut bytes)?;
        Ok(Box::new(Cursor::new(bytes)))
    }

    fn bytes(self) -> io::Result<Box<dyn Read>> {
        match self {
            Self::File(file) => Ok(Box::new(file)),
            Self::Folder { .. } => Err(io::ErrorKind::IsADirectory.into()),
            Self::Pipe { start, rest } => Ok(Box::new(Cursor::new(start).chain(rest))),
        }
    }
}

/// The file's profile as a document of the Firefox Profiler: the file's bytes if it is one, otherwise
/// `profile` converted.
pub(crate) fn document(path: &Path, profile: &Profile) -> Result<Vec<u8>, Failure> {
    // A file that only root may read can no longer be read.
    if profile.meta().measure.is_cpu_time()
        && path.is_file()
        && let Ok(bytes) = std::fs::read(path)
    {
        let start = &bytes[..bytes.len().min(PREFIX_BYTES)];
        let is_document = matches!(detect(start, ""), None | Some(Format::Firefox))
            && matches!(Packing::of(start), None | Some(Packing::Gzip));
        if is_document && !nyquist_formats::is_recoded(start) {
            return Ok(bytes);
        }
    }
    let mut document = Vec::new();
    firefox::write(profile, WriteOptions { gzip: true, ..WriteOptions::default() }, &mut document)
        .map_err(|error| Failure::because("cannot convert the profile", &error))?;
    Ok(document)
}

/// The failure of a file of an unknown format, with hints.
fn unknown(path: &Path, start: &[u8]) -> Failure {
    if start.is_empty() {
        return Failure::new(format!(
            "cannot load {}: this is not a profile: the file is empty",
            path.display()
        ));
    }
    let failure = Failure::new(format!(
        "cannot load {}: this is not a profile of any format that is known",
        path.display()
    ));
    if !start.starts_with(b"\x7fELF") && !start.starts_with(b"#!") {
        return failure.hint(READ_FORMATS);
    }
    // A shell would search a name without a folder in PATH.
    let folder = if path.components().count() == 1 { "./" } else { "" };
    failure.hint(format!("to record a program: nyquist record {folder}{}", path.display()))
}

fn archive(path: &Path) -> Failure {
    Failure::new(format!("cannot load {}: it is an archive, and no profile", path.display())).hint(
        "if `perf archive` made it, put it into the folder of its perf.data and load the perf.data: the archive is unpacked automatically",
    )
}

/// The failure for a trace of Instruments, which is a folder that only Apple's own program can read.
fn trace(path: &Path) -> Failure {
    let path = path.display();
    Failure::new(format!("cannot load {path}: it is an Instruments trace; only an export of it can be read"))
        .hint(format!(
            "on the Mac: xcrun xctrace export --input '{path}' --output profile.xml --xpath \
             '/trace-toc/run[@number=\"1\"]/data/table[@schema=\"time-profile\"]'"
        ))
        .hint("then: nyquist load profile.xml")
}

/// The first bytes of a file. Later reads start at the beginning again.
fn start_of(mut file: &File) -> io::Result<Vec<u8>> {
    let start = prefix(file)?;
    file.rewind()?;
    Ok(start)
}

fn prefix(input: impl Read) -> io::Result<Vec<u8>> {
    let mut prefix = Vec::new();
    input.take(PREFIX_BYTES as u64).read_to_end(&mut prefix)?;
    Ok(prefix)
}

fn cannot_read(path: &Path, error: &io::Error) -> Failure {
    let failure = Failure::new(format!("cannot read {}: {}", path.display(), io_reason(error)));
    match error.kind() {
        // The user may not have typed this name, because it is the default.
        io::ErrorKind::NotFound if path == Path::new("profile.json.gz") => {
            failure.hint("record a program first: nyquist record -s ./app")
        }
        io::ErrorKind::IsADirectory if path.extension() == Some(OsStr::new("trace")) => trace(path),
        io::ErrorKind::IsADirectory => failure.hint("name a profile, such as profile.json.gz"),
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_format_says_what_is_read() {
        let hints = |path: &str, start: &[u8]| unknown(Path::new(path), start).hints;
        assert_eq!(hints("notes.txt", b"hello"), [READ_FORMATS]);
        assert_eq!(hints("app", b"\x7fELF\x02"), ["to record a program: nyquist record ./app"]);
        assert_eq!(hints("bin/run", b"#!/bin/sh"), ["to record a program: nyquist record bin/run"]);
    }
}
