//! The operations of a prologue's instructions, and the codes that describe them ("Unwind codes").

/// Why the unwind information of a function is unusable.
pub(super) type UnusableReason = &'static str;

/// The most codes of a prologue or an epilogue, if it stores all general and vector registers one by one, and
/// moves the stack pointer at each.
const MAX_SEQUENCE: usize = 128;

/// The numbers of registers in instructions.
pub(super) const FRAME_POINTER: u8 = 29;
pub(super) const LINK: u8 = 30;
/// No general register.
pub(super) const NONE: u8 = 31;

/// The operation of a prologue's instruction, which has to be undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Allocates bytes of the stack.
    Allocate(u32),
    /// Stores registers.
    Save(RegisterSave),
    /// Sets the frame pointer to this many bytes above the stack pointer.
    SetFrame(u16),
    /// Nothing that has to be undone. This includes signing of the return address, because the signature is
    /// removed with the non-address bits.
    Nothing,
    /// Not an instruction: an interrupt has stored the stack pointer and the instruction pointer.
    MachineFrame,
    /// Not an instruction: all registers have been stored.
    Context,
    /// Not an instruction: the return address is where the caller was interrupted.
    Interrupted,
    /// The end of the function's own codes. The codes of the function that it is a part of follow (`end_c`).
    PartEnd,
    /// The end of all codes.
    End,
}

/// A store of general registers. Stores of vector registers have no registers here, because no step needs
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RegisterSave {
    /// The registers' numbers, or [`NONE`].
    pub(super) registers: [u8; 2],
    /// The offset of the first one above the stack pointer after the instruction. The second one is in the
    /// next eight bytes.
    pub(super) offset: u16,
    /// How many bytes of the stack the instruction has allocated.
    pub(super) moved: u16,
}

impl Operation {
    /// Stores two registers at an offset.
    pub(super) fn pair(first: u8, second: u8, offset: u16) -> Self {
        Self::Save(RegisterSave { registers: [first, second], offset, moved: 0 })
    }

    /// Stores two registers at the stack pointer after moving it.
    pub(super) fn pushed_pair(first: u8, second: u8, moved: u16) -> Self {
        Self::Save(RegisterSave { registers: [first, second], offset: 0, moved })
    }

    /// Whether it stands for an instruction. The three operations of interrupts do not.
    pub(super) fn is_instruction(self) -> bool {
        !matches!(self, Self::MachineFrame | Self::Context | Self::Interrupted)
    }

    /// Whether no instruction of the same prologue follows.
    pub(super) fn is_end(self) -> bool {
        matches!(self, Self::End | Self::PartEnd)
    }
}

/// The operations of codes, in order, each with the offset of its code. Codes after the last end are padding.
pub(super) fn decode(codes: &[u8]) -> Result<Vec<(usize, Operation)>, UnusableReason> {
    let mut operations: Vec<(usize, Operation)> = Vec::new();
    // Operations whose registers depend on the next code, which is that of the previous store.
    let mut next_pairs = Vec::new();
    let (mut at, mut since_end) = (0, 0);
    while let Some(&first) = codes.get(at) {
        let len = len(first);
        let Some(code) = codes.get(at..at + len) else {
            // Padding can have any value, so a truncated code is not one of the function.
            break;
        };
        if first == 0xe6 {
            next_pairs.push(operations.len());
        }
        let Some(operation) = operation(code) else {
            // Bytes after the last end are padding.
            if since_end == 0 && !operations.is_empty() {
                break;
            }
            return Err("it has an unknown code");
        };
        operations.push((at, operation));
        at += len;
        since_end = if operation == Operation::End { 0 } else { since_end + 1 };
        if since_end > MAX_SEQUENCE {
            return Err("it has more codes than a prologue has instructions");
        }
    }
    for place in next_pairs.into_iter().rev() {
        let before = operations.get(place + 1).map(|(_, operation)| *operation);
        if let Some((_, operation)) = operations.get_mut(place) {
            *operation = pair_after(before);
        }
    }
    Ok(operations)
}

