//! The intern stage: addresses become frames of the profile, and frames become stacks.

use crate::mappings::Range;
use crate::modules::{ModuleIndex, ModuleStore};
use crate::stages::Truncation;
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
    /// The frames in modules, by relative addresses.
    in_modules: FxHashMap<(ModuleIndex, RelativeAddress, Mode), FrameId>,
    /// The frames that are in no module.
    elsewhere: FxHashMap<(Avma, Mode), FrameId>,
    /// The stacks that are only the root of one that could not be finished, by the reason.
    truncated: FxHashMap<Truncation, StackId>,
    libs: FxHashMap<ModuleIndex, LibId>,
    user: CategoryId,
    kernel: CategoryId,
}

impl Interner {
    /// Adds the categories to the profile.
    pub(crate) fn new(builder: &mut ProfileBuilder) -> Self {
        Self {
            in_modules: FxHashMap::default(),
            elsewhere: FxHashMap::default(),
            truncated: FxHashMap::default(),
            libs: FxHashMap::default(),
            user: builder.add_category(well_known::USER, CategoryColor::Yellow),
            kernel: builder.add_category(well_known::KERNEL, CategoryColor::Orange),
        }
    }

    /// Forgets all frames: the profile's tables were made anew.
    pub(crate) fn forget_frames(&mut self) {
        self.in_modules.clear();
        self.elsewhere.clear();
        self.truncated.clear();
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
        let known = match in_module {
            Some((module, relative)) => self.in_modules.get(&(module, relative, mode)),
            None => self.elsewhere.get(&(address, mode)),
        };
        let frame = match known {
            Some(&frame) => frame,
            None => self.add_frame(builder, modules, in_module.ok_or(address), mode),
        };
        builder.intern_stack(prefix, frame)
    }

    /// The root of a stack that could not be finished.
    pub(crate) fn truncated(&mut self, builder: &mut ProfileBuilder, truncation: Truncation) -> StackId {
        let category = Some(self.category(Mode::User));
        *self.truncated.entry(truncation).or_insert_with(|| {
            builder.intern_label(None, &well_known::truncated(&truncation.to_string()), category)
        })
    }

    fn add_frame(
        &mut self,
        builder: &mut ProfileBuilder,
        modules: &ModuleStore,
        place: Result<(ModuleIndex, RelativeAddress), Avma>,
        mode: Mode,
    ) -> FrameId {
        let lib = place.ok().map(|(module, _)| {
            *self.libs.entry(module).or_insert_with(|| builder.add_lib(modules.get(module).lib()))
        });
        let relative = place.map(|(_, relative)| relative);
        let number = relative.map_or_else(|avma| avma.0, |relative| u64::from(relative.0));
        let name = hexadecimal(number, &mut [0; 18], |name| builder.intern_string(name));
        let func = builder.intern_func(Func { name, lib, source: None, line: None, column: None });
        let frame = builder.intern_frame(Frame {
            address: relative.ok().map(|relative| relative.0),
            category: Some(self.category(mode).into()),
            ..Frame::label(func)
        });
        match place {
            Ok((module, relative)) => self.in_modules.insert((module, relative, mode), frame),
            Err(avma) => self.elsewhere.insert((avma, mode), frame),
        };
        frame
    }
}

/// Hands on a number as `{number:#x}` writes it. The formatting machinery takes a tenth of the time of interning an address.
fn hexadecimal<T>(number: u64, room: &mut [u8; 18], then: impl FnOnce(&str) -> T) -> T {
    let mut rest = number;
    let mut start = room.len();
    loop {
        start -= 1;
        room[start] = b"0123456789abcdef"[(rest & 15) as usize];
        rest >>= 4;
        if rest == 0 {
            break;
        }
    }
    start -= 2;
    room[start..start + 2].copy_from_slice(b"0x");
    then(std::str::from_utf8(&room[start..]).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::hexadecimal;

    #[test]
    fn numbers_are_written_as_the_standard_library_writes_them() {
        for number in [0, 9, 0xa, 0x10, 0xdead_beef, u64::from(u32::MAX), u64::MAX] {
            hexadecimal(number, &mut [0; 18], |text| assert_eq!(text, format!("{number:#x}")));
        }
    }
}
