//! Symbols, source and instructions if not all libs are known yet: during a recording, or if more profiles
//! follow.

use nyquist_object::RelativeAddress;
use nyquist_profile::Profile;
use nyquist_server::{
    AddressInfo, Assembly, AssemblyRequest, LibKey, LookupError, ProfileSymbols, SourceRequest, SymbolSource,
};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

/// The symbols of the libs so far.
pub(crate) struct GrowingSymbols(RwLock<ProfileSymbols>);

impl GrowingSymbols {
    pub(crate) fn new(known: ProfileSymbols) -> Self {
        Self(RwLock::new(known))
    }

    /// Adds the libs of another profile. Waits for running lookups.
    pub(crate) fn take_libs(&self, profile: &Profile) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).take_libs(profile);
    }

    fn read(&self) -> RwLockReadGuard<'_, ProfileSymbols> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SymbolSource for GrowingSymbols {
    fn symbolicate(&self, lib: &LibKey, addresses: &[RelativeAddress]) -> Option<Vec<Option<AddressInfo>>> {
        self.read().symbolicate(lib, addresses)
    }

    fn source(&self, request: &SourceRequest) -> Result<String, LookupError> {
        self.read().source(request)
    }

    fn assembly(&self, request: &AssemblyRequest) -> Result<Assembly, LookupError> {
        self.read().assembly(request)
    }

    fn folded_names(&self, lib: &LibKey, start: RelativeAddress, name: &str) -> Vec<String> {
        self.read().folded_names(lib, start, name)
    }
}
