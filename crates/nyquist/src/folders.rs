//! The folders of the user who runs this program, also with sudo.

use crate::identity::{has_users_rights, invoking_user};
use crate::system::{folders, users};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The environment of the user whose caches are used.
#[derive(Clone, Debug)]
pub(crate) struct UserFolders {
    /// The variables that sudo has changed to root's values.
    changed: Vec<(OsString, OsString)>,
    /// Whether files may be kept. This needs the user's own rights, because the user controls the targets
    /// of the folders.
    keeps: bool,
}

impl UserFolders {
    /// The environment of the user who runs this. It is valid for the calling thread and those that it
    /// starts.
    pub(crate) fn of_user() -> Self {
        let changed = invoking_user().map(|user| users::invoking_environment(user.uid));
        Self { changed: changed.unwrap_or_default(), keeps: has_users_rights() }
    }

    /// The value of a variable in the user's environment.
    pub(crate) fn var(&self, name: &str) -> Option<OsString> {
        let changed = self.changed.iter().find(|(variable, _)| variable == name);
        changed.map(|(_, value)| value.clone()).or_else(|| std::env::var_os(name))
    }

    /// The same for programs that keep files in folders of variables. Folders in which no file may be created
    /// are left out.
    pub(crate) fn var_for_caches(&self, name: &str) -> Option<OsString> {
        let value = self.var(name)?;
        let is_kept_in = match name {
            "DEBUGINFOD_CACHE_PATH" => self.keeps,
            folders::HOME => self.keeps && users::takes_files(Path::new(&value)),
            folders::CACHE => self.keeps && Path::new(&value).ancestors().take(2).any(users::takes_files),
            _ => true,
        };
        is_kept_in.then_some(value)
    }

    /// The home folder.
    pub(crate) fn home(&self) -> Option<PathBuf> {
        self.var(folders::HOME).map(PathBuf::from).filter(|home| home.is_absolute())
    }

    /// The folder of rustup, with the toolchains.
    pub(crate) fn rustup_home(&self) -> Option<PathBuf> {
        self.own_or_below_home("RUSTUP_HOME", ".rustup")
    }

    /// The folder of cargo, with the crates.
    pub(crate) fn cargo_home(&self) -> Option<PathBuf> {
        self.own_or_below_home("CARGO_HOME", ".cargo")
    }

    fn own_or_below_home(&self, variable: &str, folder: &str) -> Option<PathBuf> {
        let own = self.var(variable).filter(|own| !own.is_empty()).map(PathBuf::from);
        own.or_else(|| Some(self.home()?.join(folder)))
    }

    /// The folder of this program's caches; `None` without a home folder.
    pub(crate) fn cache(&self) -> Option<PathBuf> {
        let folder =
            |name: &str| self.var_for_caches(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
        let below_home = || Some(folder(folders::HOME)?.join(folders::CACHE_BELOW_HOME));
        Some(folder(folders::CACHE).or_else(below_home)?.join("nyquist"))
    }

    /// The folder of what this program keeps until it is no longer needed; `None` without a home folder in which the
    /// user, with whose rights this runs, may create files.
    #[allow(dead_code, reason = "for commands that are for Linux")]
    pub(crate) fn state(&self) -> Option<PathBuf> {
        let state = self.var("XDG_STATE_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
        let state = match state {
            Some(state) => state.ancestors().take(2).any(users::takes_files).then_some(state)?,
            None => self.home().filter(|home| users::takes_files(home))?.join(".local/state"),
        };
        Some(state.join("nyquist"))
    }

    /// The cache of symbol lookups.
    pub(crate) fn answer_cache(&self) -> Option<PathBuf> {
        Some(self.cache()?.join("answers"))
    }

    /// The cache of files from symbol servers. Those of debuginfod have a separate folder, shared with
    /// other programs.
    pub(crate) fn downloads(&self) -> Option<PathBuf> {
        Some(self.cache()?.join("downloads"))
    }

    /// The folder in which archives of recordings are unpacked.
    pub(crate) fn archives(&self) -> Option<PathBuf> {
        Some(self.cache()?.join("archives"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders_of(variables: &[(&str, &str)], keeps: bool) -> UserFolders {
        let changed = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        UserFolders { changed, keeps }
    }

    #[test]
    #[cfg_attr(not(target_os = "linux"), ignore = "the paths are those of Linux")]
    fn nothing_is_kept_where_there_is_no_home() {
        let cache = |variables: &[(&str, &str)], keeps| {
            let variables = [variables, &[(folders::CACHE, "")]].concat();
            folders_of(&variables, keeps).cache()
        };
        assert_eq!(cache(&[(folders::HOME, "/proc/nonexistent")], true), None);
        assert_eq!(cache(&[(folders::HOME, "/")], true), Some("/.cache/nyquist".into()));
        assert_eq!(cache(&[(folders::HOME, "/")], false), None);
        assert_eq!(cache(&[(folders::HOME, "relative")], true), None);
    }

    #[test]
    #[cfg_attr(not(target_os = "linux"), ignore = "the paths are those of Linux")]
    fn a_cache_folder_is_made_but_none_above_it() {
        let cache = |folder| {
            folders_of(&[(folders::HOME, "/proc/nonexistent"), (folders::CACHE, folder)], true).cache()
        };
        assert_eq!(cache("/proc/nonexistent"), Some("/proc/nonexistent/nyquist".into()));
        assert_eq!(cache("/"), Some("/nyquist".into()));
        assert_eq!(cache("/proc/nonexistent/caches"), None);
    }

    #[test]
    fn debuginfod_keeps_where_this_program_does() {
        let variables =
            [(folders::HOME, "/proc/nonexistent"), ("DEBUGINFOD_CACHE_PATH", "/d"), ("DEBUGINFOD_URLS", "u")];
        let value = |name, keeps| folders_of(&variables, keeps).var_for_caches(name);
        assert_eq!(value(folders::HOME, true), None);
        assert_eq!(value("DEBUGINFOD_CACHE_PATH", true), Some("/d".into()));
        assert_eq!(value("DEBUGINFOD_CACHE_PATH", false), None);
        assert_eq!(value("DEBUGINFOD_URLS", false), Some("u".into()));
    }
}
