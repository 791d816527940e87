//! Where the user's folders are (XDG Base Directory Specification).

/// The variable of the home folder.
pub(crate) const HOME: &str = "HOME";

/// The variable of the folder for caches.
pub(crate) const CACHE: &str = "XDG_CACHE_HOME";

/// The same folder without that variable.
pub(crate) const CACHE_BELOW_HOME: &str = ".cache";
