//! Input of profiles: files are opened with the user's rights, and read under the limit of memory.

mod failure;
mod notes;
mod options;
mod progress;
mod reader;

pub(crate) use progress::ReadReporter;

use crate::args::{FilterArgs, RecordingArgs, SymbolArgs};
use crate::failure::Failure;
use crate::folders::UserFolders;
use crate::identity::{self, Rights};
use crate::memory;
use crate::printer::Printer;
use crate::source_paths::{DiskPaths, name_specially};
use nyquist_input::{InputError, InputFile, recording_folders};
use nyquist_profile::Profile;
use nyquist_symbols::ProvidedAnswers;
use reader::Reader;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Reads a profile for a command that shows functions. Missing names are looked up in the files on this
/// machine that have the recorded identities. Source files get their paths on this disk.
pub(crate) fn read(
    path: &PathBuf,
    filter: &FilterArgs,
    symbols: &SymbolArgs,
    printer: Printer,
) -> Result<Profile, Failure> {
    let recording = of_samples(filter);
    let mut profile = Reader { recording: &recording, symbols, printer }.read_named(open(path)?)?;
    DiskPaths::of_user().name(&mut profile);
    Ok(profile)
}

/// Reads several profiles, as [`read`] does. All files are opened before any is read.
pub(crate) fn read_all<'a>(
    paths: impl IntoIterator<Item = &'a PathBuf>,
    filter: &FilterArgs,
    symbols: &SymbolArgs,
    printer: Printer,
) -> Result<Vec<Profile>, Failure> {
    let (recording, disk_paths) = (of_samples(filter), DiskPaths::of_user());
    let reader = Reader { recording: &recording, symbols, printer };
    let read = |opened: InputFile| {
        let mut profile = reader.read_named(opened)?;
        disk_paths.name(&mut profile);
        Ok(profile)
    };
    open_all(paths)?.into_iter().map(read).collect()
}

/// The options for reading a file if an event, or samples with labels, are requested.
fn of_samples(filter: &FilterArgs) -> RecordingArgs {
    RecordingArgs {
        event: filter.event.iter().cloned().collect(),
        label: filter.label.clone(),
        ..RecordingArgs::default()
    }
}

/// Reads a profile with its names, and the requested part of a recording. Source files are named as in the
/// Firefox Profiler.
pub(crate) fn read_as(
    path: &PathBuf,
    recording: &RecordingArgs,
    symbols: &SymbolArgs,
    printer: Printer,
) -> Result<Profile, Failure> {
    let mut profile = Reader { recording, symbols, printer }.read_named(open(path)?)?;
    name_specially(&mut profile);
    Ok(profile)
}

/// The same without looking up the missing names of a saved profile. Also returns the file, if it is a regular one.
pub(crate) fn read_as_saved(
    path: &PathBuf,
    recording: &RecordingArgs,
    symbols: &SymbolArgs,
    printer: Printer,
) -> Result<(Profile, Option<File>), Failure> {
    let opened = open(path)?;
    let file = opened.regular_file();
    let mut profile = Reader { recording, symbols, printer }.read(opened)?;
    name_specially(&mut profile);
    Ok((profile, file))
}

/// Opens files, and gives up all rights that the user does not have. A file that only root can read is opened
/// by root, but its contents are read without root's rights.
fn open_all<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Result<Vec<InputFile>, Failure> {
    let opened = paths.into_iter().map(|path| open_one(path)).collect::<Result<_, _>>()?;
    identity::give_up_privileges()?;
    Ok(opened)
}

/// Opens a file as [`open_all`] does.
fn open(path: &PathBuf) -> Result<InputFile, Failure> {
    open_all([path])?.pop().ok_or_else(|| Failure::new("no file is open"))
}

fn open_one(path: &Path) -> Result<InputFile, Failure> {
    InputFile::check_name(path)?;
    let (opened, _) = Rights::to_open(|| InputFile::open(path))
        .map_err(|source| InputError::Read { path: path.to_owned(), source })?;
    // With all rights of this process.
    Ok(opened.with_kernel_files())
}

/// Adds the folders of files that came with a recording that was read: its own folder, and that of its archive.
pub(crate) fn with_its_folders(path: &Path, symbols: &SymbolArgs) -> SymbolArgs {
    let archives = UserFolders::of_user().archives();
    let folders = recording_folders(path, archives.as_deref());
    options::with_folders(symbols, folders)
}

/// The symbols that samply has saved in a file beside a profile, if there is one.
pub(crate) fn samply_symbols(path: &Path, symbols: &SymbolArgs, printer: Printer) -> Option<ProvidedAnswers> {
    let memory = memory::side_files(symbols.max_memory).most();
    nyquist_input::samply_symbols(path, memory, &ReadReporter::new(printer))
}
