//! The folder that receives the files of a command: its markers, or its allocations.
//!
//! It is in the profiler's own mount namespace and is held open. Whatever the command's user does with its
//! path later, only files in that very folder are read and removed.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd as _, RawFd};
use std::os::unix::fs::fchown;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::folder_reader::{FolderReader, MAX_FILES, RingState};
use super::held_folder::{HeldFolder, MAX_ENTRIES};
use super::stale;
use crate::linux::now;
use crate::linux::sys::beneath::{self, PathHandle, at_once};
use crate::linux::sys::users;
use crate::linux::sys::watch::FolderWatch;

/// Where the folder is made: in memory if possible, because the kernel writes mappings of a disk file back
/// again and again.
const PLACES: [&str; 3] = ["/dev/shm", "/tmp", "/var/tmp"];

/// A scan that takes longer than this has found more files than programs make.
const QUICK: Duration = Duration::from_millis(1);

/// After such a scan, scanning pauses for this many times its duration.
const PAUSES: u32 = 16;

/// The folder.
#[derive(Debug)]
pub(in crate::linux) struct MarkerFolder {
    path: PathBuf,
    held: HeldFolder,
    owner: u32,
    /// Signals the first file; `None` if no watch is available.
    watch: Option<FolderWatch>,
    /// Whether the folder has a file.
    has_files: bool,
    /// The names of the files that were checked.
    seen: HashSet<OsString>,
    /// When to scan next.
    next_scan: Instant,
}

