//! Where the sockets of running recordings are: a folder that only its user may enter.

use crate::folders::UserFolders;
use crate::identity;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, mkdirat, openat, statat, unlinkat};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder in a runtime folder.
const FOLDER: &str = "nyquist";

/// The start and the end of a socket's name, which has the number of the recording and those of its processes between them.
const NAME: (&str, &str) = ("ctl-", ".sock");

/// The most processes that a name names: names have at most 255 bytes.
const MAX_NAMED: usize = 16;

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
        let uid =
            identity::invoking_user().map_or_else(|| rustix::process::getuid().as_raw(), |user| user.uid);
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for parent in runtime_folders(uid) {
            match open_parent(&parent, uid).and_then(|parent| make_in(&parent, uid)) {
                Ok(folder) => return Ok(Self { folder, owner: uid }),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// The folders in which recordings may be that this user may control: root's are all.
    pub(super) fn all() -> Vec<Self> {
        let own = rustix::process::getuid().as_raw();
        let mut places: Vec<(PathBuf, u32)> =
            runtime_folders(own).into_iter().map(|folder| (folder, own)).collect();
        if own == 0 {
            let users = std::fs::read_dir("/run/user").into_iter().flatten().flatten();
            places.extend(
                users.filter_map(|user| Some((user.path(), user.file_name().to_str()?.parse().ok()?))),
            );
        }
        let open = |(parent, owner): (PathBuf, u32)| {
            let parent = open_folder(CWD, parent.as_os_str()).ok()?;
            let folder = private(open_folder(&parent, OsStr::new(FOLDER)).ok()?, owner).ok()?;
            Some(Self { folder, owner })
        };
        places.into_iter().filter_map(open).collect()
    }

    /// Listens at a new socket of this process.
    pub(super) fn listen(&self, recorded: &[u32]) -> io::Result<(UnixListener, String)> {
        let own = std::process::id();
        let named = recorded.iter().take(MAX_NAMED);
        let numbers: Vec<_> = std::iter::once(&own).chain(named).map(u32::to_string).collect();
        let name = format!("{}{}{}", NAME.0, numbers.join("-"), NAME.1);
        // A process with this number has ended, and this is its user's own folder.
        let _ = unlinkat(&self.folder, &name, AtFlags::empty());
        let listener = UnixListener::bind(self.place(&name))?;
        listener.set_nonblocking(true)?;
        Ok((listener, name))
    }

    /// Removes a socket.
    pub(super) fn remove(&self, name: &str) {
        let _ = unlinkat(&self.folder, name, AtFlags::empty());
    }

    /// The path of a file by the folder's descriptor: a socket's address has at most 107 bytes.
    fn place(&self, name: &str) -> PathBuf {
        format!("/proc/self/fd/{}/{name}", self.folder.as_raw_fd()).into()
    }

    /// The sockets at which something listens.
    pub(super) fn sockets(self) -> Vec<FoundSocket> {
        let folder = Arc::new(self);
        let entries = Dir::read_from(&folder.folder).into_iter().flatten().flatten();
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

    /// Connects to the recording. It belongs to the folder's user, or to root, who may record for this user.
    pub(super) fn connect(&self) -> io::Result<UnixStream> {
        let stream = UnixStream::connect(self.folder.place(&self.name))?;
        let peer = socket_peercred(&stream)?.uid.as_raw();
        let is_expected = peer == self.folder.owner || peer == 0;
        if is_expected { Ok(stream) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    }
}

/// The folders of which the first that can be used is: that of the session, and one that stays.
fn runtime_folders(uid: u32) -> Vec<PathBuf> {
    let folders = UserFolders::of_user();
    let absolute = |name: &str| folders.var(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let session = absolute("XDG_RUNTIME_DIR").unwrap_or_else(|| format!("/run/user/{uid}").into());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(folders.home()?.join(".local/state")));
    let own = (uid == 0).then(|| PathBuf::from("/run"));
    own.into_iter().chain([session]).chain(state).collect()
}

/// Opens a folder of the user's, which is made with those above it if that is the user's place.
fn open_parent(parent: &Path, uid: u32) -> io::Result<OwnedFd> {
    if parent.starts_with("/run") {
        return open_folder(CWD, parent.as_os_str());
    }
    crate::output::create_folders(parent).map_err(|refused| io::Error::other(refused.reason()))?;
    let folder = open_folder(CWD, parent.as_os_str())?;
    let found = rustix::fs::fstat(&folder)?;
    if found.st_uid == uid { Ok(folder) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

fn make_in(parent: &OwnedFd, uid: u32) -> io::Result<OwnedFd> {
    match mkdirat(parent, FOLDER, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => private(open_folder(parent, OsStr::new(FOLDER))?, uid),
        Err(error) => Err(error.into()),
    }
}

fn open_folder(parent: impl std::os::fd::AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(openat(parent, name, flags, Mode::empty())?)
}

/// Fails if others than its user may enter a folder.
fn private(folder: OwnedFd, uid: u32) -> io::Result<OwnedFd> {
    let found = rustix::fs::fstat(&folder)?;
    let of_others = Mode::RWXG | Mode::RWXO;
    let is_private = found.st_uid == uid && !Mode::from_raw_mode(found.st_mode).intersects(of_others);
    if is_private { Ok(folder) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}
