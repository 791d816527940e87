//! The path that debug info on this machine has for a source file. The profile's own path is not trusted,
//! because any user may have written the profile.

use crate::module_request::module_request;
use nyquist_object::RelativeAddress;
use nyquist_profile::{LibId, Profile};
use nyquist_symbols::{Finder, ModuleSymbols};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// The number of a lib's addresses that are looked up for one file. If the profile is correct, the first
/// succeeds.
const MOST_ASKED: usize = 16;

/// The debug info of a profile's libs, opened on demand.
pub(super) struct LibSymbols<'a> {
    profile: &'a Profile,
    finder: &'a Finder,
    opened: RefCell<BTreeMap<LibId, Option<ModuleSymbols>>>,
}

impl<'a> LibSymbols<'a> {
    pub(super) fn new(profile: &'a Profile, finder: &'a Finder) -> Self {
        Self { profile, finder, opened: RefCell::default() }
    }

    /// The path of the file in debug info, found by the profile's addresses in it; `None` if no debug info
    /// has it. O(frames), plus reading the debug info.
    pub(super) fn spelling(&self, file: &str) -> Option<String> {
        self.addresses(file).into_iter().find_map(|(lib, addresses)| self.in_lib(lib, &addresses, file))
    }

    /// The addresses of the file's code in the profile, by lib.
    fn addresses(&self, file: &str) -> BTreeMap<LibId, BTreeSet<u32>> {
        let mut addresses: BTreeMap<LibId, BTreeSet<u32>> = BTreeMap::new();
        for frame in self.profile.frames() {
            let source = self.profile.frame_source(frame);
            let is_of_file =
                source.is_some_and(|it| self.profile.string(self.profile.source(it).filename) == file);
            if let (true, Some(address), Some(lib)) =
                (is_of_file, frame.address, self.profile.func(frame.func).lib)
            {
                addresses.entry(lib).or_default().insert(address);
            }
        }
        addresses
    }

    fn in_lib(&self, lib: LibId, addresses: &BTreeSet<u32>, file: &str) -> Option<String> {
        let mut opened = self.opened.borrow_mut();
        let module = opened.entry(lib).or_insert_with(|| self.open(lib));
        let spelling = |module: &ModuleSymbols| {
            let mut asked = addresses.iter().take(MOST_ASKED);
            asked.find_map(|&address| module.named_source(file, RelativeAddress(address)))
        };
        module.as_ref().and_then(spelling)
    }

    /// The lib's debug info. A lib without an identity has none, because any file could be claimed to
    /// match it.
    fn open(&self, lib: LibId) -> Option<ModuleSymbols> {
        let request = module_request(self.profile.lib(lib));
        if request.id.is_none() && request.debug_id.is_none() {
            return None;
        }
        self.finder.open(&self.finder.find(&request)).ok()
    }
}
