//! How to step from one frame to its caller, in eight bytes.

use std::fmt;

/// How to find the canonical frame address (CFA), the caller's frame pointer and the return address from the
/// stack pointer, the frame pointer and the instruction pointer of a frame.
///
/// The caller's stack pointer is the CFA, except for signal frames and slow rules. On 64-bit x86 the return
/// address is always in the eight bytes below it.
///
/// On 64-bit ARM the return address is in the link register, or saved at an offset from the CFA like the
/// frame pointer.
///
/// Its fields, from the lowest bits up, are: the operand (32 bits, signed), where the caller's frame pointer
/// is saved (16 bits, signed, in units of eight bytes), a [`CfaKind`] (8 bits), and what is saved (8 bits). The
/// last is a [`SavedFramePointer`] on 64-bit x86. On 64-bit ARM it is 0 for nothing, 1 for the frame pointer,
/// and 2 for the return address. If the highest bit is set, both are saved. Then the other 7 bits (signed, in
/// units of eight bytes) are the distance from the frame pointer to the return address.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Rule(u64);

/// How to find the CFA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum CfaKind {
    /// Nothing is known, so step by the frame pointer if that is plausible.
    Uncovered = 0,
    /// There is no caller: the stack ends here.
    End = 1,
    /// The stack pointer + operand.
    StackPointer = 2,
    /// The frame pointer + operand.
    FramePointer = 3,
    /// The word at (stack pointer + low half of the operand), + high half; the halves are signed.
    AtStackPointer = 4,
    /// The word at (frame pointer + low half of the operand), + high half; the halves are signed.
    AtFramePointer = 5,
    /// The stub of a procedure linkage table: stack pointer + low half of the operand. It is eight more if
    /// the low four bits of the instruction pointer are not below the high half.
    LinkageStub = 6,
    /// The frame that the kernel made to deliver a signal: all registers are in the `ucontext` that begins at
    /// the stack pointer.
    SignalFrame = 7,
    /// None of these. The row has to be evaluated in full.
    Slow = 8,
    /// The caller's frame pointer is at the frame pointer, and the return address is above it. The distance
    /// to the CFA is not known, because on 64-bit ARM frame records can be anywhere in their frames.
    FrameRecord = 9,
    /// Another register + low half of the operand. The high half is the register's DWARF number. Only an
    /// interrupted frame has such a register; before the rule is applied, it is replaced by one of the stack
    /// pointer.
    Register = 10,
}

/// Where the caller's frame pointer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SavedFramePointer {
    /// Still in its register.
    InRegister = 0,
    /// In memory, at an offset from the CFA.
    FromCfa = 1,
    /// In memory, at an offset from the frame pointer's current value.
    FromFramePointer = 2,
}

/// Where a frame of 64-bit ARM has saved registers, in bytes from the CFA. Unsaved ones are still in their
/// registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SavedRegisters {
    /// The caller's frame pointer.
    pub frame_pointer: Option<i64>,
    /// The return address.
    pub return_address: Option<i64>,
}

/// The encoding of a 64-bit ARM frame's saved registers in the highest byte of a rule.
const FRAME_POINTER_SAVED: u8 = 1;
const RETURN_ADDRESS_SAVED: u8 = 2;
const BOTH_SAVED: u8 = 0x80;

impl Rule {
    /// No unwind information.
    pub const UNCOVERED: Self = Self::pack(CfaKind::Uncovered, 0, SavedFramePointer::InRegister, 0);
    /// The outermost frame.
    pub const END: Self = Self::pack(CfaKind::End, 0, SavedFramePointer::InRegister, 0);
    /// A signal frame of the kernel.
    pub const SIGNAL_FRAME: Self = Self::pack(CfaKind::SignalFrame, 0, SavedFramePointer::InRegister, 0);
    /// A row that has to be evaluated in full.
    pub const SLOW: Self = Self::pack(CfaKind::Slow, 0, SavedFramePointer::InRegister, 0);
    /// The return address at the stack pointer, as at the first instruction of a function.
    pub const RETURN_ADDRESS: Self = Self::pack(CfaKind::StackPointer, 8, SavedFramePointer::InRegister, 0);
    /// The caller's frame pointer at the frame pointer, and the return address above it.
    pub const FRAME_RECORD: Self = Self::pack(CfaKind::FramePointer, 16, SavedFramePointer::FromCfa, -2);

