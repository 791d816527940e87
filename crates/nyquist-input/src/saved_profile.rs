//! Saved profiles: those of the Firefox Profiler, and those of other tools.

use crate::error::{InputError, UnknownContent};
use crate::input_file::UnpackedInput;
use crate::note::Note;
use crate::options::ReadOptions;
use crate::source::Source;
use nyquist_formats::{
    Format, ImportedProfile, ReadError, is_recoded, may_be_json, plain_text, read_in_pieces, read_requested,
};
use nyquist_profile::{Profile, firefox};
use std::borrow::Cow;
use std::io::{self, BufReader, Read as _};
use std::path::{Path, PathBuf};

/// Reads a saved profile, or the values of another tool's file that the options select.
pub(crate) fn read(input: UnpackedInput, options: &ReadOptions<'_>) -> Result<Profile, InputError> {
    let value = match options.events.as_slice() {
        [event] if input.has_values() => Some(event.as_str()),
        _ => None,
    };
    let UnpackedInput { path, source, format, .. } = input;
    // Unknown JSON gets the error of the most common format.
    let Some(format) = format.filter(|format| *format != Format::Firefox) else {
        let profile = read_firefox(&path, source, format.is_some())?;
        return of_event(&path, profile, value);
    };
    #[cfg(feature = "parquet")]
    if let Source::Tables(tables) = &source {
        return imported(crate::tables::read(tables, value, options), path, options);
    }
    let is_in_pieces =
        format.is_read_in_pieces() && is_plain(&source).map_err(|error| cannot_read(&path, error))?;
    let read = if is_in_pieces {
        let bytes = source.bytes().map_err(|error| cannot_read(&path, error))?;
        read_in_pieces(format, BufReader::with_capacity(PIECE, bytes), value)
    } else {
        let bytes = all_bytes(source).map_err(|error| cannot_read(&path, error))?;
        read_requested(format, &bytes, value, &options.labels)
    };
    imported(read, path, options)
}

/// The imported profile, with its names demangled.
fn imported(
    read: Result<ImportedProfile, ReadError>,
    path: PathBuf,
    options: &ReadOptions<'_>,
) -> Result<Profile, InputError> {
    let imported = read.map_err(|source| InputError::Import { path, source })?;
    for note in imported.notes {
        options.observer.note(Note::LeftOut(note));
    }
    Ok(demangled(imported.profile))
}

/// Reads a profile of the Firefox Profiler, also one whose text has another encoding than UTF-8.
fn read_firefox(path: &Path, source: Source, is_certain: bool) -> Result<Profile, InputError> {
    let start = source.start().map_err(|error| cannot_read(path, error))?;
    if !is_certain && !may_be_json(&start) {
        return Err(InputError::UnknownFormat { path: path.to_owned(), content: UnknownContent::of(&start) });
    }
    let read = if is_recoded(&start) {
        let bytes = all_bytes(source).map_err(|error| cannot_read(path, error))?;
        let text =
            plain_text(&bytes).map_err(|source| InputError::Import { path: path.to_owned(), source })?;
        firefox::read(&*text)
    } else {
        firefox::read(source.bytes().map_err(|error| cannot_read(path, error))?)
    };
    read.map_err(|source| InputError::Firefox { path: path.to_owned(), source })
}

/// How much of a text is read at once.
const PIECE: usize = 1 << 18;

/// Whether a text is neither compressed nor in another encoding.
fn is_plain(source: &Source) -> io::Result<bool> {
    Ok(source.packing()?.is_none() && !is_recoded(&source.start()?))
}

fn all_bytes(source: Source) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.bytes()?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn cannot_read(path: &Path, source: io::Error) -> InputError {
    InputError::Read { path: path.to_owned(), source }
}

/// The profile with demangled names, because files of other tools often have mangled ones.
fn demangled(profile: Profile) -> Profile {
    profile.with_functions_renamed(|name| match nyquist_symbols::demangle(name) {
        Cow::Borrowed(_) => None,
        Cow::Owned(demangled) => Some(demangled),
    })
}

/// The profile with an event instead of CPU time, if one is requested.
fn of_event(path: &Path, profile: Profile, event: Option<&str>) -> Result<Profile, InputError> {
    let Some(event) = event else { return Ok(profile) };
    let known = profile.recorded_events().into_iter().map(str::to_owned).collect();
    let error = InputError::NoSuchEvent { path: path.to_owned(), event: event.to_owned(), known };
    profile.with_event_as_samples(event).ok_or(error)
}
