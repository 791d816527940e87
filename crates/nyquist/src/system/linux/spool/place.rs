//! Where the spools of the user are.

use crate::folders::UserFolders;
use std::path::{Path, PathBuf};

/// The folder of spools: the one that the user has named, or that in the user's folder for the state of programs. `None`
/// without a home folder.
pub(crate) fn folder(named: Option<&Path>) -> Option<PathBuf> {
    named.map(Path::to_owned).or_else(|| in_state(&UserFolders::of_user()))
}

fn in_state(folders: &UserFolders) -> Option<PathBuf> {
    let state = folders.var("XDG_STATE_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    Some(state.or_else(|| Some(folders.home()?.join(".local/state")))?.join("nyquist/spool"))
}