/// The size of a code in bytes.
fn len(first: u8) -> usize {
    match first {
        0xc0..=0xdf | 0xe2 | 0xf8 => 2,
        0xe7 | 0xf9 => 3,
        0xe0 | 0xfa => 4,
        0xfb => 5,
        _ => 1,
    }
}

/// The operation of a complete code.
fn operation(code: &[u8]) -> Option<Operation> {
    let number = code.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
    // The places of registers and stack sizes are counted in units of eight bytes.
    let units = |bits: u32| (number & ((1 << bits) - 1)) as u16 * 8;
    let register = |shift: u32, bits: u32| (19 + (number >> shift & ((1 << bits) - 1))) as u8;
    let push = |first, second, moved: u16| Operation::pushed_pair(first, second, moved);
    Some(match *code.first()? {
        0x00..=0x1f => Operation::Allocate((number & 0x1f) * 16),
        0x20..=0x3f => push(19, 20, units(5)),
        0x40..=0x7f => Operation::pair(FRAME_POINTER, LINK, units(6)),
        0x80..=0xbf => push(FRAME_POINTER, LINK, units(6) + 8),
        0xc0..=0xc7 => Operation::Allocate((number & 0x7ff) * 16),
        0xc8..=0xcb => Operation::pair(register(6, 4), register(6, 4) + 1, units(6)),
        0xcc..=0xcf => push(register(6, 4), register(6, 4) + 1, units(6) + 8),
        0xd0..=0xd3 => Operation::pair(register(6, 4), NONE, units(6)),
        0xd4 | 0xd5 => push(register(5, 4), NONE, units(5) + 8),
        0xd6 | 0xd7 => Operation::pair(19 + 2 * (number >> 6 & 7) as u8, LINK, units(6)),
        0xd8 | 0xd9 | 0xdc | 0xdd => Operation::pair(NONE, NONE, 0),
        0xda | 0xdb => push(NONE, NONE, units(6) + 8),
        0xde => push(NONE, NONE, units(5) + 8),
        0xe0 => Operation::Allocate((number & 0xff_ffff) * 16),
        0xe1 => Operation::SetFrame(0),
        0xe2 => Operation::SetFrame(units(8)),
        0xe3 | 0xe6 | 0xf8..=0xfc => Operation::Nothing,
        0xe4 => Operation::End,
        0xe5 => Operation::PartEnd,
        0xe7 => any_register(number)?,
        0xe9 => Operation::MachineFrame,
        0xea => Operation::Context,
        0xec => Operation::Interrupted,
        // Registers whose size depends on the machine, and states with an unpublished layout.
        _ => return None,
    })
}

/// `save_any_reg`: whether it has two registers, whether the stack pointer is moved, the first register, its
/// kind and the offset.
fn any_register(code: u32) -> Option<Operation> {
    let (is_pair, moves) = (code & 0x4000 != 0, code & 0x2000 != 0);
    let (first, kind, place) = ((code >> 8 & 31) as u8, code >> 6 & 3, (code & 63) as u16);
    if code & 0x8000 != 0 || kind == 3 {
        return None;
    }
    let registers = match (kind, is_pair) {
        (0, true) => [first, (first + 1).min(NONE)],
        (0, false) => [first, NONE],
        _ => [NONE, NONE],
    };
    if moves {
        return Some(Operation::Save(RegisterSave { registers, offset: 0, moved: (place + 1) * 16 }));
    }
    let unit = if is_pair || kind == 2 { 16 } else { 8 };
    Some(Operation::Save(RegisterSave { registers, offset: place * unit, moved: 0 }))
}

