//! The rights with which this process works. Under sudo, doas and pkexec it serves the user who typed the
//! command. Work that does not need root is done with the user's rights.

use crate::failure::{Failure, io_reason};
use crate::system::targets;
use crate::system::users::{self, Credentials};
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

static SERVED: OnceLock<Option<Credentials>> = OnceLock::new();

/// The number of outputs in progress that only root may write.
static KEEPS_ROOT: AtomicUsize = AtomicUsize::new(0);

/// The user who typed sudo or a similar command, if this process runs as root because of it. The value stays
/// after the process has become that user.
pub(crate) fn invoking_user() -> Option<&'static Credentials> {
    SERVED.get_or_init(users::invoking_user).as_ref()
}

/// The user whose browser shows profiles, if that is not the user of this process. Root does not start a
/// browser for a user who typed sudo, whatever the owner of the profile.
pub(crate) fn user_at_the_browser() -> Option<Credentials> {
    invoking_user().cloned().or_else(users::invoking_user)
}

/// Serves only root, and not the user who typed sudo (`--as-root`). Must be called before anything else here.
pub(crate) fn serve_root() {
    // An already chosen user stays.
    let _ = SERVED.set(None);
}

/// Whether the calling thread has no more rights to files than the served user.
pub(crate) fn has_users_rights() -> bool {
    invoking_user().is_none_or(|user| users::has_rights_of(user.uid))
}

/// Runs a function with the rights of the user who typed sudo, if there is one. Threads that it starts have
/// the same rights.
pub(crate) fn as_invoking_user<T>(work: impl FnOnce() -> T) -> Result<T, RightsError> {
    match invoking_user() {
        Some(user) => users::as_user(user, work).map_err(|error| RightsError { uid: user.uid, error }),
        None => Ok(work()),
    }
}

/// Gives up all rights that the served user does not have, permanently: root's rights under sudo, and the
/// capabilities of the program's file. The process stays root as long as an output needs it, and those that open files
/// for it do not.
pub(crate) fn give_up_privileges() -> Result<(), Failure> {
    targets::give_up_rights();
    match invoking_user() {
        Some(user) if users::has_rights_of(user.uid) || KEEPS_ROOT.load(Ordering::Relaxed) > 0 => Ok(()),
        Some(user) => users::become_user(user).map_err(|error| RightsError { uid: user.uid, error }.into()),
        None => users::give_up_capabilities()
            .map_err(|error| Failure::because("the program's capabilities cannot be given up", &error)),
    }
}

/// A command that is run as the served user.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    if let Some(user) = invoking_user() {
        users::run_as(&mut command, user);
    }
    command
}

/// The failure to switch to the rights of the user who typed sudo.
#[derive(Debug)]
pub(crate) struct RightsError {
    uid: u32,
    error: io::Error,
}

impl fmt::Display for RightsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cannot switch to user {}, who started this program as root: {}",
            self.uid,
            io_reason(&self.error)
        )
    }
}

impl From<RightsError> for Failure {
    fn from(error: RightsError) -> Self {
        Self::new(error.to_string()).hint(
            "unset SUDO_UID and SUDO_GID, DOAS_USER or PKEXEC_UID if they do not name a user of this machine",
        )
    }
}

impl From<RightsError> for io::Error {
    fn from(error: RightsError) -> Self {
        Self::other(error.to_string())
    }
}

/// The rights that an action needs.
#[derive(Clone, Debug)]
pub(crate) enum Rights {
    /// The rights of the served user.
    Users,
    /// Rights of this process beyond those. They stay as long as this value does.
    Own(RootGuard),
}

/// Prevents this process from giving up root while it exists.
#[derive(Debug)]
pub(crate) struct RootGuard(());

impl RootGuard {
    fn new() -> Self {
        KEEPS_ROOT.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Clone for RootGuard {
    fn clone(&self) -> Self {
        Self::new()
    }
}

impl Drop for RootGuard {
    fn drop(&mut self) {
        KEEPS_ROOT.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An error when opening a file.
pub(crate) trait FileDenied: From<RightsError> {
    /// Whether more rights may help.
    fn takes_rights(&self) -> bool;
}

impl FileDenied for io::Error {
    fn takes_rights(&self) -> bool {
        self.kind() == io::ErrorKind::PermissionDenied
    }
}

impl Rights {
    /// Opens a file that the user has named, with the least sufficient rights.
    pub(crate) fn to_open<T, E: FileDenied>(open: impl Fn() -> Result<T, E>) -> Result<(T, Self), E> {
        match as_invoking_user(&open)? {
            Err(error) if error.takes_rights() && !has_users_rights() => {
                Ok((open()?, Self::Own(RootGuard::new())))
            }
            opened => Ok((opened?, Self::Users)),
        }
    }

    /// Runs a function with these rights.
    #[allow(dead_code, reason = "for commands that are for Linux")]
    pub(crate) fn with<T>(&self, work: impl FnOnce() -> T) -> Result<T, RightsError> {
        match self {
            Self::Users => as_invoking_user(work),
            Self::Own(_) => Ok(work()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_stays_as_long_as_something_takes_it() {
        let count = || KEEPS_ROOT.load(Ordering::Relaxed);
        let rights = Rights::Own(RootGuard::new());
        assert_eq!(count(), 1);
        let other = rights.clone();
        drop(rights);
        assert_eq!(count(), 1);
        drop(other);
        assert_eq!(count(), 0);
    }
}
