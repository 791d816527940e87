//! Marker files of samply's protocol: growing text files, found by their mappings.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use nyquist_convert::event::{Event, MappedFile, Mapping, Pid, Tid, Timestamp};
use nyquist_convert::marker_file::Period;
use nyquist_convert::{marker_text, time_namespace};

use super::ids::Ids;
use crate::linux::sys::beneath::{PathHandle, Status, at_once};
use crate::linux::{now, proc};

/// The maximum that is read of one file.
const MAX_BYTES: u64 = 1 << 30;

/// How much is read at a time.
const READ_SIZE: u64 = 1 << 20;

/// A text file of markers.
#[derive(Debug)]
pub(super) struct TextFile {
    pub(super) path: String,
    file: File,
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
        // The path belongs to the program, which has its own root, and the program may be gone before the
        // file is opened.
        let own_root = format!("/proc/{}/root", pid.0);
        let roots = [Path::new(&own_root), Path::new("/")];
        let user = proc::effective_user(pid.0);
        let mut verdict = Ok(None);
        for root in roots {
            // The kernel reports this path, and it contains no links.
            let Ok(found) = PathHandle::under_root(root, Path::new(&mapping.path)) else { continue };
            if !may_read(&found.status, &mapping.identity, user) {
                verdict = Err(FileMismatch);
                continue;
            }
            let Ok(file) = found.open(&at_once(false)) else { continue };
            let owner = (pid, Tid(ids.thread(pid, tid.0)));
            return Ok(Some(Self {
                path: mapping.path.clone(),
                file,
                owner,
                ahead_ns: time_namespace::ahead_ns(pid.0),
                read: 0,
                most: MAX_BYTES,
                unreadable: 0,
            }));
        }
        verdict
    }

    /// How many bytes of it were read.
    pub(super) fn position(&self) -> u64 {
        self.read
    }

    /// Reads the whole lines that were written since the last time; at the end of a recording, also a
    /// truncated one.
    pub(super) fn read(&mut self, since: Timestamp, last: bool, events: &mut Vec<Event>) {
        let len = self.file.metadata().map_or(0, |metadata| metadata.len()).min(self.most);
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

/// Whether reading a file reveals nothing new to the program's user. It must be the file that the program has
/// mapped, or belong to that user, or belong to root and be readable by everyone.
fn may_read(status: &Status, mapped: &MappedFile, user: Option<u32>) -> bool {
    let is_mapped = match *mapped {
        MappedFile::Inode { major, minor, inode, .. } => {
            (status.device, status.inode) == ((major, minor), inode)
        }
        _ => false,
    };
    let is_theirs = Some(status.owner) == user;
    let is_public = status.owner == 0 && status.permissions() & 0o004 != 0;
    status.is_file() && (is_mapped || is_theirs || is_public)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_object::{Avma, FileOffset};
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

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
        assert!(matches!(opens(&folder.join("link/marker-1.txt")), Ok(false)));
        assert!(matches!(opens(&folder.join("marker-3.txt")), Ok(false)));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_the_program_may_not_read_is_left_alone() {
        let folder = folder("rights");
        let file = folder.join("marker-1.txt");
        fs::write(&file, b"").unwrap();
        fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
        let status = PathHandle::under_root(Path::new("/"), &file).unwrap().status;
        let (user, other) = (status.owner, status.owner ^ 1);
        let inode = |inode| {
            let (major, minor) = status.device;
            MappedFile::Inode { major, minor, inode, generation: 0 }
        };
        assert!(may_read(&status, &MappedFile::Unknown, Some(user)));
        assert!(!may_read(&status, &MappedFile::Unknown, Some(other)));
        assert!(!may_read(&status, &MappedFile::Unknown, None));
        assert!(may_read(&status, &inode(status.inode), Some(other)));
        assert!(!may_read(&status, &inode(status.inode + 1), Some(other)));
        fs::set_permissions(&file, PermissionsExt::from_mode(0o604)).unwrap();
        let status = PathHandle::under_root(Path::new("/"), &file).unwrap().status;
        assert_eq!(may_read(&status, &MappedFile::Unknown, Some(other)), user == 0);
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
