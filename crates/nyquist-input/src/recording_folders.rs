//! The folders with the files that came with a recording.

use crate::note::Note;
use crate::observer::ReadObserver;
use nyquist_download::PerfArchive;
use std::path::{Path, PathBuf};

/// The folders of files that came with a recording: its own folder, and that of its archive, which is unpacked
/// into a folder below `archives` on first use.
pub fn recording_folders(
    recording: &Path,
    archives: Option<&Path>,
    observer: &dyn ReadObserver,
) -> Vec<PathBuf> {
    let archive = archives.and_then(|archives| unpacked(recording, archives, observer));
    own_folder(recording).into_iter().chain(archive).collect()
}

/// The recording's own folder. A pipe has none.
pub(crate) fn own_folder(recording: &Path) -> Option<PathBuf> {
    let own = recording.parent().filter(|_| recording != Path::new("-"))?;
    Some(if own == Path::new("") { PathBuf::from(".") } else { own.to_owned() })
}

/// The folder of the binaries that `perf archive` has packed, if there is such an archive.
fn unpacked(recording: &Path, archives: &Path, observer: &dyn ReadObserver) -> Option<PathBuf> {
    let archive = PerfArchive::of_recording(recording, archives)?;
    if !archive.is_unpacked() {
        let path = || archive.path().to_owned();
        observer.note(Note::Unpacking { archive: path() });
        if let Err(error) = archive.unpack() {
            observer.note(Note::NotUnpacked { archive: path(), error });
        }
    }
    Some(archive.folder().to_owned())
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
