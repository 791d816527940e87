//! With whose rights this process works. Under sudo it serves the user who typed that: what needs no right of root's is done with
//! the user's.

use crate::failure::{Failure, io_reason};
use crate::output::Output;
use nyquist_record::linux::{self, Credentials};
use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static SERVED: OnceLock<Option<Credentials>> = OnceLock::new();

/// Whether something is written that root alone may write.
static STAYS_ROOT: AtomicBool = AtomicBool::new(false);

/// The user who typed sudo, where this process runs as root because of it: also after it has become that user.
pub(crate) fn invoking_user() -> Option<&'static Credentials> {
    SERVED.get_or_init(linux::invoking_user).as_ref()
}

/// Serves root alone, whoever typed sudo (`--as-root`): to be called before anything else here.
pub(crate) fn serve_root() {
    // Who is served already stays it.
    let _ = SERVED.set(None);
}

/// Whether the calling thread has no more rights to files than the user whom this process serves.
pub(crate) fn has_users_rights() -> bool {
    invoking_user().is_none_or(|user| linux::has_rights_of(user.uid))
}

/// Does work with the rights of the user who typed sudo, where somebody did. The threads that it starts have them, too.
pub(crate) fn as_invoking_user<T>(work: impl FnOnce() -> T) -> Result<T, Failure> {
    match invoking_user() {
        Some(user) => linux::as_user(user, work).map_err(|error| cannot_work_as(user, &error)),
        None => Ok(work()),
    }
}

/// Gives up all that the user whom this process serves has not got, for good: root's rights under sudo, and the capabilities that the
/// program's file has given. Root stays where something is written that root alone may write.
pub(crate) fn give_up_privileges() -> Result<(), Failure> {
    match invoking_user() {
        Some(user) if linux::has_rights_of(user.uid) || STAYS_ROOT.load(Ordering::Relaxed) => Ok(()),
        Some(user) => linux::become_user(user).map_err(|error| cannot_work_as(user, &error)),
        None => linux::give_up_capabilities()
            .map_err(|error| Failure::because("the program's capabilities cannot be given up", &error)),
    }
}

/// Opens the place for what is written: with the user's rights where they suffice. Else it is root's, and root stays to write it.
pub(crate) fn open_output(path: &Path) -> io::Result<Output> {
    let (output, rights) = Rights::to_open(|| Output::open(path, None))?;
    STAYS_ROOT.fetch_or(rights == Rights::Own, Ordering::Relaxed);
    Ok(output)
}

/// A command that is run as the user whom this process serves.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    if let Some(user) = invoking_user() {
        command.uid(user.uid).gid(user.gid).envs(linux::invoking_environment(user.uid));
    }
    command
}

fn cannot_work_as(user: &Credentials, error: &io::Error) -> Failure {
    Failure::new(format!("cannot work as user {}, who typed sudo: {}", user.uid, io_reason(error)))
        .hint("where SUDO_UID and SUDO_GID do not tell of a user, unset them")
}

/// Whose rights something takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rights {
    /// Those of the user whom this process serves.
    Users,
    /// Those that this process has beside them.
    Own,
}

impl Rights {
    /// Opens a file that the user has named, with the least rights that suffice.
    pub(crate) fn to_open<T>(open: impl Fn() -> io::Result<T>) -> io::Result<(T, Self)> {
        match as_invoking_user(&open).map_err(|failure| io::Error::other(failure.message))? {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !has_users_rights() => {
                Ok((open()?, Self::Own))
            }
            opened => Ok((opened?, Self::Users)),
        }
    }

    /// Does work with these rights.
    pub(crate) fn with<T>(self, work: impl FnOnce() -> T) -> Result<T, Failure> {
        match self {
            Self::Users => as_invoking_user(work),
            Self::Own => Ok(work()),
        }
    }
}
