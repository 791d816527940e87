//! The known registers of a thread that waits in the kernel.

use nyquist_convert::event::Registers;

/// DWARF register numbers (DWARF for the Arm 64-bit Architecture, section 4.1). A system call's arguments are
/// in x0 to x5.
const SP: usize = 31;
const PC: usize = 32;

/// The registers of a thread whose system call has these arguments.
pub(crate) fn registers(
    arguments: Option<[u64; 6]>,
    stack_pointer: u64,
    instruction_pointer: u64,
) -> Registers {
    let mut values = Box::new([0; 33]);
    let mut known = 0;
    let arguments = arguments.into_iter().flatten().enumerate();
    for (register, value) in arguments.chain([(SP, stack_pointer), (PC, instruction_pointer)]) {
        values[register] = value;
        known |= 1 << register;
    }
    Registers::Aarch64Partial { values, known }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_call_makes_its_arguments_known() {
        let of = |arguments| match registers(arguments, 31, 32) {
            Registers::Aarch64Partial { values, known } => (*values, known),
            other => panic!("{other:?}"),
        };
        let (values, known) = of(Some([10, 11, 12, 13, 14, 15]));
        assert_eq!(values[..6], [10, 11, 12, 13, 14, 15]);
        assert_eq!((values[31], values[32], known), (31, 32, 0b1_1000_0000 << 24 | 0x3f));
        assert_eq!(of(None).1, 0b1_1000_0000 << 24);
    }
}