    /// As [`Rule::FRAME_RECORD`], on 64-bit ARM.
    pub const FRAME_RECORD_ANYWHERE: Self =
        Self::pack(CfaKind::FrameRecord, 0, SavedFramePointer::InRegister, 0);
    /// The return address in the link register, and nothing on the stack, as at the first instruction of a
    /// function of 64-bit ARM.
    pub const LINK_REGISTER: Self = Self::pack(CfaKind::StackPointer, 0, SavedFramePointer::InRegister, 0);

    const fn pack(kind: CfaKind, operand: i32, saved: SavedFramePointer, words: i16) -> Self {
        let high = (saved as u64) << 24 | (kind as u64) << 16 | words as u16 as u64;
        Self(high << 32 | operand as u32 as u64)
    }

    /// A rule whose caller's frame pointer is at the place that `saved` and `offset` (in bytes) define.
    /// `None` if the offset does not fit.
    pub(crate) fn new(kind: CfaKind, operand: i32, saved: SavedFramePointer, offset: i64) -> Option<Self> {
        if offset % 8 != 0 {
            return None;
        }
        Some(Self::pack(kind, operand, saved, i16::try_from(offset / 8).ok()?))
    }

    /// A rule of 64-bit ARM with these offsets of saved registers. `None` if an offset does not fit.
    pub(crate) fn with_saved(
        kind: CfaKind,
        operand: i32,
        frame_pointer: Option<i64>,
        return_address: Option<i64>,
    ) -> Option<Self> {
        let words = |offset: i64| (offset % 8 == 0).then_some(offset / 8);
        let (first, what) = match (frame_pointer, return_address) {
            (None, None) => (0, 0),
            (Some(offset), None) => (words(offset)?, FRAME_POINTER_SAVED),
            (None, Some(offset)) => (words(offset)?, RETURN_ADDRESS_SAVED),
            (Some(offset), Some(other)) => {
                let distance = i8::try_from(words(other.checked_sub(offset)?)?).ok()?;
                let fits = (-64..64).contains(&distance);
                (words(offset)?, fits.then_some(BOTH_SAVED | distance as u8)?)
            }
        };
        let plain = Self::pack(kind, operand, SavedFramePointer::InRegister, i16::try_from(first).ok()?);
        Some(Self(plain.0 | u64::from(what) << 56))
    }

    /// Where a frame of 64-bit ARM has saved registers.
    #[inline]
    pub fn saved_registers(self) -> SavedRegisters {
        let (offset, what) = (self.saved_offset(), (self.0 >> 56) as u8);
        let none = SavedRegisters { frame_pointer: None, return_address: None };
        match what {
            FRAME_POINTER_SAVED => SavedRegisters { frame_pointer: Some(offset), ..none },
            RETURN_ADDRESS_SAVED => SavedRegisters { return_address: Some(offset), ..none },
            _ if what & BOTH_SAVED != 0 => {
                let distance = i64::from((what << 1) as i8 >> 1) * 8;
                SavedRegisters { frame_pointer: Some(offset), return_address: Some(offset + distance) }
            }
            _ => none,
        }
    }

    /// Two halves as one operand. `None` if one does not fit.
    pub(crate) fn halves(low: i64, high: i64) -> Option<i32> {
        let (low, high) = (i16::try_from(low).ok()?, i16::try_from(high).ok()?);
        Some(i32::from(high) << 16 | i32::from(low as u16))
    }

    /// The same rule with another operand.
    #[inline]
    pub(crate) fn with_operand(self, operand: i32) -> Self {
        Self(self.0 >> 32 << 32 | u64::from(operand as u32))
    }

    /// The same rule with a CFA at a distance from the stack pointer.
    pub(crate) fn with_cfa_above_sp(self, distance: i32) -> Self {
        let other_kind = self.0 & !(0xff << 48);
        Self(other_kind | (CfaKind::StackPointer as u64) << 48).with_operand(distance)
    }