impl MarkerFolder {
    /// Makes a folder for a single user.
    pub(in crate::linux) fn create(owner: Option<(u32, u32)>) -> io::Result<Self> {
        let mut failure = io::Error::from(io::ErrorKind::NotFound);
        for place in PLACES {
            match Self::create_in(Path::new(place), owner) {
                Ok(folder) => return Ok(folder),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    fn create_in(place: &Path, owner: Option<(u32, u32)>) -> io::Result<Self> {
        static FOLDERS: AtomicU32 = AtomicU32::new(0);
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}{}-{number}-{}", stale::PREFIX, std::process::id(), now().0);
        let held_place = beneath::folder(place)?;
        stale::remove(&held_place);
        beneath::make_folder(held_place.as_fd(), name.as_ref())?;
        let held = HeldFolder::new(held_place, name.as_ref())?;
        if held.status.owner != users::effective() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        // While this lock is held, no other recorder takes the folder for that of a dead recorder.
        held.folder.try_lock()?;
        let owner = owner.filter(|(uid, _)| *uid != held.status.owner);
        if let Some((uid, gid)) = owner {
            fchown(&held.folder, Some(uid), Some(gid))?;
        }
        Ok(Self {
            path: place.join(&name),
            owner: owner.map_or(held.status.owner, |(uid, _)| uid),
            watch: FolderWatch::of(&held.inner_path()).ok(),
            has_files: false,
            held,
            seen: HashSet::new(),
            next_scan: Instant::now(),
        })
    }

    pub(in crate::linux) fn path(&self) -> &Path {
        &self.path
    }

    /// A descriptor that becomes readable with the first file, while there is none. Most programs never make
    /// one.
    pub(in crate::linux) fn awaited(&mut self) -> Option<RawFd> {
        self.has_files |= self.watch.as_ref().is_none_or(FolderWatch::has_changed);
        self.watch.as_ref().filter(|_| !self.has_files).map(FolderWatch::descriptor)
    }

    /// Removes files that are over, and scans for those that were made since the last time. Skips the scan after a slow
    /// one, unless it is the last one, because a program can fill the folder with files that never become rings.
    pub(in crate::linux) fn scan<R: FolderReader>(&mut self, rings: &mut R, last: bool) {
        for name in rings.over() {
            let _ = beneath::remove_file(self.held.folder.as_fd(), &name);
            self.seen.remove(&name);
        }
        let began = Instant::now();
        if self.awaited().is_some() || (began < self.next_scan && !last) {
            return;
        }
        self.take_all(rings);
        let took = began.elapsed();
        if took > QUICK {
            self.next_scan = Instant::now() + took * PAUSES;
        }
    }

    fn take_all<R: FolderReader>(&mut self, rings: &mut R) {
        for name in self.held.names().take(MAX_FILES) {
            let is_marker_file =
                Path::new(&name).extension().is_some_and(|extension| extension == R::EXTENSION);
            if !is_marker_file || self.seen.len() >= MAX_FILES || self.seen.contains(&name) {
                continue;
            }
            if self.take(&name, rings) == RingState::Settled {
                self.seen.insert(name);
            }
        }
    }

    /// Takes a file. It must belong to the owner and must not be a link, because it is written to.
    fn take<R: FolderReader>(&self, name: &OsStr, rings: &mut R) -> RingState {
        let found = match PathHandle::in_folder(self.held.folder.as_fd(), name) {
            Ok(found) => found,
            Err(error) if matches!(error.raw_os_error(), Some(libc::ELOOP | libc::EXDEV)) => {
                rings.refuse();
                return RingState::Settled;
            }
            Err(_) => return RingState::NotYet,
        };
        let status = found.status;
        let is_own = status.is_file()
            && status.links == 1
            && status.owner == self.owner
            && status.device == self.held.status.device;
        if !is_own {
            rings.refuse();
            return RingState::Settled;
        }
        match found.open(&at_once(true)) {
            Ok(file) => rings.take(file, name),
            Err(_) => RingState::NotYet,
        }
    }
}

impl Drop for MarkerFolder {
    fn drop(&mut self) {
        self.held.remove(MAX_ENTRIES);
    }
}

#[cfg(test)]
mod tests {
    use super::super::rings::Rings;
    use super::*;
    use nyquist_perf::Budget;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// A place for a single test.
    struct TestFolder(PathBuf);

    impl TestFolder {
        fn new(test: &str) -> Self {
            let path = std::env::temp_dir().join(format!("nyquist-place-{test}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path.canonicalize().unwrap())
        }

        /// The names of its entries and of theirs.
        fn names(&self) -> Vec<String> {
            let inside =
                |path: &Path| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
            let all = inside(&self.0).flat_map(|path| [vec![path.clone()], inside(&path).collect()].concat());
            let mut names: Vec<_> =
                all.map(|path| path.strip_prefix(&self.0).unwrap().display().to_string()).collect();
            names.sort();
            names
        }
    }

    impl Drop for TestFolder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_folder_is_removed_with_its_files_only() {
        let place = TestFolder::new("removal");
        fs::create_dir(place.0.join("canary")).unwrap();
        fs::write(place.0.join("canary/file"), b"").unwrap();
        let folder = MarkerFolder::create_in(&place.0, None).unwrap();
        assert_eq!(fs::metadata(folder.path()).unwrap().permissions().mode() & 0o7777, 0o700);
        fs::write(folder.path().join("1.nyqmark"), b"").unwrap();
        symlink(place.0.join("canary"), folder.path().join("link")).unwrap();
        symlink(place.0.join("canary/file"), folder.path().join("file")).unwrap();
        drop(folder);
        assert_eq!(place.names(), ["canary", "canary/file"]);
    }

    #[test]
    fn folders_in_the_folder_are_left_alone() {
        let place = TestFolder::new("inner");
        let folder = MarkerFolder::create_in(&place.0, None).unwrap();
        let (path, inner) = (folder.path().to_owned(), folder.path().join("inner"));
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join("file"), b"").unwrap();
        fs::write(path.join("1.nyqmark"), b"").unwrap();
        drop(folder);
        assert!(inner.join("file").exists() && !path.join("1.nyqmark").exists());
    }

    #[test]
    fn what_replaced_the_folder_is_left_alone() {
        let place = TestFolder::new("replaced");
        let replacements: [fn(&Path, &Path) -> io::Result<()>; 2] =
            [|path, canary| symlink(canary, path), |path, _| fs::create_dir(path)];
        for replace in replacements {
            fs::create_dir_all(place.0.join("canary")).unwrap();
            fs::write(place.0.join("canary/file"), b"").unwrap();
            let folder = MarkerFolder::create_in(&place.0, None).unwrap();
            fs::write(folder.path().join("1.nyqmark"), b"").unwrap();
            let path = folder.path().to_owned();
            fs::rename(&path, place.0.join("moved")).unwrap();
            replace(&path, &place.0.join("canary")).unwrap();
            drop(folder);
            assert!(place.0.join("canary/file").exists());
            assert!(fs::symlink_metadata(&path).is_ok());
            assert!(!place.0.join("moved/1.nyqmark").exists());
            fs::remove_dir(place.0.join("moved")).unwrap();
        }
    }

    #[test]
    fn a_place_that_is_a_link_is_none() {
        let place = TestFolder::new("link");
        let link = place.0.join("link");
        symlink(&place.0, &link).unwrap();
        assert!(MarkerFolder::create_in(&link, None).is_err());
        assert_eq!(place.names().len(), 1 + 1, "the link, and what is seen through it");
    }

    #[test]
    fn files_not_the_owners_own_are_not_opened() {
        let place = TestFolder::new("files");
        let folder = MarkerFolder::create_in(&place.0, None).unwrap();
        let (mut rings, path) = (Rings::new(&Budget::default()), folder.path().to_owned());
        let canary = place.0.join("canary");
        fs::write(&canary, b"as it was").unwrap();
        symlink(&canary, path.join("link.nyqmark")).unwrap();
        fs::hard_link(&canary, path.join("hard.nyqmark")).unwrap();
        fs::create_dir(path.join("folder.nyqmark")).unwrap();
        for name in ["link.nyqmark", "hard.nyqmark", "folder.nyqmark"] {
            assert_eq!(folder.take(name.as_ref(), &mut rings), RingState::Settled, "{name}");
        }
        fs::write(path.join("empty.nyqmark"), b"").unwrap();
        assert_eq!(folder.take("empty.nyqmark".as_ref(), &mut rings), RingState::NotYet);
        assert_eq!(rings.finish(&mut Vec::new()).unreadable, 3);
        assert_eq!(fs::read(&canary).unwrap(), b"as it was");
        fs::remove_dir(path.join("folder.nyqmark")).unwrap();
    }

    #[test]
    fn files_that_never_become_rings_are_seldom_read() {
        let place = TestFolder::new("many");
        let mut folder = MarkerFolder::create_in(&place.0, None).unwrap();
        let mut rings = Rings::new(&Budget::default());
        for number in 0..4000 {
            fs::write(folder.path().join(format!("{number}.nyqmark")), b"").unwrap();
        }
        folder.scan(&mut rings, false);
        // The first check settles it.
        symlink("0.nyqmark", folder.path().join("late.nyqmark")).unwrap();
        folder.scan(&mut rings, false);
        assert!(folder.seen.is_empty(), "looked at once more right away");
        folder.scan(&mut rings, true);
        assert_eq!(folder.seen.len(), 1);
    }

    #[test]
    fn only_folders_of_dead_recorders_are_removed() {
        let place = TestFolder::new("stale");
        let live = MarkerFolder::create_in(&place.0, None).unwrap();
        let dead = MarkerFolder::create_in(&place.0, None).unwrap();
        fs::write(dead.path().join("1.nyqmark"), b"").unwrap();
        // As after kill -9: the lock is released, the folder stays.
        let name = dead.path().file_name().unwrap().to_owned();
        dead.held.folder.unlock().unwrap();
        std::mem::forget(dead);
        // Others may have written to the first one, and the name of the second has no process id.
        for (other, mode) in [("nyquist-markers-1-1-1", 0o777), ("nyquist-markers-x", 0o700)] {
            fs::create_dir(place.0.join(other)).unwrap();
            fs::set_permissions(place.0.join(other), PermissionsExt::from_mode(mode)).unwrap();
        }
        let next = MarkerFolder::create_in(&place.0, None).unwrap();
        assert!(!place.0.join(name).exists());
        assert!(live.path().exists() && next.path().exists());
        drop((live, next));
        assert_eq!(place.names(), ["nyquist-markers-1-1-1", "nyquist-markers-x"]);
    }
}
