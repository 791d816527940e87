//! Recordings of perf: converts them, and looks up names.

use crate::error::InputError;
use crate::input_file::PackedFile;
use crate::lookup::{import_with_lookup, look_up_recording, symbolicator};
use crate::note::{LostAmount, MissingFile, Note};
use crate::observer::ReadObserver;
use crate::options::ReadOptions;
use crate::recording_folders::{own_folder, recording_folders, unpack_archive};
use crate::source::Source;
use nyquist_convert::perf_data::{EventUse, ImportOptions, ImportedProfile, import};
use nyquist_convert::{LibSource, Libs, Progress, name_by_address};
use nyquist_perf::file::FileReader;
use nyquist_profile::Profile;
use nyquist_symbols::{Finder, KernelFiles};
use nyquist_system::ownership;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// Reads a recording, looks up names, and reports to the observer which parts are missing. If the event that is read
/// by default has no samples, the file is read again, for the first event that has some.
pub(crate) fn read(
    (reader, again): (FileReader, Option<Source>),
    (path, packed): (&Path, Option<PackedFile>),
    kernel: Option<KernelFiles>,
    options: &ReadOptions<'_>,
) -> Result<Profile, InputError> {
    let (finders, observer, no_symbols) = (options.finders, options.observer, options.no_symbols);
    unpack_archive(path, &reader, options.archives.as_deref(), observer);
    let folders = recording_folders(path, options.archives.as_deref());
    let progress = Arc::new(Progress::default());
    let finder = finders.finder(&folders, Some(&progress)).with_kernel_files(kernel);
    let mut symbolicator = symbolicator(&finder);
    let (files, of_all) = (reader.files(), options.events.is_empty());
    let mut read = |reader, events: Vec<String>| {
        import_with_lookup(&mut symbolicator, no_symbols, |sender| {
            let file = packed.as_ref().map_or(files.main(), |packed| packed.0.as_ref());
            let options = import_options(path, file, options, finders.finder(&folders, None));
            Ok(import(reader, ImportOptions { sender, events, ..options })?)
        })
    };
    let mut imported = read(reader, options.events.clone())?;
    let instead = if of_all { instead(&imported.events) } else { None };
    if let (Some((shown, empty)), Some(Ok(reader))) = (instead, again.map(Source::recording)) {
        imported = read(reader, vec![shown.clone()])?;
        observer.note(Note::EventInstead { shown, empty });
    }
    let ImportedProfile { finished, events, notes, other_machine } = imported;
    for note in notes {
        observer.note(Note::Incomplete(note));
    }
    note_events(events, observer);
    if finished.statistics.lost > 0 {
        observer.note(Note::Lost(LostAmount::Records(finished.statistics.lost)));
    }
    note_missing_files(&finished.profile, &finished.libs, other_machine, observer);
    if no_symbols {
        return Ok(name_by_address(finished.profile));
    }
    Ok(look_up_recording(finished.profile, &finished.libs, &mut symbolicator, &progress, observer))
}

/// The first event that has samples, and the event that is read by default, if that has none.
fn instead(events: &[EventUse]) -> Option<(String, String)> {
    if events.iter().any(|event| event.used && event.samples > 0) {
        return None;
    }
    let shown = events.iter().find(|event| event.samples > 0)?;
    let empty = events.iter().find(|event| event.used)?;
    Some((shown.name.clone(), empty.name.clone()))
}

/// The options for a recording. `file` is what was opened: its owner decides whose side files are believed.
fn import_options(
    path: &Path,
    file: Option<&File>,
    options: &ReadOptions<'_>,
    finder: Finder,
) -> ImportOptions {
    let modified = file.and_then(|file| file.metadata().ok()?.modified().ok());
    let saved = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    ImportOptions {
        finder,
        selection: options.selection.clone(),
        events: Vec::new(),
        name: options.name.clone(),
        architecture: options.architecture,
        aux_folders: options.aux_folders.iter().cloned().chain(own_folder(path)).collect(),
        owner: file.and_then(|file| ownership(file).ok()).map(|owner| owner.user),
        side_files: options.side_files.clone(),
        process_memory: options.process_memory,
        saved_ns: saved.map(|time| time.as_nanos() as u64),
        shape: options.shape,
        threads: None,
        sender: None,
    }
}

/// Reports which events are not shown.
fn note_events(events: Vec<EventUse>, observer: &dyn ReadObserver) {
    for EventUse { name, samples, .. } in events.into_iter().filter(|event| !event.used && event.samples > 0)
    {
        observer.note(Note::EventNotShown { name, samples });
    }
}

/// Reports which files are missing. Without them, stacks end early and functions have no names.
fn note_missing_files(profile: &Profile, libs: &Libs, machine: Option<String>, observer: &dyn ReadObserver) {
    let missing = libs.sources().iter().filter_map(|(lib, source)| match source {
        LibSource::File(request) if request.alternatives.is_empty() => Some(*lib),
        LibSource::Unknown => Some(*lib),
        _ => None,
    });
    let files = missing.map(|lib| {
        let lib = profile.lib(lib);
        MissingFile { path: lib.path.clone(), build_id: lib.code_id.clone() }
    });
    let files: Vec<_> = files.collect();
    if !files.is_empty() {
        observer.note(Note::MissingFiles { machine, files });
    }
}
