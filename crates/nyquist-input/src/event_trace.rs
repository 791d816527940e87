//! Traces of Windows (.etl): converts them, and looks up names.

use crate::counted_file::CountedFile;
use crate::error::InputError;
use crate::lookup::{import_with_lookup, look_up_recording, symbolicator};
use crate::note::{LostAmount, Note};
use crate::options::ReadOptions;
use crate::recording_folders::recording_folders;
use nyquist_convert::etw::{EtwError, EtwImported, EtwOptions, import};
use nyquist_convert::{Progress, name_by_address};
use nyquist_etw::file::{FileError, FileReader};
use nyquist_profile::Profile;
use std::io::{Read, Seek};
use std::path::Path;
use std::sync::Arc;

/// Reads a trace, looks up names, and reports to the observer which parts are missing.
pub(crate) fn read(
    file: impl Read + Seek,
    path: &Path,
    options: ReadOptions<'_>,
) -> Result<Profile, InputError> {
    let failed = |source: EtwError| InputError::Trace { path: path.to_owned(), source };
    let (finders, observer, no_symbols) = (options.finders, options.observer, options.no_symbols);
    // It is read twice: for what it says of the whole, and for its events.
    let file = CountedFile::new(file, 2, observer).map_err(|error| failed(FileError::from(error).into()))?;
    let reader = FileReader::open(file).map_err(|error| failed(error.into()))?;
    let folders = recording_folders(path, None);
    let progress = Arc::new(Progress::default());
    let finder = finders.finder(&folders, Some(&progress));
    let mut symbolicator = symbolicator(&finder);
    let imported = import_with_lookup(&mut symbolicator, no_symbols, |sender| {
        let file_name = || path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let options = EtwOptions {
            finder: finders.finder(&folders, None),
            selection: options.selection,
            name: options.name.unwrap_or_else(file_name),
            shape: options.shape,
            sender,
        };
        import(reader, options).map_err(failed)
    });
    let EtwImported { finished, counts, notes } = imported?;
    for note in notes {
        observer.note(Note::Incomplete(note));
    }
    if counts.with_stack == 0 && counts.without_stack > 0 {
        observer.note(Note::NoStacks);
    }
    if finished.statistics.lost > 0 {
        observer.note(Note::Lost(LostAmount::Events(finished.statistics.lost)));
    }
    if no_symbols {
        return Ok(name_by_address(finished.profile));
    }
    Ok(look_up_recording(finished.profile, &finished.libs, &mut symbolicator, &progress, observer))
}
