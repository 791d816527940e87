//! Where the spools of the user are.

use crate::folders::UserFolders;
use crate::system::users;
use std::path::{Path, PathBuf};

/// The folder of spools: the one that the user has named, or that in the user's folder for the state of programs. `None`
/// without a home folder in which the user, with whose rights this runs, may create files.
pub(crate) fn folder(named: Option<&Path>) -> Option<PathBuf> {
    named.map(Path::to_owned).or_else(|| in_state(&UserFolders::of_user()))
}

fn in_state(folders: &UserFolders) -> Option<PathBuf> {
    let state = folders.var("XDG_STATE_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let state = match state {
        Some(state) => state.ancestors().take(2).any(users::takes_files).then_some(state)?,
        None => folders.home().filter(|home| users::takes_files(home))?.join(".local/state"),
    };
    Some(state.join("nyquist/spool"))
}
