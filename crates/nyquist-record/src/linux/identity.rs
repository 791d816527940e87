//! Using another user's rights: for a thread temporarily, or for the whole process permanently.

use std::io;

use super::Credentials;
use super::sys::identity::{
    Capabilities, effective_user, file_ids_of_thread, groups_of_thread, ids_of_process, is_dumpable,
    set_dumpable, set_file_ids_of_thread, set_groups_of_thread, set_ids_of_process,
};

/// `CAP_SETGID` and `CAP_SETUID` (`linux/capability.h`). They give no access to files.
const TO_CHANGE_USER: u64 = 1 << 6 | 1 << 7;

/// Runs `work` with a user's rights to files, on the calling thread and on those that it starts meanwhile.
/// The only capabilities in effect are those for starting a program as that user. The thread may have the others
/// back, and takes them at the end; a thread that does not end with `work` gives them up by
/// [`give_up_capabilities`]. Changes nothing if this process has that user already.
pub fn as_user<T>(user: &Credentials, work: impl FnOnce() -> T) -> io::Result<T> {
    if has_rights_of(user.uid) {
        return Ok(work());
    }
    let _lent = FormerIdentity::take(user)?;
    Ok(work())
}

/// Whether the calling thread accesses files with a user's rights.
pub fn has_rights_of(uid: u32) -> bool {
    file_user() == uid
}

/// The user with whose rights the calling thread accesses files, and who owns the files that it makes.
pub fn file_user() -> u32 {
    file_ids_of_thread().0
}

/// Changes this process with all its threads to a user permanently: it has no capability any more and cannot
/// regain one.
///
/// Other processes of that user still may not access it, because its memory contains what it has read as
/// root, and its descriptors what it has opened. Programs that it starts gain the privileges that their files
/// give, as usual.
pub fn become_user(user: &Credentials) -> io::Result<()> {
    set_ids_of_process(user.uid, user.gid, &user.groups)?;
    // If the securebits prevent the kernel from clearing the capabilities, they survive the change of ids.
    Capabilities::default().set_of_thread()?;
    set_dumpable(false)?;
    if is_for_good(user)? {
        Ok(())
    } else {
        Err(io::Error::other("root's rights are still there after they were given up"))
    }
}

/// Permanently gives up the capabilities of the calling thread and of those that it starts from now on.
///
/// An ordinary user has those that the program's file gives, and keeps none. A thread of root's that uses another
/// user's rights ([`as_user`]) keeps those to change users: [`become_user`] changes all threads, and each must be
/// allowed to. Does nothing for root with root's own rights.
pub fn give_up_capabilities() -> io::Result<()> {
    let retained = match (effective_user(), file_user()) {
        (0, 0) => return Ok(()),
        (0, _) => Capabilities::of_thread()?.permitted & TO_CHANGE_USER,
        _ => 0,
    };
    Capabilities { effective: retained, permitted: retained, inheritable: 0 }.set_of_thread()
}

fn is_for_good(user: &Credentials) -> io::Result<bool> {
    let are_users = ids_of_process()? == ([user.uid; 3], [user.gid; 3]);
    let has_none = Capabilities::of_thread()? == Capabilities::default();
    Ok(are_users && has_none && set_file_ids_of_thread(0, user.gid).is_err())
}

/// The identity of a thread before it used another user's rights.
#[derive(Debug)]
struct FormerIdentity {
    capabilities: Capabilities,
    file_ids: (u32, u32),
    groups: Vec<u32>,
    dumpable: bool,
}

impl FormerIdentity {
    fn take(user: &Credentials) -> io::Result<Self> {
        let (capabilities, groups) = (Capabilities::of_thread()?, groups_of_thread()?);
        let (file_ids, dumpable) = (file_ids_of_thread(), is_dumpable());
        set_groups_of_thread(&user.groups)?;
        // From here on everything is restored, even if the rest is refused.
        let former = Self { capabilities, file_ids, groups, dumpable };
        set_file_ids_of_thread(user.uid, user.gid)?;
        // Without these two, a program started meanwhile could not be changed to the user, and would run as
        // root.
        let effective = former.capabilities.effective & TO_CHANGE_USER;
        Capabilities { effective, ..former.capabilities }.set_of_thread()?;
        Ok(former)
    }

