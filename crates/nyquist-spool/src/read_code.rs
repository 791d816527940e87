//! Reads the rows of code: strings, libs, functions, frames and stacks.

use crate::fields::Fields;
use crate::recovered::RecoveredTables;
use nyquist_profile::{CategoryPair, Frame, FrameId, Func, Lib, Stack};

/// The name of what was lost.
pub(crate) const LOST: &str = "(damaged)";

impl RecoveredTables {
    pub(crate) fn read_strings(&mut self, fields: &mut Fields<'_>) -> Option<()> {
        let mut index: usize = fields.small()?;
        for _ in 0..self.missing_before(index, self.strings.len())? {
            self.strings.push(self.builder.intern_string(LOST));
        }
        while !fields.is_empty() {
            let text = fields.text()?;
            if index >= self.strings.len() {
                self.strings.push(self.builder.intern_string(text));
            }
            index += 1;
        }
        Some(())
    }

    pub(crate) fn read_libs(&mut self, fields: &mut Fields<'_>) -> Option<()> {
        let mut index: usize = fields.small()?;
        for _ in 0..self.missing_before(index, self.libs.len())? {
            let lib = Lib { name: LOST.to_owned(), debug_name: LOST.to_owned(), ..Lib::default() };
            self.libs.push(self.builder.add_lib(lib));
        }
        while !fields.is_empty() {
            let lib = read_lib(fields)?;
            if index >= self.libs.len() {
                self.libs.push(self.builder.add_lib(lib));
            }
            index += 1;
        }
        Some(())
    }

    pub(crate) fn read_funcs(&mut self, fields: &mut Fields<'_>) -> Option<()> {
        let mut index: usize = fields.small()?;
        for _ in 0..self.missing_before(index, self.funcs.len())? {
            let name = self.builder.intern_string(LOST);
            self.funcs.push(self.builder.intern_func(Func::new(name, None)));
        }
        while !fields.is_empty() {
            let name = *self.strings.get(fields.small::<usize>()?)?;
            let lib = match fields.option()? {
                Some(lib) => Some(*self.libs.get(usize::try_from(lib).ok()?)?),
                None => None,
            };
            if index >= self.funcs.len() {
                self.funcs.push(self.builder.intern_func(Func::new(name, lib)));
            }
            index += 1;
        }
        Some(())
    }

    pub(crate) fn read_frames(&mut self, fields: &mut Fields<'_>) -> Option<()> {
        let mut index: usize = fields.small()?;
        for _ in 0..self.missing_before(index, self.frames.len())? {
            let frame = self.lost_frame();
            self.frames.push(frame);
        }
        while !fields.is_empty() {
            let frame = self.read_frame(fields)?;
            if index >= self.frames.len() {
                self.frames.push(self.builder.intern_frame(frame));
            }
            index += 1;
        }
        Some(())
    }

    fn lost_frame(&mut self) -> FrameId {
        self.builder.intern_label_frame(LOST, None)
    }

    fn read_frame(&self, fields: &mut Fields<'_>) -> Option<Frame> {
        let func = *self.funcs.get(fields.small::<usize>()?)?;
        let address = fields.option()?.map(u32::try_from).transpose().ok()?;
        let category = match fields.option()? {
            Some(category) => {
                let category = *self.categories.get(usize::try_from(category).ok()?)?;
                let subcategory: u16 = fields.small()?;
                let known = self.builder.profile().category(category).subcategories.len();
                // The record of its category may be lost.
                let subcategory = if usize::from(subcategory) < known { subcategory } else { 0 };
                Some(CategoryPair { category, subcategory })
            }
            None => None,
        };
        Some(Frame { address, category, ..Frame::label(func) })
    }

    pub(crate) fn read_stacks(&mut self, fields: &mut Fields<'_>) -> Option<()> {
        let mut index: usize = fields.small()?;
        let missing = self.missing_before(index, self.stacks.len())?;
        if missing > 0 {
            let frame = self.lost_frame();
            let lost = self.builder.intern_stack(None, frame);
            self.stacks.extend(std::iter::repeat_n(lost, missing));
        }
        let mut row = 0;
        while !fields.is_empty() {
            let prefix = match fields.small::<usize>()? {
                0 => None,
                back => Some(*self.stacks.get(index.checked_sub(back)?)?),
            };
            row = fields.after(row)?;
            let frame = *self.frames.get(usize::try_from(row).ok()?)?;
            if index >= self.stacks.len() {
                self.stacks.push(self.builder.append_stack(Stack { prefix, frame }));
            }
            index += 1;
        }
        Some(())
    }
}

fn read_lib(fields: &mut Fields<'_>) -> Option<Lib> {
    Some(Lib {
        name: fields.owned()?,
        path: fields.owned()?,
        debug_name: fields.owned()?,
        debug_path: fields.owned()?,
        breakpad_id: fields.owned()?,
        code_id: fields.optional_text()?,
        arch: fields.optional_text()?,
    })
}
