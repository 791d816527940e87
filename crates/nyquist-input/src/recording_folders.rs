//! The folders with the files that came with a recording.

use crate::note::Note;
use crate::observer::ReadObserver;
use crate::requested_files::requested_files;
use nyquist_download::PerfArchive;
use nyquist_perf::file::FileReader;
use std::path::{Path, PathBuf};

/// The folders of files that came with a recording: its own folder, and that of its archive below `archives`, if
/// that was unpacked.
pub fn recording_folders(recording: &Path, archives: Option<&Path>) -> Vec<PathBuf> {
    let archive = archives.and_then(|archives| PerfArchive::of_recording(recording, archives));
    let archive = archive.map(|archive| archive.folder().to_owned());
    own_folder(recording).into_iter().chain(archive).collect()
}

/// The recording's own folder. A pipe has none.
pub(crate) fn own_folder(recording: &Path) -> Option<PathBuf> {
    let own = recording.parent().filter(|_| recording != Path::new("-"))?;
    Some(if own == Path::new("") { PathBuf::from(".") } else { own.to_owned() })
}

/// Unpacks the archive beside a recording, if there is one and that was not done before: the files of the recording's
/// build ids.
pub(crate) fn unpack_archive(
    recording: &Path,
    reader: &FileReader,
    archives: Option<&Path>,
    observer: &dyn ReadObserver,
) {
    let archive = archives.and_then(|archives| PerfArchive::of_recording(recording, archives));
    let Some(archive) = archive else { return };
    let requested = requested_files(reader);
    if !archive.is_unpacked(&requested) {
        let path = archive.path().to_owned();
        observer.note(Note::Unpacking { archive: path.clone() });
        if let Err(error) = archive.unpack(&requested) {
            observer.note(Note::NotUnpacked { archive: path, error });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_in_a_folder() {
        let check = |path: &str, expected: Option<&str>| {
            assert_eq!(own_folder(Path::new(path)).as_deref(), expected.map(Path::new), "{path}");
        };
        check("/a/perf.data", Some("/a"));
        check("perf.data", Some("."));
        check("-", None);
    }
}
