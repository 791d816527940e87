//! The intern stage: addresses become frames of the profile, and frames become stacks.

use crate::build::unnamed;
use crate::files::view::FileOwner;
use crate::mappings::Range;
use crate::module_index::ModuleIndex;
use crate::modules::store::ModuleStore;
use crate::unwind::truncation::Truncation;
use nyquist_object::{Avma, RelativeAddress};
use nyquist_profile::{
    CategoryColor, CategoryId, CategoryPair, Frame, FrameId, Func, FuncId, Lib, LibId, ProfileBuilder,
    StringId, well_known,
};
use rustc_hash::FxHashMap;

/// Whether a frame is of user or kernel code, and how it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Mode {
    User = 0,
    Kernel = 1,
    /// User code beyond the end of the stack's copy, found in the running program's memory some time later.
    Completed = 2,
}

/// The frames at one address, by their mode.
type ByMode = [Option<FrameId>; 3];

/// An address in no module.
#[derive(Debug, Default)]
struct AddressOutsideModules {
    /// Kept when frames are forgotten, because the profile's strings are kept too.
    name: Option<StringId>,
    frames: ByMode,
}

/// Where code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodePlace {
    /// In a module, at this distance from its image base.
    InModule(ModuleIndex, RelativeAddress),
    /// In no known module.
    OutsideModules(Avma),
}

impl CodePlace {
    /// The place of an address; `range` is the memory that contains it, if that is known.
    pub(crate) fn of(range: Option<&Range>, address: Avma) -> Self {
        let module = range.and_then(|range| range.module);
        let place = module.and_then(|(module, base)| {
            Some(Self::InModule(module, RelativeAddress::from_avma(address, base)?))
        });
        place.unwrap_or(Self::OutsideModules(address))
    }
}

/// Makes each frame once.
#[derive(Debug)]
pub(crate) struct Interner {
    /// The frames in libs. Modules that cannot be distinguished are one lib.
    in_libs: FxHashMap<(LibId, RelativeAddress), ByMode>,
    /// The function of each lib's addresses, which have no names yet.
    unnamed: FxHashMap<LibId, FuncId>,
    /// The addresses in no module.
    outside_modules: FxHashMap<Avma, AddressOutsideModules>,
    /// Whether the profile may have frames of addresses that were forgotten.
    has_forgotten: bool,
    /// The root frames of stacks that could not be walked to their roots, by the reason.
    truncated: FxHashMap<Truncation, FrameId>,
    libs: FxHashMap<ModuleIndex, LibId>,
    /// The owners of the files of libs.
    owners: FxHashMap<LibId, Option<FileOwner>>,
    categories: Categories,
}

/// Adds the lib of a module. Any user can give a file the build id of another file. So files with the same id
/// are one lib only if they have the same owner. Otherwise one user's file would name another user's code.
fn add_lib(
    builder: &mut ProfileBuilder,
    owners: &mut FxHashMap<LibId, Option<FileOwner>>,
    (lib, owner): (&Lib, Option<FileOwner>),
) -> LibId {
    let mut number = 1;
    loop {
        let debug_name = match number {
            1 => lib.debug_name.clone(),
            // So many namesakes do not occur by accident.
            LAST_NAMESAKE.. => format!("{} ({})", lib.debug_name, owners.len() + 1),
            _ => format!("{} ({number})", lib.debug_name),
        };
        let id = builder.add_lib(Lib { debug_name, ..lib.clone() });
        if number > LAST_NAMESAKE || *owners.entry(id).or_insert(owner) == owner {
            return id;
        }
        number += 1;
    }
}

/// The last number that is tried for a file whose id other files have. After that, a number is used that no
/// lib has yet.
const LAST_NAMESAKE: u32 = 100;

/// The categories of code.
#[derive(Clone, Copy, Debug)]
struct Categories {
    user: CategoryId,
    kernel: CategoryId,
}

impl Categories {
    fn of(self, mode: Mode) -> CategoryId {
        match mode {
            Mode::User | Mode::Completed => self.user,
            Mode::Kernel => self.kernel,
        }
    }

