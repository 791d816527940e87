//! The debug info of a saved profile's libs, and the paths that it has for source files. The profile's own
//! paths are not trusted, because any user may have written the profile.

use nyquist_object::RelativeAddress;
use nyquist_profile::{Lib, LibId, Profile};
use nyquist_symbols::{Finder, ModuleRequest, ModuleSymbols};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// The number of a lib's addresses that are looked up for one file. If the profile is correct, the first
/// succeeds.
const MAX_LOOKED_UP_ADDRESSES: usize = 16;

/// The debug info of a saved profile's libs, opened on demand.
#[derive(Debug)]
pub struct LibSymbols<'a> {
    profile: &'a Profile,
    finder: &'a Finder,
    request: fn(&Lib) -> ModuleRequest,
    opened: RefCell<BTreeMap<LibId, Option<ModuleSymbols>>>,
}

impl<'a> LibSymbols<'a> {
    /// Opens no file. `request` describes a lib's files to the finder.
    pub fn new(profile: &'a Profile, finder: &'a Finder, request: fn(&Lib) -> ModuleRequest) -> Self {
        Self { profile, finder, request, opened: RefCell::default() }
    }

    /// The path of the file in debug info, found by the profile's addresses in it; `None` if no debug info
    /// has it. O(frames), plus reading the debug info.
    pub fn spelling(&self, file: &str) -> Option<String> {
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
            let mut requested = addresses.iter().take(MAX_LOOKED_UP_ADDRESSES);
            requested.find_map(|&address| module.named_source(file, RelativeAddress(address)))
        };
        module.as_ref().and_then(spelling)
    }

    /// The lib's debug info. A lib without an identity has none, because any file could be claimed to
    /// match it.
    fn open(&self, lib: LibId) -> Option<ModuleSymbols> {
        let request = (self.request)(self.profile.lib(lib));
        if request.id.is_none() && request.debug_id.is_none() {
            return None;
        }
        self.finder.open(&self.finder.find(&request)).ok()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use nyquist_object::{Elf, ModuleId};
    use nyquist_profile::{Frame, Func, Meta, ProfileBuilder, Source};
    use nyquist_symbols::SearchPaths;
    use std::fs;
    use std::num::NonZeroUsize;
    use std::sync::atomic::AtomicBool;

    fn program() -> ModuleRequest {
        ModuleRequest { path: std::env::current_exe().unwrap(), ..ModuleRequest::default() }
    }

    fn program_with_id(_: &Lib) -> ModuleRequest {
        let elf = Elf::open(fs::read(program().path).unwrap()).unwrap();
        ModuleRequest { id: elf.build_id().map(ModuleId::BuildId), ..program() }
    }

    /// An address in this program, and the path of its source file.
    fn place(finder: &Finder) -> (u32, String) {
        let module = finder.open(&finder.find(&program())).unwrap();
        let elf = Elf::open(fs::read(program().path).unwrap()).unwrap();
        let text = elf.section(".text").unwrap();
        let start = RelativeAddress::from_svma(text.address, elf.image_base()).unwrap().0;
        let addresses: Vec<_> = (start..).step_by(4096).take(64).map(RelativeAddress).collect();
        let infos = module.symbolicate(&addresses, NonZeroUsize::MIN, &AtomicBool::new(false));
        let file =
            |info: &nyquist_symbols::AddressInfo| info.frames.first()?.file.as_deref().map(str::to_owned);
        addresses.iter().zip(&infos).find_map(|(address, info)| Some((address.0, file(info)?))).unwrap()
    }

    #[test]
    fn a_lib_without_an_identity_vouches_for_no_path() {
        let finder = Finder::new(SearchPaths::default());
        let (address, file) = place(&finder);
        let mut builder = ProfileBuilder::new(Meta::default());
        let lib = builder.add_lib(Lib::default());
        let name = builder.intern_string("function");
        let func = builder.intern_func(Func::new(name, Some(lib)));
        let filename = builder.intern_string(&file);
        let source = Some(builder.intern_source(Source { filename }));
        builder.intern_frame(Frame { address: Some(address), source, ..Frame::label(func) });
        let profile = builder.finish();
        let spelling = |request| LibSymbols::new(&profile, &finder, request).spelling(&file);
        assert_eq!(spelling(|_| program()), None);
        if program_with_id(&Lib::default()).id.is_some() {
            assert_eq!(spelling(program_with_id), Some(file.clone()));
        }
    }
}
