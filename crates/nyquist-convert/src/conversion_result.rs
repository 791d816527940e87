//! What a conversion gives: a profile without names, and where its names come from.

use crate::account::occurrence_counts::OccurrenceCounts;
use crate::modules::lib_source::LibSource;
use crate::modules::store::ModuleStore;
use crate::statistics::Statistics;
use nyquist_profile::{LibId, Profile};

/// A profile whose frames are addresses, and the sources of their names.
#[derive(Debug)]
pub struct ConversionResult {
    /// The profile. Addresses in libs have no names: [`symbolicate()`](crate::symbolicate) looks these up,
    /// and [`name_by_address()`](crate::name_by_address) uses the addresses as names.
    pub profile: Profile,
    /// The counters.
    pub statistics: Statistics,
    /// The counts of recorded additional events.
    pub occurrences: OccurrenceCounts,
    /// Where each lib's symbols come from.
    pub libs: Libs,
    /// Messages to the user about what is missing: perf maps and jitdumps that were not used, or only in
    /// part, and what took too much memory. A sentence each.
    pub notes: Vec<String>,
}

/// Where the symbols of the libs of a profile come from. The files are held open until this is dropped.
#[derive(Debug)]
pub struct Libs {
    sources: Vec<(LibId, LibSource)>,
    _modules: ModuleStore,
}

impl Libs {
    /// These libs, whose files these modules hold open.
    pub(crate) fn new(sources: Vec<(LibId, LibSource)>, modules: ModuleStore) -> Self {
        Self { sources, _modules: modules }
    }

    /// Each lib and its source.
    pub fn sources(&self) -> &[(LibId, LibSource)] {
        &self.sources
    }
}
