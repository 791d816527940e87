//! Marker files at paths of processes: growing text files, found by their mappings.

use super::opened::{FileDenied, Root, user_of};
use crate::event::{MappedFile, Mapping, Pid};
use nyquist_system::{FileFacts, Ownership};
use std::fs::File;
use std::path::Path;

/// Opens the marker file of a mapping, if reading it reveals nothing new to the user of the process. The kernel
/// reports its path, which has no links.
pub(crate) fn open(mapping: &Mapping, pid: Pid) -> Result<File, FileDenied> {
    let user = user_of(pid);
    let mut why = FileDenied::Absent;
    for root in [Root::of_process(pid), Root::own()].into_iter().flatten() {
        match root.open(Path::new(&mapping.path)) {
            Ok(found) => {
                let facts = FileFacts::of(&found.file).map_err(FileDenied::Unreadable)?;
                if may_read(&facts, &mapping.identity, user) {
                    return Ok(found.file);
                }
                why = FileDenied::Other;
            }
            Err(denied) if !why.deserves_message() => why = denied,
            Err(_) => {}
        }
    }
    Err(why)
}

/// Whether reading a file reveals nothing new to the program's user. It must be the file that the program has
/// mapped, or belong to that user, or belong to root and be readable by everyone.
fn may_read(facts: &FileFacts, mapped: &MappedFile, user: Option<u32>) -> bool {
    let is_mapped = match *mapped {
        MappedFile::Inode { major, minor, inode, .. } => {
            (device_numbers(facts.id.device), facts.id.number) == ((major, minor), inode)
        }
        _ => false,
    };
    let Ownership { user: owner, is_readable_by_all, .. } = facts.ownership;
    is_mapped || Some(owner) == user || (owner == 0 && is_readable_by_all)
}

#[cfg(target_os = "linux")]
fn device_numbers(device: u64) -> (u32, u32) {
    (rustix::fs::major(device), rustix::fs::minor(device))
}

/// No process of these systems is looked at for markers.
#[cfg(not(target_os = "linux"))]
fn device_numbers(_device: u64) -> (u32, u32) {
    (u32::MAX, u32::MAX)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_file_the_program_may_not_read_is_left_alone() {
        let path = std::env::temp_dir().join(format!("nyquist-marker-rights-{}", std::process::id()));
        fs::write(&path, b"").unwrap();
        let with_mode = |mode| {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            FileFacts::of(&File::open(&path).unwrap()).unwrap()
        };
        let facts = with_mode(0o600);
        let (user, other) = (facts.ownership.user, facts.ownership.user ^ 1);
        let inode = |inode| {
            let (major, minor) = device_numbers(facts.id.device);
            MappedFile::Inode { major, minor, inode, generation: 0 }
        };
        assert!(may_read(&facts, &MappedFile::Unknown, Some(user)));
        assert!(!may_read(&facts, &MappedFile::Unknown, Some(other)));
        assert!(!may_read(&facts, &MappedFile::Unknown, None));
        assert!(may_read(&facts, &inode(facts.id.number), Some(other)));
        assert!(!may_read(&facts, &inode(facts.id.number + 1), Some(other)));
        assert_eq!(may_read(&with_mode(0o604), &MappedFile::Unknown, Some(other)), user == 0);
        fs::remove_file(&path).unwrap();
    }
}