/// `save_next`: stores the next pair of registers after those of another store.
fn pair_after(before: Option<Operation>) -> Operation {
    match before {
        Some(Operation::Save(RegisterSave { registers: [_, second @ ..LINK], offset, .. })) => {
            Operation::pair(second + 1, (second + 2).min(NONE), offset.saturating_add(16))
        }
        _ => Operation::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(codes: &[u8], expected: &[Operation]) {
        let found = decode(codes).map(|found| found.into_iter().map(|(_, operation)| operation).collect());
        assert_eq!(found, Ok(expected.to_vec()), "{codes:x?}");
    }

    #[test]
    fn every_code_has_its_operation() {
        use Operation as Op;
        check(&[0x04], &[Op::Allocate(0x40)]);
        check(&[0x24], &[Op::pushed_pair(19, 20, 32)]);
        check(&[0x42], &[Op::pair(29, 30, 16)]);
        check(&[0x81], &[Op::pushed_pair(29, 30, 16)]);
        check(&[0xc1, 0x01], &[Op::Allocate(0x1010)]);
        check(&[0xc8, 0x82], &[Op::pair(21, 22, 16)]);
        check(&[0xcc, 0x83], &[Op::pushed_pair(21, 22, 32)]);
        check(&[0xd2, 0xc1], &[Op::pair(30, NONE, 8)]);
        check(&[0xd4, 0x21], &[Op::pushed_pair(20, NONE, 16)]);
        check(&[0xd6, 0x42], &[Op::pair(21, 30, 16)]);
        check(&[0xd8, 0x42], &[Op::pair(NONE, NONE, 0)]);
        check(&[0xda, 0x03], &[Op::pushed_pair(NONE, NONE, 32)]);
        check(&[0xde, 0x01], &[Op::pushed_pair(NONE, NONE, 16)]);
        check(&[0xe0, 0x01, 0x00, 0x00], &[Op::Allocate(0x10_0000)]);
        check(&[0xe1, 0xe2, 0x03], &[Op::SetFrame(0), Op::SetFrame(24)]);
        check(&[0xe3, 0xfc, 0xe5, 0xe4], &[Op::Nothing, Op::Nothing, Op::PartEnd, Op::End]);
        check(&[0xe9, 0xea, 0xec], &[Op::MachineFrame, Op::Context, Op::Interrupted]);
        check(&[0xe7, 0x41, 0x02], &[Op::pair(1, 2, 32)]);
        check(&[0xe7, 0x3e, 0x01], &[Op::pushed_pair(30, NONE, 32)]);
        check(&[0xe7, 0x44, 0x81], &[Op::pair(NONE, NONE, 16)]);
    }

    #[test]
    fn the_next_pair_is_that_after_the_store_before() {
        let [x19, x21, x23] =
            [19, 21, 23].map(|first| Operation::pair(first, first + 1, (first as u16 - 19) * 8));
        check(&[0xe6, 0xe6, 0xc8, 0x00, 0xe4], &[x23, x21, x19, Operation::End]);
        let pushed = Operation::pushed_pair(19, 20, 48);
        check(&[0xe6, 0xe6, 0x26, 0xe4], &[x23, x21, pushed, Operation::End]);
        // x29 and x30 come after x27 and x28, and no known register comes after these.
        let last = [Operation::pair(29, 30, 16), Operation::pair(27, 28, 0)];
        check(&[0xe6, 0xca, 0x00], &last);
        check(&[0xe6, 0x40], &[Operation::Nothing, Operation::pair(29, 30, 0)]);
    }

    #[test]
    fn padding_behind_the_last_end_is_ignored() {
        check(&[0x01, 0xe4, 0xe8], &[Operation::Allocate(16), Operation::End]);
        check(&[0xe4, 0xe0, 0x00], &[Operation::End]);
        assert!(decode(&[0xe8]).is_err());
        assert!(decode(&[0xdf, 0x01, 0xe4]).is_err());
        assert!(decode(&[0xe3; 200]).is_err());
        check(&[], &[]);
    }
}