    /// The category of a mode with its subcategory, which is added if it does not exist.
    fn pair(self, builder: &mut ProfileBuilder, mode: Mode) -> CategoryPair {
        let category = self.of(mode);
        let subcategory = match mode {
            Mode::User | Mode::Kernel => 0,
            Mode::Completed => builder.add_subcategory(category, well_known::COMPLETED),
        };
        CategoryPair { category, subcategory }
    }
}

impl Interner {
    /// Adds the categories to the profile.
    pub(crate) fn new(builder: &mut ProfileBuilder) -> Self {
        Self {
            in_libs: FxHashMap::default(),
            unnamed: FxHashMap::default(),
            outside_modules: FxHashMap::default(),
            has_forgotten: false,
            truncated: FxHashMap::default(),
            libs: FxHashMap::default(),
            owners: FxHashMap::default(),
            categories: Categories {
                user: builder.add_category(well_known::USER, CategoryColor::Yellow),
                kernel: builder.add_category(well_known::KERNEL, CategoryColor::Orange),
            },
        }
    }

    /// Forgets all frames: the profile's tables were made anew.
    pub(crate) fn forget_frames(&mut self) {
        self.in_libs.clear();
        self.unnamed.clear();
        self.outside_modules
            .values_mut()
            .for_each(|outside_modules| outside_modules.frames = ByMode::default());
        self.has_forgotten = true;
        self.truncated.clear();
    }

    /// The category of a mode.
    pub(crate) fn category(&self, mode: Mode) -> CategoryId {
        self.categories.of(mode)
    }

    /// The libs that have a frame, and their modules.
    pub(crate) fn libs(&self) -> impl Iterator<Item = (LibId, ModuleIndex)> {
        self.libs.iter().map(|(&module, &lib)| (lib, module))
    }

    /// The frame of code at a place.
    pub(crate) fn frame(
        &mut self,
        builder: &mut ProfileBuilder,
        modules: &ModuleStore,
        place: CodePlace,
        mode: Mode,
    ) -> FrameId {
        let new = New { builder, may_be_there: self.has_forgotten, categories: self.categories, mode };
        match place {
            CodePlace::InModule(module, address) => {
                let owners = &mut self.owners;
                let new_lib = || {
                    let module = modules.get(module);
                    add_lib(new.builder, owners, (&module.lib(), module.owner()))
                };
                let lib = *self.libs.entry(module).or_insert_with(new_lib);
                // One search for both the look-up and the insertion, because most addresses are new.
                let frames = self.in_libs.entry((lib, address)).or_default();
                let unnamed = &mut self.unnamed;
                new.known_or(frames, |new, _| {
                    let func = unnamed.entry(lib).or_insert_with(|| unnamed::intern_func(new.builder, lib));
                    new.in_lib(*func, address)
                })
            }
            CodePlace::OutsideModules(address) => {
                let AddressOutsideModules { name, frames } = self.outside_modules.entry(address).or_default();
                new.known_or(frames, |new, others| new.outside_modules(address, name, others))
            }
        }
    }

    /// The root frame of a stack that could not be walked to its root.
    pub(crate) fn truncated(&mut self, builder: &mut ProfileBuilder, truncation: Truncation) -> FrameId {
        let category = Some(self.category(Mode::User));
        *self.truncated.entry(truncation).or_insert_with(|| {
            builder.intern_label_frame(&well_known::truncated(&truncation.to_string()), category)
        })
    }

    /// The frame of code that cannot be unwound, which only has a name.
    pub(crate) fn named(&self, builder: &mut ProfileBuilder, name: &str) -> FrameId {
        builder.intern_label_frame(name, Some(self.category(Mode::User)))
    }
}

/// Adds frames that are new, without a search for entries that cannot exist. In large programs, and after
/// wrong walks, most addresses are new.
struct New<'a> {
    builder: &'a mut ProfileBuilder,
    /// Whether the profile may have the frame already.
    may_be_there: bool,
    categories: Categories,
    mode: Mode,
}

