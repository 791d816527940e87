//! The user of this process, and the one who typed sudo.

pub(crate) use nyquist_record::linux::{
    Credentials, as_user, become_user, give_up_capabilities, has_rights_of, invoking_environment,
    invoking_user,
};

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

/// Lets a command run as a user, with the user's environment.
pub(crate) fn run_as(command: &mut Command, user: &Credentials) {
    command.uid(user.uid).gid(user.gid).envs(invoking_environment(user.uid));
}

/// The number of the user whose rights this process has.
#[expect(clippy::unnecessary_wraps, reason = "other systems have no such number")]
pub(crate) fn own_uid() -> Option<u32> {
    Some(rustix::process::geteuid().as_raw())
}

/// Whether files may be created in a folder. The folder must exist. Root creates no files in another user's
/// folder, because that user could redirect them by links.
pub(crate) fn takes_files(folder: &Path) -> bool {
    let metadata = fs::metadata(folder).ok().filter(fs::Metadata::is_dir);
    metadata.is_some_and(|folder| folder.uid() == 0 || !has_rights_of(0))
}
