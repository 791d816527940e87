//! Marker files of samply's protocol: growing text files, found by their mappings.

use std::io;

use nyquist_convert::event::{Event, Mapping, Pid, Tid, Timestamp};
use nyquist_convert::marker_file::Period;
use nyquist_convert::{marker_text, time_namespace};
use nyquist_system::HeldFile;

use super::ids::Ids;
use crate::linux::{now, target_access};

/// The maximum that is read of one file.
const MAX_BYTES: u64 = 1 << 30;

/// How much is read at a time.
const READ_SIZE: u64 = 1 << 20;

/// A text file of markers.
#[derive(Debug)]
pub(super) struct TextFile {
    pub(super) path: String,
    file: HeldFile,
    owner: (Pid, Tid),
    /// How far the program's clock is ahead of this process's.
    ahead_ns: i64,
    read: u64,
    /// Where reading ends: a line longer than a piece is invalid.
    most: u64,
    pub(super) unreadable: u64,
}

/// The file at the path is not the mapped one, and the program may lack the permission to read it.
#[derive(Debug)]
pub(super) struct FileMismatch;

/// The process and the thread whose markers a mapping contains, if its name is that of a marker file. The
/// thread id is the one in the program's namespace.
pub(super) fn owner(mapping: &Mapping) -> Option<(Pid, Tid)> {
    let (_, tid) = marker_text::owner_in_path(&mapping.path)?;
    Some((mapping.pid?, tid))
}

impl TextFile {
    /// Opens the file of a mapping. `None` if it does not exist.
    pub(super) fn of_mapping(
        mapping: &Mapping,
        (pid, tid): (Pid, Tid),
        ids: &mut Ids,
    ) -> Result<Option<Self>, FileMismatch> {
        // The program may be gone before the file is opened.
        let file = match target_access::targets().open_marker_file(mapping, pid) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(_) => return Err(FileMismatch),
        };
        Ok(Some(Self {
            path: mapping.path.clone(),
            file,
            owner: (pid, Tid(ids.thread(pid, tid.0))),
            ahead_ns: time_namespace::ahead_ns(pid, &target_access::targets()),
            read: 0,
            most: MAX_BYTES,
            unreadable: 0,
        }))
    }

    /// How many bytes of it were read.
    pub(super) fn position(&self) -> u64 {
        self.read
    }

    /// Reads the whole lines that were written since the last time; at the end of a recording, also a
    /// truncated one.
    pub(super) fn read(&mut self, since: Timestamp, last: bool, events: &mut Vec<Event>) {
        let len = self.file.current_len().unwrap_or(0).min(self.most);
        while self.read < len {
            let mut bytes = vec![0; (len - self.read).min(READ_SIZE) as usize];
            if self.file.read_exact_at(&mut bytes, self.read).is_err() {
                return;
            }
            let lines = bytes.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
            let whole = if last { Some(lines.unwrap_or(bytes.len())) } else { lines };
            let Some(whole) = whole else {
                if bytes.len() as u64 == READ_SIZE {
                    (self.most, self.unreadable) = (self.read, self.unreadable + 1);
                }
                return;
            };
            // Taken only now, because the program has continued to write.
            let period = Period { since, until: now(), ahead_ns: self.ahead_ns };
            self.unreadable += marker_text::decode(&bytes[..whole], self.owner, period, events);
            self.read += whole as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_convert::event::MappedFile;
    use nyquist_object::{Avma, FileOffset};
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};

    fn mapping(path: &Path, identity: MappedFile) -> Mapping {
        Mapping {
            pid: Some(Pid(std::process::id())),
            start: Avma(0),
            len: 4096,
            offset: FileOffset(0),
            path: path.display().to_string(),
            identity,
        }
    }

    fn opens(path: &Path) -> Result<bool, FileMismatch> {
        let mapping = mapping(path, MappedFile::Unknown);
        let owner = owner(&mapping).unwrap();
        TextFile::of_mapping(&mapping, owner, &mut Ids::new()).map(|file| file.is_some())
    }

    fn folder(test: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("nyquist-text-{test}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder.canonicalize().unwrap()
    }

    #[test]
    fn links_are_not_followed() {
        let folder = folder("links");
        let file = folder.join("marker-1.txt");
        fs::write(&file, b"1 2 secret\n").unwrap();
        assert!(matches!(opens(&file), Ok(true)));
        symlink(&file, folder.join("marker-2.txt")).unwrap();
        assert!(matches!(opens(&folder.join("marker-2.txt")), Err(FileMismatch)));
        symlink(&folder, folder.join("link")).unwrap();
        assert!(matches!(opens(&folder.join("link/marker-1.txt")), Err(FileMismatch)));
        assert!(matches!(opens(&folder.join("marker-3.txt")), Ok(false)));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_line_without_an_end_is_read_once() {
        let folder = folder("line");
        let path = folder.join("marker-1.txt");
        fs::File::create(&path).unwrap().set_len(MAX_BYTES).unwrap();
        let mapping = mapping(&path, MappedFile::Unknown);
        let owner = owner(&mapping).unwrap();
        let mut file = TextFile::of_mapping(&mapping, owner, &mut Ids::new()).unwrap().unwrap();
        for _ in 0..2 {
            file.read(Timestamp(0), false, &mut Vec::new());
        }
        assert_eq!((file.read, file.most, file.unreadable), (0, 0, 1));
        fs::remove_dir_all(folder).unwrap();
    }
}