impl New<'_> {
    /// The frame of this mode among those at one address. It is made if it does not exist.
    fn known_or(self, frames: &mut ByMode, make: impl FnOnce(Self, ByMode) -> FrameId) -> FrameId {
        let (mode, others) = (self.mode as usize, *frames);
        *frames[mode].get_or_insert_with(|| make(self, others))
    }

    /// A frame of the lib's function of addresses without a name.
    fn in_lib(mut self, func: FuncId, address: RelativeAddress) -> FrameId {
        let category = Some(self.categories.pair(self.builder, self.mode));
        self.frame(Frame { address: Some(address.0), category, ..Frame::label(func) })
    }

    fn outside_modules(mut self, address: Avma, name: &mut Option<StringId>, others: ByMode) -> FrameId {
        let func = self.func_of(others).unwrap_or_else(|| {
            let name = *name.get_or_insert_with(|| self.name_elsewhere(address));
            self.func(Func::new(name, None))
        });
        let category = Some(self.categories.pair(self.builder, self.mode));
        self.frame(Frame { category, ..Frame::label(func) })
    }

    fn name_elsewhere(&mut self, address: Avma) -> StringId {
        // Lower addresses may have the same names as relative addresses in modules.
        let may_be_there = u32::try_from(address.0).is_ok();
        unnamed::hexadecimal(address.0, |name| {
            if may_be_there { self.builder.intern_string(name) } else { self.builder.append_string(name) }
        })
    }

    /// The function of another frame at the same address.
    fn func_of(&self, frames: ByMode) -> Option<FuncId> {
        let other = frames.into_iter().flatten().next()?;
        Some(self.builder.profile().frame(other).func)
    }

    fn func(&mut self, func: Func) -> FuncId {
        if self.may_be_there { self.builder.intern_func(func) } else { self.builder.append_func(func) }
    }

    fn frame(&mut self, frame: Frame) -> FrameId {
        if self.may_be_there { self.builder.intern_frame(frame) } else { self.builder.append_frame(frame) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Pid;
    use crate::files::view::MountView;
    use nyquist_profile::Meta;

    #[test]
    fn files_of_one_id_and_owner_are_one_lib() {
        let (mut builder, mut owners) = (ProfileBuilder::new(Meta::default()), FxHashMap::default());
        let mut add = |mount, path: &str| {
            let mounts = MountView::Other { mount, folder: 0 };
            let [name, debug_name, id] = ["lib.so", "lib.so", "7"].map(str::to_owned);
            let lib = Lib { name, debug_name, breakpad_id: id, path: path.to_owned(), ..Lib::default() };
            let owner = FileOwner::of_process(Pid(std::process::id()), mounts);
            add_lib(&mut builder, &mut owners, (&lib, Some(owner)))
        };
        let first = add(0, "/a/lib.so");
        assert_eq!(add(0, "/b/lib.so"), first);
        let ids: Vec<_> = (1..300).map(|mount| add(mount, "/a/lib.so")).collect();
        assert!(!ids.contains(&first) && ids.iter().enumerate().all(|(at, id)| !ids[..at].contains(id)));
        assert_eq!((add(0, "/a/lib.so"), add(1, "/a/lib.so")), (first, ids[0]));
    }

    #[test]
    fn an_address_is_one_function_whoever_runs_it() {
        for address in [0x10, 0x7fff_ffff_f010].map(Avma) {
            let mut builder = ProfileBuilder::new(Meta::default());
            let (mut interner, modules) = (Interner::new(&mut builder), ModuleStore::default());
            let mut frame =
                |mode| interner.frame(&mut builder, &modules, CodePlace::OutsideModules(address), mode);
            let modes = [Mode::User, Mode::Kernel, Mode::Completed];
            let [user, kernel, completed] = modes.map(&mut frame);
            assert!(user != kernel && user != completed && kernel != completed);
            assert_eq!(modes.map(&mut frame), [user, kernel, completed]);
            let profile = builder.profile();
            assert_eq!((profile.funcs().len(), profile.frames().len()), (1, 3));
            assert_eq!(profile.func_name(profile.frame(user).func), format!("{:#x}", address.0));
        }
    }
}
