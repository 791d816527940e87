//! The intern stage: addresses become frames of the profile, and frames become stacks.

use crate::mappings::Range;
use crate::modules::{ModuleIndex, ModuleStore};
use nyquist_object::{Avma, RelativeAddress};
use nyquist_profile::{
    CategoryColor, CategoryId, Frame, FrameId, Func, LibId, ProfileBuilder, StackId, well_known,
};
use rustc_hash::FxHashMap;

/// Whose code a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Mode {
    User,
    Kernel,
}

/// Makes each frame once.
#[derive(Debug)]
pub(crate) struct Interner {
    frames: FxHashMap<(Option<ModuleIndex>, u64, Mode), FrameId>,
    libs: FxHashMap<ModuleIndex, LibId>,
    user: CategoryId,
    kernel: CategoryId,
}

impl Interner {
    /// Adds the categories to the profile.
    pub(crate) fn new(builder: &mut ProfileBuilder) -> Self {
        Self {
            frames: FxHashMap::default(),
            libs: FxHashMap::default(),
            user: builder.add_category(well_known::USER, CategoryColor::Yellow),
            kernel: builder.add_category(well_known::KERNEL, CategoryColor::Orange),
        }
    }

    /// Forgets all frames: the profile's tables were made anew.
    pub(crate) fn forget_frames(&mut self) {
        self.frames.clear();
    }

    /// The category of a mode.
    pub(crate) fn category(&self, mode: Mode) -> CategoryId {
        match mode {
            Mode::User => self.user,
            Mode::Kernel => self.kernel,
        }
    }

    /// The libs that have a frame, and their modules.
    pub(crate) fn libs(&self) -> impl Iterator<Item = (LibId, ModuleIndex)> {
        self.libs.iter().map(|(&module, &lib)| (lib, module))
    }

    /// The stack that the frame at `address` makes on top of `prefix`; `range` is the memory that holds it.
    pub(crate) fn push(
        &mut self,
        builder: &mut ProfileBuilder,
        modules: &ModuleStore,
        prefix: Option<StackId>,
        place: (Option<&Range>, Avma),
        mode: Mode,
    ) -> StackId {
        let (range, address) = place;
        let in_module = range.and_then(|range| range.module);
        let in_module =
            in_module.and_then(|(module, base)| Some((module, RelativeAddress::from_avma(address, base)?)));
        let key = match in_module {
            Some((module, relative)) => (Some(module), u64::from(relative.0), mode),
            None => (None, address.0, mode),
        };
        let frame = match self.frames.get(&key) {
            Some(&frame) => frame,
            None => self.add_frame(builder, modules, key),
        };
        builder.intern_stack(prefix, frame)
    }

    fn add_frame(
        &mut self,
        builder: &mut ProfileBuilder,
        modules: &ModuleStore,
        key: (Option<ModuleIndex>, u64, Mode),
    ) -> FrameId {
        let (module, address, mode) = key;
        let lib = module.map(|module| {
            *self.libs.entry(module).or_insert_with(|| builder.add_lib(modules.get(module).lib()))
        });
        let name = builder.intern_string(&format!("{address:#x}"));
        let func = builder.intern_func(Func { name, lib, source: None, line: None, column: None });
        let frame = builder.intern_frame(Frame {
            address: lib.and(u32::try_from(address).ok()),
            category: Some(self.category(mode).into()),
            ..Frame::label(func)
        });
        self.frames.insert(key, frame);
        frame
    }
}
