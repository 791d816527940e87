//! Entries that describe a function completely ("Packed unwind data").

use super::codes::{LINK, NONE, Operation, UnusableReason};

/// How a function treats its frame record and the return address (`CR`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrameChain {
    /// No frame record, and the return address is not stored.
    None,
    /// No frame record; the return address is stored with the other registers.
    ReturnAddress,
    /// A frame record, with the return address signed.
    Signed,
    /// A frame record.
    Plain,
}

/// The fields of an entry's word.
#[derive(Clone, Copy, Debug)]
pub(super) struct PackedUnwindData {
    /// How many instructions the function has.
    pub(super) len: u32,
    /// Whether it has a prologue and, at its end, an epilogue: other parts of functions have run theirs
    /// elsewhere.
    pub(super) has_prologue: bool,
    record: FrameChain,
    /// How many of x19 to x28 are stored.
    registers: u8,
    /// How many of d8 to d15 are stored.
    vectors: u8,
    /// Whether x0 to x7 are stored.
    homes: bool,
    /// The size of the frame in bytes.
    frame: u32,
}

impl PackedUnwindData {
    /// The fields of a word whose two lowest bits are 1 or 2.
    pub(super) fn new(word: u32) -> Result<Self, UnusableReason> {
        let field = |low: u32, bits: u32| word >> low & ((1 << bits) - 1);
        let record = match field(21, 2) {
            0 => FrameChain::None,
            1 => FrameChain::ReturnAddress,
            2 => FrameChain::Signed,
            _ => FrameChain::Plain,
        };
        let registers = field(16, 4) as u8;
        if registers > 10 || field(0, 2) == 3 {
            return Err("its packed unwind data is of an unknown kind");
        }
        let vectors = match field(13, 3) as u8 {
            0 => 0,
            count => count + 1,
        };
        let (len, has_prologue) = (field(2, 11), field(0, 2) == 1);
        let (homes, frame) = (field(20, 1) != 0, field(23, 9) * 16);
        Ok(Self { len, has_prologue, record, registers, vectors, homes, frame })
    }

    fn has_record(self) -> bool {
        matches!(self.record, FrameChain::Signed | FrameChain::Plain)
    }

    /// The size of the stored general registers in bytes, including the return address if it is stored with
    /// them.
    fn general(self) -> u16 {
        u16::from(self.registers + u8::from(self.record == FrameChain::ReturnAddress)) * 8
    }

    /// The size of all stored registers in bytes, without the frame record.
    fn saved(self) -> u16 {
        let vectors = u16::from(self.vectors) * 8;
        (self.general() + vectors + if self.homes { 64 } else { 0 }).next_multiple_of(16)
    }

    /// The operations of the prologue, the last one first, and an end ("Canonical prologs").
    pub(super) fn prologue(self) -> Result<Vec<Operation>, UnusableReason> {
        let mut operations = self.locals()?;
        if self.has_record() {
            operations.insert(0, Operation::SetFrame(0));
        }
        operations.extend(self.stores(true));
        Ok(operations)
    }

    /// The operations of the epilogue, in order. Unlike the prologue, it does not set the frame pointer, and
    /// does not touch the argument registers.
    pub(super) fn epilogue(self) -> Result<Vec<Operation>, UnusableReason> {
        let mut operations = self.locals()?;
        operations.extend(self.stores(false));
        Ok(operations)
    }

    /// Undoes the allocation of local variables, and the frame record at its bottom.
    fn locals(self) -> Result<Vec<Operation>, UnusableReason> {
        let locals =
            self.frame.checked_sub(self.saved().into()).ok_or("its frame has no room for its registers")?;
        let mut operations = Vec::new();
        match (self.has_record(), u16::try_from(locals)) {
            (true, Ok(bytes @ ..=512)) => {
                operations.push(Operation::pushed_pair(super::codes::FRAME_POINTER, LINK, bytes));
                return Ok(operations);
            }
            (true, _) => operations.push(Operation::pair(super::codes::FRAME_POINTER, LINK, 0)),
            (false, _) => {}
        }
        match locals {
            0 => {}
            1..=4080 => operations.push(Operation::Allocate(locals)),
            _ => operations.extend([locals - 4080, 4080].map(Operation::Allocate)),
        }
        Ok(operations)
    }

