//! Where a user's files are. Under sudo they are those of the user who typed it.

use crate::output::Owner;
use nyquist_record::linux::{invoking_environment, invoking_user};
use std::ffi::OsString;
use std::path::PathBuf;

/// The environment of the user whose caches are used.
#[derive(Clone, Debug)]
pub(crate) struct UserFolders {
    /// What sudo has set to root's.
    changed: Vec<(OsString, OsString)>,
    /// Who new files are given to, where it is not the process's own user.
    pub(crate) owner: Option<Owner>,
}

impl UserFolders {
    /// Those of the user who runs this.
    pub(crate) fn of_user() -> Self {
        match invoking_user() {
            Some(user) => Self {
                changed: invoking_environment(user.uid),
                owner: Some(Owner { uid: user.uid, gid: user.gid }),
            },
            None => Self { changed: Vec::new(), owner: None },
        }
    }

    /// The value of a variable in the user's environment.
    pub(crate) fn var(&self, name: &str) -> Option<OsString> {
        let changed = self.changed.iter().find(|(variable, _)| variable == name);
        changed.map(|(_, value)| value.clone()).or_else(|| std::env::var_os(name))
    }

    /// The home folder.
    pub(crate) fn home(&self) -> Option<PathBuf> {
        self.var("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
    }

    /// The folder of this program's caches (XDG Base Directory Specification); `None` without a home folder.
    pub(crate) fn cache(&self) -> Option<PathBuf> {
        let xdg = self.var("XDG_CACHE_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
        Some(xdg.or_else(|| Some(self.home()?.join(".cache")))?.join("nyquist"))
    }

    /// Where the answers of the symbolizer are kept.
    pub(crate) fn answers(&self) -> Option<PathBuf> {
        Some(self.cache()?.join("answers"))
    }

    /// Where files from symbol servers are kept; those of debuginfod have a folder that other programs share.
    pub(crate) fn downloads(&self) -> Option<PathBuf> {
        Some(self.cache()?.join("downloads"))
    }

    /// Where the archives of recordings are unpacked.
    pub(crate) fn archives(&self) -> Option<PathBuf> {
        Some(self.cache()?.join("archives"))
    }

    /// The user and group of new files.
    pub(crate) fn owner_ids(&self) -> Option<(u32, u32)> {
        self.owner.map(|owner| (owner.uid, owner.gid))
    }
}
