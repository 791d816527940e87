//! The user of this process. An elevated process serves the same user, so no rights are switched here. On macOS,
//! sudo likewise serves root.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::Command;

/// A user other than that of this process. There is none here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Credentials {
    /// The user's number.
    pub(crate) uid: u32,
    never: Infallible,
}

/// The user who requested more rights, if it is another one.
pub(crate) fn invoking_user() -> Option<Credentials> {
    None
}

/// Runs a function with the rights of a user.
pub(crate) fn as_user<T>(user: &Credentials, _work: impl FnOnce() -> T) -> io::Result<T> {
    match user.never {}
}

/// Gives this process the rights of a user, permanently.
pub(crate) fn become_user(user: &Credentials) -> io::Result<()> {
    match user.never {}
}

/// Gives up what an ordinary user has not: a program's file gives no rights here.
#[expect(clippy::unnecessary_wraps, reason = "it can fail on Linux")]
pub(crate) fn give_up_capabilities() -> io::Result<()> {
    Ok(())
}

/// Whether the calling thread has no more rights to files than a user of this number. There are no numbers
/// here, and one user.
pub(crate) fn has_rights_of(_uid: u32) -> bool {
    true
}

/// The variables that differ in the environment of another user.
pub(crate) fn invoking_environment(_uid: u32) -> Vec<(OsString, OsString)> {
    Vec::new()
}

/// Lets a command run as a user.
pub(crate) fn run_as(_command: &mut Command, user: &Credentials) {
    match user.never {}
}

/// The number of the user: there are none here.
pub(crate) fn own_uid() -> Option<u32> {
    None
}

/// Whether files may be created in a folder. The folder must exist.
pub(crate) fn takes_files(folder: &Path) -> bool {
    folder.is_dir()
}
