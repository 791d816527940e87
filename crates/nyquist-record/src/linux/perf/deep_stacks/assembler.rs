//! Assembles instructions for the kernel (Linux's `Documentation/bpf/standardization/instruction-set.rst`).

use std::collections::HashMap;
use std::os::fd::{AsRawFd as _, BorrowedFd};

use crate::linux::sys::bpf::Instruction;

/// A register. The first five are those of arguments, and lose their values in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Register(pub(super) u8);

/// The result of a call.
pub(super) const R0: Register = Register(0);
/// The end of the program's memory, which extends below it.
pub(super) const FRAME: Register = Register(10);

/// The second operand.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operand {
    Constant(i32),
    Of(Register),
}

/// An operation with a register and an operand, on 64 bits.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    Add = 0x07,
    Subtract = 0x17,
    And = 0x57,
    ShiftRight = 0x77,
    Xor = 0xa7,
    Set = 0xb7,
}

/// A comparison of a register and an operand without signs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Comparison {
    Equal = 0x15,
    Greater = 0x25,
    NotEqual = 0x55,
    AtMost = 0xb5,
}

/// A program that grows. Places to jump to have names.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    code: Vec<Instruction>,
    places: HashMap<&'static str, usize>,
    jumps: Vec<(usize, &'static str)>,
}

impl Assembler {
    fn push(&mut self, code: u8, [to, from]: [Register; 2], offset: i16, constant: i32) {
        let registers = from.0 << 4 | to.0;
        self.code.push(Instruction { code, registers, offset, constant });
    }

    fn push_with(&mut self, code: u8, register: Register, operand: Operand) {
        match operand {
            Operand::Constant(constant) => self.push(code, [register, R0], 0, constant),
            // This bit says that the operand is a register.
            Operand::Of(other) => self.push(code | 8, [register, other], 0, 0),
        }
    }

    pub(super) fn compute(&mut self, operation: Operation, register: Register, operand: Operand) {
        self.push_with(operation as u8, register, operand);
    }

    /// Loads eight bytes from an address plus an offset.
    pub(super) fn load(&mut self, to: Register, (address, offset): (Register, i16)) {
        self.push(0x79, [to, address], offset, 0);
    }

    /// Stores eight bytes.
    pub(super) fn store(&mut self, (address, offset): (Register, i16), from: Register) {
        self.push(0x7b, [address, from], offset, 0);
    }

    /// Loads the address of a map.
    pub(super) fn load_map(&mut self, to: Register, map: BorrowedFd<'_>) {
        // In place of the source register: the constant is a map's descriptor.
        self.push(0x18, [to, Register(1)], 0, map.as_raw_fd());
        self.push(0, [R0, R0], 0, 0);
    }

    /// Calls a function of the kernel.
    pub(super) fn call(&mut self, function: i32) {
        self.push(0x85, [R0, R0], 0, function);
    }

    pub(super) fn jump(&mut self, place: &'static str) {
        self.jumps.push((self.code.len(), place));
        self.push(0x05, [R0, R0], 0, 0);
    }

    pub(super) fn jump_if(
        &mut self,
        (register, comparison, operand): (Register, Comparison, Operand),
        place: &'static str,
    ) {
        self.jumps.push((self.code.len(), place));
        self.push_with(comparison as u8, register, operand);
    }

    pub(super) fn exit(&mut self) {
        self.push(0x95, [R0, R0], 0, 0);
    }

    /// Names the next instruction.
    pub(super) fn place(&mut self, name: &'static str) {
        self.places.insert(name, self.code.len());
    }

    /// The program.
    pub(super) fn finish(mut self) -> Vec<Instruction> {
        for (from, place) in &self.jumps {
            let to = self.places.get(place).copied().unwrap_or_default();
            self.code[*from].offset = (to as i64 - *from as i64 - 1) as i16;
        }
        self.code
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes are those of the kernel's documentation.
    #[test]
    fn instructions_are_encoded_as_documented() {
        let mut code = Assembler::default();
        code.place("start");
        code.compute(Operation::Set, Register(7), Operand::Constant(-2));
        code.compute(Operation::Add, Register(7), Operand::Of(Register(1)));
        code.load(Register(2), (FRAME, -16));
        code.store((FRAME, -8), Register(7));
        code.jump_if((Register(7), Comparison::AtMost, Operand::Of(Register(2))), "end");
        code.call(14);
        code.jump("start");
        code.place("end");
        code.exit();
        let shown = |it: Instruction| (it.code, it.registers, it.offset, it.constant);
        let code: Vec<_> = code.finish().into_iter().map(shown).collect();
        let expected = [
            (0xb7, 0x07, 0, -2),
            (0x0f, 0x17, 0, 0),
            (0x79, 0xa2, -16, 0),
            (0x7b, 0x7a, -8, 0),
            (0xbd, 0x27, 2, 0),
            (0x85, 0x00, 0, 14),
            (0x05, 0x00, -7, 0),
            (0x95, 0x00, 0, 0),
        ];
        assert_eq!(code, expected);
    }
}