    /// Whether the CFA is a register + operand.
    #[inline]
    pub(crate) fn has_register_cfa(self) -> bool {
        let kind = (self.0 >> 48) as u8;
        kind == CfaKind::StackPointer as u8 || kind == CfaKind::FramePointer as u8
    }

    /// A hash of this many bits.
    #[inline]
    pub(crate) fn hash(self, bits: u32) -> usize {
        (self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - bits)) as usize
    }

    /// How to find the CFA.
    #[inline]
    pub fn kind(self) -> CfaKind {
        match (self.0 >> 48) as u8 {
            1 => CfaKind::End,
            2 => CfaKind::StackPointer,
            3 => CfaKind::FramePointer,
            4 => CfaKind::AtStackPointer,
            5 => CfaKind::AtFramePointer,
            6 => CfaKind::LinkageStub,
            7 => CfaKind::SignalFrame,
            8 => CfaKind::Slow,
            9 => CfaKind::FrameRecord,
            10 => CfaKind::Register,
            _ => CfaKind::Uncovered,
        }
    }

    /// Where the caller's frame pointer is.
    #[inline]
    pub fn saved_frame_pointer(self) -> SavedFramePointer {
        match (self.0 >> 56) as u8 {
            0 => SavedFramePointer::InRegister,
            1 => SavedFramePointer::FromCfa,
            _ => SavedFramePointer::FromFramePointer,
        }
    }

    /// The operand as a number of bytes.
    #[inline]
    pub fn operand(self) -> i64 {
        i64::from(self.0 as i32)
    }

    /// The low half of the operand.
    #[inline]
    pub fn low(self) -> i64 {
        i64::from(self.0 as i16)
    }

    /// The high half of the operand.
    #[inline]
    pub fn high(self) -> i64 {
        i64::from((self.0 >> 16) as i16)
    }

    /// The offset of the saved frame pointer in bytes.
    #[inline]
    pub fn saved_offset(self) -> i64 {
        i64::from((self.0 >> 32) as i16) * 8
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule")
            .field("kind", &self.kind())
            .field("operand", &self.operand())
            .field("saved", &self.saved_frame_pointer())
            .field("saved_offset", &self.saved_offset())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_keep_their_signs() {
        for (low, high) in [(0, 0), (-8, 8), (8, -8), (-1, -1), (32_767, -32_768)] {
            let operand = Rule::halves(low, high).unwrap();
            let rule = Rule::new(CfaKind::AtStackPointer, operand, SavedFramePointer::InRegister, 0).unwrap();
            assert_eq!((rule.low(), rule.high()), (low, high));
        }
        assert_eq!(Rule::halves(40_000, 0), None);
    }

    #[test]
    fn both_saved_registers_have_their_own_place() {
        let check = |frame_pointer, return_address, fits: bool| {
            let rule = Rule::with_saved(CfaKind::StackPointer, 64, frame_pointer, return_address);
            let expected = SavedRegisters { frame_pointer, return_address };
            assert_eq!(rule.map(Rule::saved_registers), fits.then_some(expected));
            assert!(rule.is_none_or(|rule| rule.kind() == CfaKind::StackPointer && rule.operand() == 64));
        };
        check(None, None, true);
        check(Some(-32), None, true);
        check(None, Some(-16), true);
        check(Some(-32), Some(-24), true);
        check(Some(-8), Some(-16), true);
        check(Some(0), Some(-512), true);
        check(Some(-512), Some(-8), true);
        check(Some(-520), Some(0), false);
        check(Some(-12), Some(-4), false);
        check(None, Some(1 << 20), false);
    }

    #[test]
    fn an_offset_that_does_not_fit_makes_no_rule() {
        let check = |offset, fits: bool| {
            let rule = Rule::new(CfaKind::StackPointer, 8, SavedFramePointer::FromCfa, offset);
            assert_eq!(rule.map(Rule::saved_offset), fits.then_some(offset));
        };
        check(-16, true);
        check(-12, false);
        check(-262_144, true);
        check(-262_152, false);
    }
}
