//! Opens the file of a mapping. It must be the file that was mapped, and is looked for first where its
//! process sees it.

use super::memfd;
use crate::event::{MappedFile, Mapping, Pid};
use crate::files::identity::{has_identity, without_deleted};
use crate::files::opened::{FileDenied, OpenedFile, Root, open_regular, own_user, user_of};
use crate::files::view::{MountView, ProcessView, is_same_file, may_be_mapped_by};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Opens the file of a mapping, and looks first where the process itself sees it. A file that is not the one
/// that was mapped is not used. The kernel reports the path without links. So if a link is on the path now,
/// it leads to another file.
pub(crate) fn open_mapped(mapping: &Mapping, pid: Pid, seen: &ProcessView) -> Option<File> {
    if !cfg!(target_os = "linux") {
        // All processes see the same files at paths.
        let file = open_regular(Path::new(&mapping.path)).ok()?;
        return has_identity(&file, &mapping.identity).then_some(file);
    }
    if memfd::is_name(&mapping.path) {
        return memfd::open_mapped(mapping, pid);
    }
    let is_it = |file: &File| has_identity(file, &mapping.identity);
    let path = Path::new(without_deleted(&mapping.path));
    let mapped = || open_regular(&kernel_link(mapping, pid)).ok();
    let at_path = |root: &Root, mounts| {
        let file = root.open(path).ok()?.file;
        (is_it(&file) && may_be_mapped_by(&file, mounts, pid, mapped)).then_some(file)
    };
    // Whether the link shows the same path. There, only other users than the process's own can have put
    // another file.
    let is_named = || {
        let shown = fs::read_link(kernel_link(mapping, pid)).unwrap_or_default();
        seen.mounts != MountView::Ours
            || shown.to_str().is_none_or(|shown| Path::new(without_deleted(shown)) == path)
    };
    // `/proc/PID/exe` can be opened without privileges. It is used only for mappings of known identity,
    // because others may be of another file.
    let program = || open_regular(Path::new(&format!("/proc/{}/exe", pid.0))).ok();
    let seen = seen.root.as_ref().and_then(|root| at_path(root, seen.mounts));
    seen.or_else(|| mapped().filter(|file| is_it(file) && is_named()))
        .or_else(|| at_path(&Root::own()?, MountView::Ours))
        .or_else(|| program().filter(|file| mapping.identity != MappedFile::Unknown && is_it(file)))
}

/// The kernel's link to a mapped file, which also works if the file was deleted or replaced. It needs a
/// privilege.
fn kernel_link(mapping: &Mapping, pid: Pid) -> PathBuf {
    let end = mapping.start.0.saturating_add(mapping.len);
    PathBuf::from(format!("/proc/{}/map_files/{:x}-{end:x}", pid.0, mapping.start.0))
}

/// Opens a jitdump that a process of this user, if it is known, maps. The file must be the mapped one, and be
/// trusted.
pub(crate) fn open_mapped_dump(
    mapping: &Mapping,
    pid: Pid,
    user: Option<u32>,
    seen: &ProcessView,
) -> Result<OpenedFile, FileDenied> {
    // Both are compared by `stat`, because on stacked file systems the device of the mapping differs.
    let mapped = open_regular(&kernel_link(mapping, pid)).ok();
    let is_it = |file: &File| {
        has_identity(file, &mapping.identity)
            && mapped.as_ref().is_none_or(|mapped| is_same_file(mapped, file))
    };
    let path = Path::new(without_deleted(&mapping.path));
    let mut why = FileDenied::Absent;
    let mut found = None;
    for root in [seen.root.as_ref(), Root::own().as_ref()].into_iter().flatten() {
        match root.open(path) {
            Ok(file) if is_it(&file.file) => {
                found = Some(file);
                break;
            }
            Ok(_) if !why.deserves_message() => why = FileDenied::Other,
            Err(denied) if !why.deserves_message() => why = denied,
            _ => {}
        }
    }
    let deleted = || mapped.as_ref().and_then(|file| file.try_clone().ok()).filter(is_it);
    let found = found.or_else(|| deleted().map(OpenedFile::without_place)).ok_or(why)?;
    found.trusted(&[user_of(pid).or(user).unwrap_or_else(own_user)])
}
