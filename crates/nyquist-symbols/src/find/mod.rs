//! Finds a module's binary and its debug files.
//!
//! A file is only used if its identity is the recorded one. The first such file ends the search. `linux.rs`,
//! `windows.rs` and `macos.rs` document where the files of their system may be, and in which order the places
//! are tried.

mod linux;
mod macos;
mod open;
mod request;
mod symbol_files;
mod windows;

pub(crate) use open::{open_seen, open_source, seen_from};
use open::{source_of, unreadable};
pub use request::{ModuleRequest, OpenFile};
pub use symbol_files::{Attempt, AttemptOutcome, FileRole, SymbolFiles};

use crate::{
    AnswerCache, Fetch, FetchResult, KernelFiles, ModuleSymbols, ProvidedAnswers, RemoteFile, SymbolsError,
};
use nyquist_object::{BuildId, FileSource};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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

/// Finds the files of modules, and opens them.
#[derive(Clone, Debug, Default)]
pub struct Finder {
    paths: SearchPaths,
    cache: Option<Arc<AnswerCache>>,
    fetch: Option<Arc<dyn Fetch>>,
    kernel: Option<Arc<KernelFiles>>,
    provided: Option<Arc<ProvidedAnswers>>,
}

impl Finder {
    /// A finder that looks into `paths`.
    pub fn new(paths: SearchPaths) -> Self {
        Self { paths, ..Self::default() }
    }

    /// Sets the cache of opened modules. They use its answers, and store new ones in it.
    #[must_use]
    pub fn with_cache(self, cache: Arc<AnswerCache>) -> Self {
        Self { cache: Some(cache), ..self }
    }

    /// The cache, if one was set.
    pub fn cache(&self) -> Option<&AnswerCache> {
        self.cache.as_deref()
    }

    /// Reads the running kernel's symbols from files that were opened before.
    #[must_use]
    pub fn with_kernel_files(self, files: Option<KernelFiles>) -> Self {
        Self { kernel: files.map(Arc::new), ..self }
    }

    /// The files of the running kernel, if they were opened before.
    pub(crate) fn kernel_files(&self) -> Option<Arc<KernelFiles>> {
        self.kernel.clone()
    }

    /// Sets the answers that came with a profile. Opened modules use them if no debug info is found.
    #[must_use]
    pub fn with_provided_answers(self, provided: Option<ProvidedAnswers>) -> Self {
        Self { provided: provided.map(Arc::new), ..self }
    }

    /// Fetches files that are not found otherwise with `fetch`.
    #[must_use]
    pub fn with_fetch(self, fetch: Arc<dyn Fetch>) -> Self {
        Self { fetch: Some(fetch), ..self }
    }

    /// Whether servers are queried for files that are not found.
    pub fn asks_servers(&self) -> bool {
        self.fetch.is_some()
    }

    /// Disables fetching of files from servers.
    #[must_use]
    pub(crate) fn offline(self) -> Self {
        Self { fetch: None, ..self }
    }

    /// Fetches a source file that the debug info of the file with this build id names. It cannot be checked
    /// whether it is the right one.
    pub fn fetch_source(&self, build_id: &BuildId, path: &str) -> FetchResult {
        let check = |path: &Path| match nyquist_system::open_regular(path) {
            Ok(_) => AttemptOutcome::Used,
            Err(error) => AttemptOutcome::Unreadable(error.to_string()),
        };
        let source = RemoteFile::Source { build_id, path };
        self.fetch.as_ref().map(|fetch| fetch.fetch(&source, &check)).unwrap_or_default()
    }

    /// Opens the files that were found, as [`ModuleSymbols::open`] does, with their cached answers.
    pub fn open(&self, found: &SymbolFiles) -> Result<ModuleSymbols, SymbolsError> {
        ModuleSymbols::open_with(found, self.cache.as_ref())
    }

    /// Finds the binary, its debug file, and the supplementary file of the latter.
    pub fn find(&self, request: &ModuleRequest) -> SymbolFiles {
        let mut search = self.search(request);
        if search.is_of_windows() {
            search.run_for_windows();
        } else if search.is_of_macos() {
            search.run_for_macos();
        } else {
            search.run_for_linux();
        }
        let provided = self.provided.as_deref().and_then(|provided| provided.of(request));
        SymbolFiles { provided, ..search.found }
    }

    /// Only looks for a module's binary, which is the file that was mapped.
    pub fn find_binary(&self, request: &ModuleRequest) -> Option<OpenFile> {
        let mut search = self.search(request);
        if search.is_of_windows() {
            search.image();
        } else if search.is_of_macos() {
            search.macos_binary();
        } else {
            search.binary();
        }
        search.found.binary
    }

    fn search<'a>(&'a self, request: &'a ModuleRequest) -> Search<'a> {
        let fetch = self.fetch.as_deref();
        let (module, roots) = (request.path.clone(), request.roots.clone());
        let found = SymbolFiles { module, roots, ..SymbolFiles::default() };
        Search { paths: &self.paths, fetch, request, found }
    }
}

/// The search for one module's files.
pub(crate) struct Search<'a> {
    pub(crate) paths: &'a SearchPaths,
    pub(crate) fetch: Option<&'a dyn Fetch>,
    pub(crate) request: &'a ModuleRequest,
    pub(crate) found: SymbolFiles,
}

impl Search<'_> {
    /// Opens a file, unless it is already held open.
    fn source(&self, path: &Path) -> Result<Arc<FileSource>, AttemptOutcome> {
        match self.request.held.as_ref().filter(|held| held.path == path) {
            Some(held) => Ok(Arc::clone(&held.source)),
            None => open_seen(&self.request.roots, path).map(source_of).map_err(unreadable),
        }
    }
}

/// The places without duplicates.
pub(crate) fn without_doubles(places: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut seen = HashSet::new();
    places.into_iter().filter(|place| seen.insert(place.clone())).collect()
}
