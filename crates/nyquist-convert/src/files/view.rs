//! The files that a process sees at paths, and their owners.
//!
//! A build id identifies a file, but not its owner. Any user can give a file the build id of another file,
//! and, in their own mount namespace or root folder, also its path. So a known file is used only for
//! processes that see the same files at paths. Files with the same id but different owners are kept separate.

use crate::event::Pid;
use crate::files::opened::{Root, own_user, user_of};
use nyquist_system::{file_id, ownership};
use std::fs::File;
use std::path::Path;
use std::sync::OnceLock;

/// Which files are at which paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum MountView {
    /// The files that we see, too.
    #[default]
    Ours,
    /// The files below this mount and folder. The process itself may have chosen the mounts there.
    Other { mount: u64, folder: u64 },
}

/// A process's root folder, held open, and its view of files.
#[derive(Debug, Default)]
pub(crate) struct ProcessView {
    pub(crate) mounts: MountView,
    /// `None` if the process has ended, or may not be inspected.
    pub(crate) root: Option<Root>,
}

/// The users who can have made a file: its owner and, if only other processes see it, the user who controls
/// their view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileOwner {
    user: u32,
    mounts: MountView,
}

impl ProcessView {
    /// The current view of a process. The open root stays that of this view, whatever the process does later.
    pub(crate) fn of(pid: Pid) -> Self {
        static OURS: OnceLock<Option<MountView>> = OnceLock::new();
        let Some(root) = Root::of_process(pid) else { return Self::default() };
        let ours = *OURS.get_or_init(|| MountView::of(&Root::own()?));
        let mounts = MountView::of(&root).filter(|mounts| Some(*mounts) != ours).unwrap_or_default();
        Self { mounts, root: Some(root) }
    }
}

impl MountView {
    fn of(root: &Root) -> Option<Self> {
        root.mount().map(|(mount, folder)| Self::Other { mount, folder })
    }
}

impl FileOwner {
    /// The owner of a file that was found for a mapping of a process that sees these mounts.
    /// `is_here` is whether we see the file at its path, too.
    pub(crate) fn of(user: u32, is_here: bool, mounts: MountView) -> Self {
        Self { user, mounts: if is_here { MountView::Ours } else { mounts } }
    }

    /// The owner of data that is read from a process's memory, or is only claimed to be in it.
    pub(crate) fn of_process(pid: Pid, mounts: MountView) -> Self {
        Self { user: user_of(pid).unwrap_or(u32::MAX), mounts }
    }

    /// The owner of a process's description of its own code. Processes in other pid namespaces can have files
    /// of the same name.
    pub(crate) fn alone(pid: Pid) -> Self {
        Self { user: u32::MAX, mounts: MountView::Other { mount: u64::MAX, folder: pid.0.into() } }
    }

    /// Whether the file is trusted for all processes that see it at its path.
    pub(crate) fn is_trusted_for_all(self) -> bool {
        [0, own_user()].contains(&self.user)
    }
}

/// Whether we see an open file at this path, too.
pub(crate) fn is_here(file: &File, path: &str) -> bool {
    let here = Root::own().and_then(|root| root.open(Path::new(path)).ok());
    here.is_some_and(|here| is_same_file(&here.file, file))
}

/// Whether two open files are the same.
pub(crate) fn is_same_file(one: &File, other: &File) -> bool {
    file_id(one).ok() == file_id(other).ok()
}

/// Whether a process can have mapped a file that was found at a path. If the process's user controls the
/// files there, or has made a hard link, the file may be one that the process cannot read. `mapped` is the
/// mapped file, if the kernel shows it.
pub(crate) fn may_be_mapped_by(
    file: &File,
    mounts: MountView,
    pid: Pid,
    mapped: impl FnOnce() -> Option<File>,
) -> bool {
    ownership(file).is_ok_and(|of| {
        of.is_readable_by_all
            || (mounts == MountView::Ours && of.links == 1)
            || user_of(pid) == Some(of.user)
            || mapped().is_some_and(|mapped| is_same_file(&mapped, file))
    })
}

// Owners, mounts and links of files are those of Linux's `/proc` and of Unix.
#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_process_in_our_mounts_sees_what_we_see() {
        let own = ProcessView::of(Pid(std::process::id()));
        assert!(own.mounts == MountView::Ours && own.root.is_some());
        let gone = ProcessView::of(Pid(u32::MAX));
        assert!(gone.mounts == MountView::Ours && gone.root.is_none());
        let at = |folder: &str| MountView::of(&Root::at(Path::new(folder)).unwrap());
        assert!(at("/").is_some() && at("/") == at("/") && at("/") != at("/proc") && at("/") != at("/usr"));
    }

    #[test]
    fn who_has_made_what() {
        let own = Pid(std::process::id());
        assert_eq!(
            FileOwner::of_process(own, MountView::Ours),
            FileOwner { user: own_user(), mounts: MountView::Ours }
        );
        assert!(FileOwner::of_process(own, MountView::Ours).is_trusted_for_all());
        assert!(!FileOwner::of_process(Pid(u32::MAX), MountView::Ours).is_trusted_for_all());
        assert!(
            !FileOwner::alone(own).is_trusted_for_all() && FileOwner::alone(own) != FileOwner::alone(Pid(1))
        );
    }

    #[test]
    fn a_file_that_only_others_may_read_is_not_shown() {
        let path = std::env::temp_dir().join(format!("nyquist-view-{}", std::process::id()));
        std::fs::write(&path, "secret").unwrap();
        let file = File::open(&path).unwrap();
        // No process has this number.
        let (other, gone) = (MountView::Other { mount: 1, folder: 2 }, Pid(u32::MAX));
        let with_mode = |mode, view, pid| {
            file.set_permissions(std::fs::Permissions::from_mode(mode)).unwrap();
            may_be_mapped_by(&file, view, pid, || None)
        };
        assert!(with_mode(0o644, other, gone) && with_mode(0o600, MountView::Ours, gone));
        assert!(!with_mode(0o600, other, gone) && with_mode(0o600, other, Pid(std::process::id())));
        assert!(may_be_mapped_by(&file, other, gone, || file.try_clone().ok()), "it has it mapped");
        let second = path.with_extension("link");
        std::fs::hard_link(&path, &second).unwrap();
        assert!(!with_mode(0o600, MountView::Ours, gone), "it may be a link to somebody else's");
        let place = path.display().to_string();
        let owner = || FileOwner::of(own_user(), is_here(&file, &place), other);
        assert_eq!(owner(), FileOwner { user: own_user(), mounts: MountView::Ours });
        std::fs::remove_file(&path).unwrap();
        assert_eq!(owner(), FileOwner { user: own_user(), mounts: other });
        std::fs::remove_file(second).unwrap();
    }
}