    /// Undoes the stores of registers. The first store allocates the bytes of all of them.
    fn stores(self, is_prologue: bool) -> Vec<Operation> {
        let mut stores: Vec<([u8; 2], u16)> = Vec::new();
        let with_link = self.record == FrameChain::ReturnAddress;
        for number in (0..self.registers).step_by(2) {
            let (first, is_last) = (19 + number, number + 1 == self.registers);
            let second = match (is_last, with_link) {
                (false, _) => first + 1,
                (true, true) => LINK,
                (true, false) => NONE,
            };
            stores.push(([first, second], u16::from(number) * 8));
        }
        if with_link && self.registers.is_multiple_of(2) {
            stores.push(([LINK, NONE], u16::from(self.registers) * 8));
        }
        for number in (0..self.vectors).step_by(2) {
            stores.push(([NONE; 2], self.general() + u16::from(number) * 8));
        }
        // An epilogue has no stores of arguments, unless the first of them allocated the bytes.
        let homes = match (self.homes, is_prologue) {
            (false, _) => 0,
            (true, true) => 4,
            (true, false) => usize::from(stores.is_empty()),
        };
        stores.extend(std::iter::repeat_n(([NONE; 2], 0), homes));
        let mut operations: Vec<_> =
            stores.iter().map(|&([first, second], offset)| Operation::pair(first, second, offset)).collect();
        if let (Some(operation), Some(([first, second], _))) = (operations.first_mut(), stores.first()) {
            *operation = Operation::pushed_pair(*first, *second, self.saved());
        }
        if self.record == FrameChain::Signed {
            operations.insert(0, Operation::Nothing);
        }
        operations.reverse();
        operations.push(Operation::End);
        operations
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Operation as Op;

    /// The word of a function of 64 instructions.
    fn word(record: u32, registers: u32, vectors: u32, homes: u32, frame: u32) -> u32 {
        1 | 64 << 2 | vectors << 13 | registers << 16 | homes << 20 | record << 21 | (frame / 16) << 23
    }

    #[track_caller]
    fn check(word: u32, prologue: &[Operation], epilogue: &[Operation]) {
        let packed = PackedUnwindData::new(word).unwrap();
        assert_eq!((packed.len, packed.has_prologue), (64, true));
        assert_eq!(packed.prologue().unwrap(), prologue);
        assert_eq!(packed.epilogue().unwrap(), epilogue);
    }

    #[test]
    fn the_frame_record_is_at_the_bottom() {
        let first = Op::pushed_pair(19, 20, 16);
        let record = Op::pushed_pair(29, 30, 32);
        check(word(3, 2, 0, 0, 48), &[Op::SetFrame(0), record, first, Op::End], &[record, first, Op::End]);
        let (record, signed) = (Op::pair(29, 30, 0), Op::Nothing);
        let rest = [record, Op::Allocate(1024), first, signed, Op::End];
        check(word(2, 2, 0, 0, 1040), &[&[Op::SetFrame(0)][..], &rest].concat(), &rest);
        let rest = [record, Op::Allocate(16), Op::Allocate(4080), Op::End];
        check(word(3, 0, 0, 0, 4096), &[&[Op::SetFrame(0)][..], &rest].concat(), &rest);
    }

    #[test]
    fn the_return_address_joins_the_last_register() {
        let all = [Op::Allocate(32), Op::pair(21, 30, 16), Op::pushed_pair(19, 20, 32), Op::End];
        check(word(1, 3, 0, 0, 64), &all, &all);
        let all = [Op::pair(30, NONE, 16), Op::pushed_pair(19, 20, 32), Op::End];
        check(word(1, 2, 0, 0, 32), &all, &all);
        let all = [Op::pushed_pair(30, NONE, 16), Op::End];
        check(word(1, 0, 0, 0, 16), &all, &all);
        let all = [Op::pushed_pair(19, 30, 16), Op::End];
        check(word(1, 1, 0, 0, 16), &all, &all);
    }

    #[test]
    fn vectors_and_arguments_follow_the_registers() {
        let all = [Op::pair(NONE, NONE, 24), Op::pair(NONE, NONE, 8), Op::pushed_pair(19, NONE, 32), Op::End];
        check(word(0, 1, 2, 0, 32), &all, &all);
        let (home, vectors) = (Op::pair(NONE, NONE, 0), Op::pushed_pair(NONE, NONE, 80));
        check(word(0, 0, 1, 1, 80), &[home, home, home, home, vectors, Op::End], &[vectors, Op::End]);
        let first = Op::pushed_pair(NONE, NONE, 64);
        check(word(0, 0, 0, 1, 64), &[home, home, home, first, Op::End], &[first, Op::End]);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(PackedUnwindData::new(word(0, 11, 0, 0, 96)).is_err());
        assert!(PackedUnwindData::new(word(0, 0, 0, 0, 0) | 3).is_err());
        assert!(PackedUnwindData::new(word(0, 10, 0, 0, 64)).unwrap().prologue().is_err());
    }
}
