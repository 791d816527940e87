//! The folders that are searched for files.

use std::path::PathBuf;

/// Where to look besides the standard places.
#[derive(Clone, Debug)]
pub struct SearchPaths {
    /// Folders given by the user: searched for the binary's name and for debug files.
    pub symbol_dirs: Vec<PathBuf>,
    /// Folders with the layout of `/usr/lib/debug`.
    pub debug_dirs: Vec<PathBuf>,
    /// Folders with the layout of perf's build id cache (`~/.debug`).
    pub build_id_caches: Vec<PathBuf>,
    /// Folders that simpleperf's scripts have filled (`binary_cache`).
    pub simpleperf_caches: Vec<PathBuf>,
}

impl Default for SearchPaths {
    /// `/usr/lib/debug` alone.
    fn default() -> Self {
        Self {
            symbol_dirs: Vec::new(),
            debug_dirs: vec![PathBuf::from("/usr/lib/debug")],
            build_id_caches: Vec::new(),
            simpleperf_caches: Vec::new(),
        }
    }
}
