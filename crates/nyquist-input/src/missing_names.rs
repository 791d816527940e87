//! Looks up the missing names of a saved profile.

use crate::lookup::look_up;
use crate::module_request::module_request;
use crate::note::Note;
use crate::options::ReadOptions;
use crate::samply_symbols::samply_symbols;
use nyquist_convert::{LibSource, Progress, SymbolicatedProfile, Symbolicator, Symbols, unnamed_libs};
use nyquist_profile::Profile;
use nyquist_resources::cpu_count;
use nyquist_symbols::KernelError;
use std::path::Path;
use std::sync::Arc;

/// Looks up the missing names of a profile that was read from `path`, in the files on this machine that have the
/// recorded identities, and in samply's file beside it. Names that were looked up when it was saved are looked up
/// again only if there are new places to search.
pub fn look_up_missing_names(path: &Path, profile: Profile, options: &ReadOptions<'_>) -> Profile {
    let was_symbolicated = profile.meta().symbolicated;
    if options.no_symbols || was_symbolicated && !options.has_new_places {
        return profile;
    }
    let libs = unnamed_libs(&profile);
    if libs.is_empty() {
        return profile;
    }
    let source = |lib| (lib, LibSource::File(module_request(profile.lib(lib))));
    let sources: Vec<_> = libs.into_iter().map(source).collect();
    let provided = samply_symbols(path, options.side_files.most(), options.observer);
    let finder = options.finders.finder(&[], None).with_provided_answers(provided);
    let mut symbolicator = Symbolicator::new(Symbols {
        finder: &finder,
        // The kernel of a saved profile may differ from the running one.
        kernel: |_| Err(KernelError::Empty),
        threads: cpu_count(),
    });
    let progress = Arc::new(Progress::default());
    let symbolicated = look_up(profile, &sources, &mut symbolicator, &progress, options.observer);
    if !was_symbolicated {
        let libs = libs_without_files(&symbolicated);
        if !libs.is_empty() {
            options.observer.note(Note::NoFilesOf { libs });
        }
    }
    symbolicated.profile
}

/// The names of libs whose functions have no names, because no file of them was found.
fn libs_without_files(symbolicated: &SymbolicatedProfile) -> Vec<String> {
    let missing = symbolicated.libs.iter().filter(|report| report.symbols_from.is_none());
    missing.map(|report| symbolicated.profile.lib(report.lib).name.clone()).collect()
}
