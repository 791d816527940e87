//! Where the sockets of running recordings are: a folder that only its user may enter.

use crate::folders::UserFolders;
use crate::identity;
use nyquist_system::create_private_folder;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, openat, statat, unlinkat};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The start and the end of a socket's name, which has the number of the recording and those of its processes between
/// them.
const NAME: (&str, &str) = ("ctl-", ".sock");

/// The most processes that a name names: names have at most 255 bytes.
const MAX_NAMED: usize = 16;

/// The most files of a folder that are looked at.
const MAX_FILES: usize = 1 << 10;

/// An opened folder of sockets.
#[derive(Debug)]
pub(super) struct SocketFolder {
    folder: OwnedFd,
    /// The user whose recordings are in it.
    owner: u32,
}

/// A socket in a folder.
#[derive(Debug)]
pub(super) struct FoundSocket {
    /// The number of the recording.
    pub(super) pid: u32,
    /// The processes that it was started for, by their numbers.
    pub(super) recorded: Vec<u32>,
    name: String,
    folder: Arc<SocketFolder>,
}

impl SocketFolder {
    /// The folder of the served user, which is made if it is not there. Call it with that user's rights.
    pub(super) fn make() -> io::Result<Self> {
        let uid = identity::invoking_user().map_or_else(own_uid, |user| user.uid);
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for path in folders_of(uid) {
            match create_private_folder(&path).and_then(|()| Self::open(&path, uid)) {
                Ok(folder) => return Ok(folder),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// The folders of this user's recordings.
    pub(super) fn own() -> Vec<Self> {
        let uid = own_uid();
        folders_of(uid).iter().filter_map(|path| Self::open(path, uid).ok()).collect()
    }

    /// Those of all other users, who decide what is in them. Only root may enter them.
    pub(super) fn of_others() -> Vec<Self> {
        let users = std::fs::read_dir("/run/user").into_iter().flatten().flatten();
        let of_user = |user: std::fs::DirEntry| {
            let uid = user.file_name().to_str()?.parse().ok()?;
            Self::open(&user.path().join("nyquist"), uid).ok()
        };
        users.filter_map(of_user).collect()
    }

    /// Opens a folder. It must belong to that user, and nobody else may enter it.
    pub(super) fn open(path: &Path, owner: u32) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
        let folder = openat(CWD, path, flags, Mode::empty())?;
        let found = fstat(&folder)?;
        let of_others = Mode::RWXG | Mode::RWXO;
        let is_private = found.st_uid == owner && !Mode::from_raw_mode(found.st_mode).intersects(of_others);
        if is_private { Ok(Self { folder, owner }) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    }

    /// Listens at a new socket of this process.
    pub(super) fn listen(&self, recorded: &[u32]) -> io::Result<(UnixListener, String)> {
        let own = std::process::id();
        let named = recorded.iter().take(MAX_NAMED);
        let numbers: Vec<_> = std::iter::once(&own).chain(named).map(u32::to_string).collect();
        let name = format!("{}{}{}", NAME.0, numbers.join("-"), NAME.1);
        // A process with this number has ended, and this is its user's own folder.
        self.remove(&name);
        let listener = UnixListener::bind(self.place(&name))?;
        listener.set_nonblocking(true)?;
        Ok((listener, name))
    }

    /// Removes a socket.
    pub(super) fn remove(&self, name: &str) {
        // It may be gone.
        let _ = unlinkat(&self.folder, name, AtFlags::empty());
    }

    /// The path of a file by the folder's descriptor: a socket's address has at most 107 bytes.
    fn place(&self, name: &str) -> PathBuf {
        format!("/proc/self/fd/{}/{name}", self.folder.as_raw_fd()).into()
    }

    /// The sockets at which something listens.
    pub(super) fn sockets(self) -> Vec<FoundSocket> {
        let folder = Arc::new(self);
        let entries = Dir::read_from(&folder.folder).into_iter().flatten().flatten().take(MAX_FILES);
        let names = entries.filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
        let found = names.filter_map(|name| FoundSocket::of(name, &folder));
        // A recording that was killed leaves its socket.
        found.filter(|socket| socket.connect().is_ok()).collect()
    }
}

impl FoundSocket {
    fn of(name: String, folder: &Arc<SocketFolder>) -> Option<Self> {
        let numbers = name.strip_prefix(NAME.0)?.strip_suffix(NAME.1)?;
        let mut numbers = numbers.split('-').map(str::parse::<u32>);
        let pid = numbers.next()?.ok()?;
        let recorded = numbers.collect::<Result<_, _>>().ok()?;
        let found = statat(&folder.folder, &name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let is_socket = FileType::from_raw_mode(found.st_mode) == FileType::Socket;
        is_socket.then(|| Self { pid, recorded, name, folder: Arc::clone(folder) })
    }

    /// Connects to the recording. It belongs to the folder's user, or to root, who may record for this user. Does not
    /// wait for one that accepts nobody.
    pub(super) fn connect(&self) -> io::Result<UnixStream> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&socket, &SocketAddrUnix::new(self.folder.place(&self.name))?)?;
        let peer = socket_peercred(&socket)?.uid.as_raw();
        if peer != self.folder.owner && peer != 0 {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let stream = UnixStream::from(socket);
        stream.set_nonblocking(false)?;
        Ok(stream)
    }
}

fn own_uid() -> u32 {
    rustix::process::getuid().as_raw()
}

/// The folders of which the first that can be used is: that of the session, and one that stays. Root has one of its
/// own.
fn folders_of(uid: u32) -> Vec<PathBuf> {
    let folders = UserFolders::of_user();
    let session = folders.var("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let session = session.unwrap_or_else(|| format!("/run/user/{uid}").into());
    let own = (uid == 0).then(|| PathBuf::from("/run/nyquist"));
    let lasting = folders.state().map(|state| state.join("run"));
    own.into_iter().chain([session.join("nyquist")]).chain(lasting).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn fresh(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("nyquist-ctl-{name}-{}", std::process::id()));
        // One of an earlier process.
        let _ = std::fs::remove_dir_all(&path);
        path
    }

    #[test]
    fn a_folder_that_others_may_enter_is_refused() {
        let path = fresh("open");
        create_private_folder(&path).unwrap();
        assert!(SocketFolder::open(&path, own_uid()).is_ok());
        assert!(SocketFolder::open(&path, own_uid() + 1).is_err(), "another user's");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o711)).unwrap();
        assert!(SocketFolder::open(&path, own_uid()).is_err());
        let link = path.with_extension("link");
        // As above.
        let _ = std::fs::remove_file(&link);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(SocketFolder::open(&link, own_uid()).is_err(), "a link");
        std::fs::remove_file(link).unwrap();
        std::fs::remove_dir(path).unwrap();
    }

    #[test]
    fn a_full_socket_is_not_waited_for() {
        let path = fresh("full");
        create_private_folder(&path).unwrap();
        let folder = SocketFolder::open(&path, own_uid()).unwrap();
        let (listener, name) = folder.listen(&[7]).unwrap();
        let socket = FoundSocket::of(name, &Arc::new(folder)).unwrap();
        assert_eq!((socket.pid, &socket.recorded[..]), (std::process::id(), &[7][..]));
        let mut waiting = Vec::new();
        while let Ok(stream) = socket.connect() {
            waiting.push(stream);
        }
        assert!(!waiting.is_empty());
        drop(listener);
        std::fs::remove_dir_all(path).unwrap();
    }
}
