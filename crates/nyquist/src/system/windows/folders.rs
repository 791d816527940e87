//! Where the user's folders are (Known Folders).

/// The variable of the home folder.
pub(crate) const HOME: &str = "USERPROFILE";

/// The variable of the folder for caches, which no other machine of the user needs.
pub(crate) const CACHE: &str = "LOCALAPPDATA";

/// The same folder without that variable.
pub(crate) const CACHE_BELOW_HOME: &str = "AppData\\Local";
