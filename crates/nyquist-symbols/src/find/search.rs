//! The search for one module's files: what is known of them, and what all platforms do in the same way.

use super::open::{open_seen, source_of, unreadable};
use super::{Attempt, AttemptOutcome, FileRole, ModuleRequest, SearchPaths, SymbolFiles};
use crate::{Fetch, RemoteFile};
use nyquist_object::FileSource;
use nyquist_resources::Budget;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A platform with its own formats of files, and its own places for them.
pub(super) trait Platform {
    /// Whether the module is one of this platform.
    fn has_module(&self, search: &Search<'_>) -> bool;

    /// Finds the binary, its debug file, and what belongs to the latter.
    fn find_files(&self, search: &mut Search<'_>);

    /// Finds the binary alone.
    fn find_binary(&self, search: &mut Search<'_>);
}

/// The search for one module's files.
pub(super) struct Search<'a> {
    pub(super) paths: &'a SearchPaths,
    pub(super) fetch: Option<&'a dyn Fetch>,
    /// The memory for what is read of the files.
    pub(super) budget: Option<&'a Budget>,
    pub(super) request: &'a ModuleRequest,
    pub(super) found: SymbolFiles,
}

impl Search<'_> {
    /// The paths of the module in the process that had it mapped.
    pub(super) fn places_of_process(&self) -> impl Iterator<Item = &PathBuf> {
        self.request.alternatives.iter().chain([&self.request.path])
    }

    /// Opens a file, unless it is already held open.
    pub(super) fn source(&self, path: &Path) -> Result<Arc<FileSource>, AttemptOutcome> {
        match self.request.held.as_ref().filter(|held| held.path == path) {
            Some(held) => Ok(Arc::new(held.source.charged_to(self.budget.cloned()))),
            None => {
                let opened = open_seen(&self.request.roots, path);
                opened.map(|file| source_of(file, self.budget)).map_err(unreadable)
            }
        }
    }

    /// Opens one path after the other until one is the requested file, and records all attempts.
    pub(super) fn first<T>(
        &mut self,
        requested: FileRole,
        paths: Vec<PathBuf>,
        open: impl Fn(&Self, &Path) -> Result<T, AttemptOutcome>,
    ) -> Option<T> {
        paths.into_iter().find_map(|path| {
            let opened = open(self, &path);
            self.note(requested, path, opened)
        })
    }

    /// Fetches a file, and records the attempts.
    pub(super) fn fetch<T>(
        &mut self,
        requested: FileRole,
        file: &RemoteFile<'_>,
        open: impl Fn(&Self, &Path) -> Result<T, AttemptOutcome>,
    ) -> Option<T> {
        let check = |path: &Path| open(self, path).map_or_else(|outcome| outcome, |_| AttemptOutcome::Used);
        let fetched = self.fetch?.fetch(file, &check);
        let tried = fetched.tried.into_iter();
        self.found.tried.extend(tried.map(|(path, outcome)| Attempt { requested, path, outcome }));
        open(self, &fetched.path?).ok()
    }

    /// Records the outcome of a path.
    pub(super) fn note<T>(
        &mut self,
        requested: FileRole,
        path: PathBuf,
        opened: Result<T, AttemptOutcome>,
    ) -> Option<T> {
        let (outcome, opened) = match opened {
            Ok(opened) => (AttemptOutcome::Used, Some(opened)),
            Err(outcome) => (outcome, None),
        };
        self.found.tried.push(Attempt { requested, path, outcome });
        opened
    }
}

/// The places without duplicates.
pub(super) fn without_doubles(places: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut seen = HashSet::new();
    places.into_iter().filter(|place| seen.insert(place.clone())).collect()
}