    fn give_back(&self) -> io::Result<()> {
        self.capabilities.set_of_thread()?;
        set_file_ids_of_thread(self.file_ids.0, self.file_ids.1)?;
        set_groups_of_thread(&self.groups)?;
        // The change of the user has raised or lowered some of them as well.
        self.capabilities.set_of_thread()?;
        // Only root may access a process with another user's rights; before the change, another rule applied.
        set_dumpable(self.dumpable)
    }
}

impl Drop for FormerIdentity {
    fn drop(&mut self) {
        // A thread with half of one user's rights and half of another's would be dangerous.
        if self.give_back().is_err() {
            std::process::abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    use std::panic::catch_unwind;
    use std::path::{Path, PathBuf};
    use std::{fs, thread};

    use super::*;

    const NOBODY: u32 = 65534;

    fn nobody() -> Credentials {
        Credentials { uid: NOBODY, gid: NOBODY, groups: vec![NOBODY] }
    }

    /// The kernel's status of the calling thread.
    fn state() -> Vec<String> {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap();
        let requested = ["Uid:", "Gid:", "Groups:", "CapPrm:", "CapEff:"];
        let lines = status.lines().filter(|line| requested.iter().any(|name| line.starts_with(name)));
        lines.map(|line| line.trim().to_owned()).collect()
    }

    /// A folder that only root may enter, inside one that everyone may write to.
    fn folders(name: &str) -> (PathBuf, PathBuf) {
        let open = std::env::temp_dir().join(format!("nyquist-identity-{name}-{}", std::process::id()));
        let closed = open.join("closed");
        fs::create_dir_all(&closed).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
        (open, closed)
    }

    fn is_refused(path: &Path) -> bool {
        fs::write(path, "").is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    }

    #[test]
    fn a_thread_has_the_users_rights_for_a_while() {
        if effective_user() != 0 {
            return;
        }
        let (open, closed) = folders("thread");
        let before = state();
        let own = open.join("own");
        let inside = as_user(&nobody(), || {
            fs::write(&own, "").unwrap();
            assert!(is_refused(&closed.join("file")), "it writes where only root may");
            assert!(fs::read_dir("/proc/1/root").is_err(), "it sees through a process of root's");
            // So do the threads that it starts; the other threads are unchanged.
            assert!(thread::scope(|scope| scope.spawn(|| is_refused(&closed.join("file"))).join().unwrap()));
            let main = fs::read_to_string("/proc/self/status").unwrap();
            assert!(main.contains("Uid:\t0\t0\t0\t0"), "another thread is the user's, too");
            state()
        });
        let inside = inside.unwrap();
        assert_eq!(inside[0], format!("Uid:\t0\t0\t0\t{NOBODY}"));
        assert_eq!(inside[1].split('\t').next_back(), Some(&*NOBODY.to_string()));
        assert_eq!(inside[2], format!("Groups:\t{NOBODY}"));
        assert_eq!(inside[4], format!("CapEff:\t{TO_CHANGE_USER:016x}"));
        assert_eq!(state(), before);
        let metadata = fs::metadata(&own).unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), (NOBODY, NOBODY));
        fs::remove_dir_all(&open).unwrap();
    }

    #[test]
    fn a_thread_of_the_users_cannot_get_rights_back() {
        if effective_user() != 0 {
            return;
        }
        let before = state();
        let inside = as_user(&nobody(), || {
            let started = thread::spawn(|| {
                give_up_capabilities().unwrap();
                let all = Capabilities { effective: 1 << 21, permitted: 1 << 21, inheritable: 0 };
                assert!(all.set_of_thread().is_err(), "CAP_SYS_ADMIN came back");
                state()
            });
            started.join().unwrap()
        });
        let retained = format!("{TO_CHANGE_USER:016x}");
        assert_eq!(inside.unwrap()[3..], [format!("CapPrm:\t{retained}"), format!("CapEff:\t{retained}")]);
        assert_eq!(state(), before);
        give_up_capabilities().unwrap();
        assert_eq!(state(), before, "root with its own rights keeps them");
    }

    #[test]
    fn rights_come_back_after_a_panic_and_nested() {
        if effective_user() != 0 {
            return;
        }
        let before = (state(), is_dumpable());
        let panicked = catch_unwind(|| as_user(&nobody(), || panic!("within")));
        assert!(panicked.is_err());
        assert_eq!((state(), is_dumpable()), before);
        let twice = as_user(&nobody(), || as_user(&nobody(), state).unwrap() == state());
        assert!(twice.unwrap());
        assert_eq!(state(), before.0);
    }
}
