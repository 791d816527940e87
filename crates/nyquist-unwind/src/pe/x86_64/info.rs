//! `UNWIND_INFO`: the description of a function's prologue ("struct UNWIND_INFO", "struct UNWIND_CODE").

use crate::pe::image::PeImage;
use nyquist_object::ByteSource;

/// The longest chain of infos that is followed. Compilers chain one or two.
const MAX_CHAIN: usize = 32;

/// The info is followed by the entry of another function, whose prologue has run before
/// (`UNW_FLAG_CHAININFO`).
const CHAINED: u8 = 4;

const OUTSIDE: UnusableReason = "it is not in the image";

/// The operation of a prologue's instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Pushes a register, by its number in instructions.
    Push(u8),
    /// Allocates bytes of the stack.
    Allocate(u32),
    /// Sets the frame register to the stack pointer + its offset.
    SetFrame,
    /// Stores a register at this many bytes above the frame's base.
    Save(u8, u32),
    /// Not an instruction: an interrupt has pushed the interrupted state, with an error code or without.
    MachineFrame(bool),
}

/// An operation, and its offset in the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnwindCode {
    /// The offset of the instruction's end. 0 for a step of another function's prologue.
    pub(crate) offset: u8,
    pub(crate) operation: Operation,
}

/// The frame register by its number in instructions, and how many bytes above the frame's base it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameRegister {
    pub(crate) number: u8,
    pub(crate) offset: u8,
}

/// The description of a function's frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnwindInfo {
    /// The last step first, as they have to be undone. Those of the infos it is chained to follow its own.
    pub(crate) steps: Vec<UnwindCode>,
    pub(crate) frame_register: Option<FrameRegister>,
    /// Where epilogues begin, by their distance from the function's end, and the size of each. Only infos of
    /// version 2 state this.
    pub(crate) epilogues: Vec<u32>,
    pub(crate) epilogue_size: u32,
}

/// Why an info is unusable.
pub(crate) type UnusableReason = &'static str;

impl UnwindInfo {
    /// Reads the info at an address, and the infos that it is chained to.
    pub(crate) fn read<S: ByteSource>(
        image: &mut PeImage<'_, S>,
        mut address: u32,
    ) -> Result<Self, UnusableReason> {
        let mut info = Self::default();
        for depth in 0..MAX_CHAIN {
            let header = image.get(address, 4).and_then(|bytes| bytes.first_chunk().copied());
            let [version_and_flags, _, count, register] = header.ok_or(OUTSIDE)?;
            let version = version_and_flags & 7;
            if !(1..=2).contains(&version) {
                return Err("its unwind information is of an unknown version");
            }
            let codes_at = address.checked_add(4).ok_or(OUTSIDE)?;
            if register & 15 != 0 {
                let register = FrameRegister { number: register & 15, offset: register & 0xf0 };
                info.frame_register.get_or_insert(register);
            }
            let codes = image.get(codes_at, 2 * u32::from(count)).ok_or(OUTSIDE)?;
            info.add_codes(codes, version, depth > 0)?;
            if version_and_flags >> 3 & CHAINED == 0 {
                return Ok(info);
            }
            // The codes are padded to an even number.
            let entry = codes_at.checked_add(4 * u32::from(count).div_ceil(2));
            address = entry.and_then(|entry| image.u32(entry.checked_add(8)?)).ok_or(OUTSIDE)?;
        }
        Err("its unwind information is chained in a circle")
    }

    /// Reads an array of codes, each of two bytes: the offset, and the operation in the low half of the
    /// second byte with its argument in the high half. Some operations have one or two more elements for a
    /// number.
    fn add_codes(&mut self, codes: &[u8], version: u8, is_chained: bool) -> Result<(), UnusableReason> {
        let mut elements = codes.as_chunks::<2>().0.iter().copied();
        let mut is_first_epilogue = true;
        while let Some([offset, code]) = elements.next() {
            let (code, argument) = (code & 15, code >> 4);
            let mut number = |is_long: bool| {
                let mut half =
                    || elements.next().map(u16::from_le_bytes).map(u32::from).ok_or("a code is cut off");
                let low = half()?;
                Ok(if is_long { half()? << 16 | low } else { low * 8 })
            };
            let operation = match code {
                0 => Operation::Push(argument),
                1 => Operation::Allocate(number(argument != 0)?),
                2 => Operation::Allocate(u32::from(argument) * 8 + 8),
                3 => Operation::SetFrame,
                4 | 5 => Operation::Save(argument, number(code == 5)?),
                6 if version == 2 && is_chained => continue,
                6 if version == 2 => {
                    self.add_epilogue(offset, argument, is_first_epilogue);
                    is_first_epilogue = false;
                    continue;
                }
                // No step needs vector registers. The original meaning of 6 and 7 is obsolete.
                6..=9 => {
                    number(code == 9 || (code == 7 && version == 1))?;
                    continue;
                }
                10 => Operation::MachineFrame(argument & 1 != 0),
                _ => return Err("it has an unknown code"),
            };
            self.steps.push(UnwindCode { offset: if is_chained { 0 } else { offset }, operation });
        }
        Ok(())
    }

    /// The first such code states the size of all epilogues, and whether one is at the function's end. Each
    /// further code states where an epilogue begins.
    fn add_epilogue(&mut self, offset: u8, argument: u8, is_first: bool) {
        if is_first {
            self.epilogue_size = offset.into();
            if argument & 1 != 0 {
                self.epilogues.push(offset.into());
            }
        } else if (offset, argument) != (0, 0) {
            self.epilogues.push(u32::from(argument) << 8 | u32::from(offset));
        }
    }
}
