//! Finds a module's binary and its debug files.
//!
//! A file is only used if its identity is the recorded one. The first such file ends the search. `linux.rs`,
//! `windows.rs` and `macos.rs` document where the files of their system may be, and in which order the places
//! are tried.

mod linux;
mod macos;
mod open;
mod request;
mod search;
mod search_paths;
mod symbol_files;
mod windows;

pub(crate) use open::{open_seen, open_source, seen_from};
pub use request::{ModuleRequest, OpenFile};
pub use search_paths::SearchPaths;
pub use symbol_files::{Attempt, AttemptOutcome, FileRole, SymbolFiles};

#[cfg(feature = "kernel")]
use crate::KernelFiles;
use crate::{AnswerCache, Fetch, FetchResult, ModuleSymbols, ProvidedAnswers, RemoteFile, SymbolsError};
use linux::Linux;
use macos::MacOs;
use nyquist_object::BuildId;
use nyquist_resources::Budget;
use search::{Platform, Search};
use std::path::Path;
use std::sync::Arc;
use windows::Windows;

/// Finds the files of modules, and opens them.
#[derive(Clone, Debug, Default)]
pub struct Finder {
    paths: SearchPaths,
    cache: Option<Arc<AnswerCache>>,
    fetch: Option<Arc<dyn Fetch>>,
    #[cfg(feature = "kernel")]
    kernel: Option<Arc<KernelFiles>>,
    provided: Option<Arc<ProvidedAnswers>>,
    budget: Option<Budget>,
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
    #[cfg(feature = "kernel")]
    #[must_use]
    pub fn with_kernel_files(self, files: Option<KernelFiles>) -> Self {
        Self { kernel: files.map(Arc::new), ..self }
    }

    /// The files of the running kernel, if they were opened before.
    #[cfg(feature = "kernel")]
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

    /// Limits the memory for what is read of the files that are found, and for answers from them. Parts that do
    /// not fit are left out, and the answers then come from the next-best source. Without a budget, there is no
    /// limit.
    #[must_use]
    pub fn with_budget(self, budget: Budget) -> Self {
        Self { budget: Some(budget), ..self }
    }

    /// The budget, if one was set.
    pub fn budget(&self) -> Option<&Budget> {
        self.budget.as_ref()
    }

    /// Whether servers are queried for files that are not found.
    pub fn asks_servers(&self) -> bool {
        self.fetch.is_some()
    }

    /// Disables fetching of files from servers.
    #[cfg(feature = "kernel")]
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

    /// Opens a file that is in memory, as [`ModuleSymbols::from_image`] does. The answers from it are charged to
    /// the budget.
    pub fn open_image(&self, image: Vec<u8>) -> Result<ModuleSymbols, SymbolsError> {
        Ok(ModuleSymbols::from_image(image)?.within(self.budget.clone()))
    }

    /// Finds the binary, its debug file, and the supplementary file of the latter.
    pub fn find(&self, request: &ModuleRequest) -> SymbolFiles {
        let mut search = self.search(request);
        platform(&search).find_files(&mut search);
        let provided = self.provided.as_deref().and_then(|provided| provided.of(request));
        SymbolFiles { provided, ..search.found }
    }

    /// Only looks for a module's binary, which is the file that was mapped.
    pub fn find_binary(&self, request: &ModuleRequest) -> Option<OpenFile> {
        let mut search = self.search(request);
        platform(&search).find_binary(&mut search);
        search.found.binary
    }

    fn search<'a>(&'a self, request: &'a ModuleRequest) -> Search<'a> {
        let fetch = self.fetch.as_deref();
        let (module, roots) = (request.path.clone(), request.roots.clone());
        let found = SymbolFiles { module, roots, ..SymbolFiles::default() };
        Search { paths: &self.paths, fetch, budget: self.budget.as_ref(), request, found }
    }
}

/// The platform of the module. A module of no other platform is one of Linux.
fn platform(search: &Search<'_>) -> &'static dyn Platform {
    let others: [&dyn Platform; 2] = [&Windows, &MacOs];
    others.into_iter().find(|platform| platform.has_module(search)).unwrap_or(&Linux)
}
