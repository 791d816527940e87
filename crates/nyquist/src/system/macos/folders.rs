//! Where the user's folders are (Apple's "File System Programming Guide").

/// The variable of the home folder.
pub(crate) const HOME: &str = "HOME";

/// The variable of the folder for caches, which users of other systems set here as well.
pub(crate) const CACHE: &str = "XDG_CACHE_HOME";

/// The same folder without that variable.
pub(crate) const CACHE_BELOW_HOME: &str = "Library/Caches";
