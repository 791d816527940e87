//! The known registers of a thread that waits in the kernel.

use nyquist_convert::event::Registers;

/// The registers of a system call's arguments in DWARF numbering: rdi, rsi, rdx, r10, r8, r9.
const ARGUMENTS: [usize; 6] = [5, 4, 1, 10, 8, 9];
const RSP: usize = 7;
const RIP: usize = 16;

/// The registers of a thread whose system call has these arguments.
pub(crate) fn registers(
    arguments: Option<[u64; 6]>,
    stack_pointer: u64,
    instruction_pointer: u64,
) -> Registers {
    let mut values = [0; 17];
    let mut known = 0;
    let arguments = ARGUMENTS.into_iter().zip(arguments.into_iter().flatten());
    for (register, value) in arguments.chain([(RSP, stack_pointer), (RIP, instruction_pointer)]) {
        values[register] = value;
        known |= 1 << register;
    }
    Registers::X86_64Partial { values, known }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_call_makes_its_arguments_known() {
        let bit = |register: usize| 1_u32 << register;
        let Registers::X86_64Partial { values, known } = registers(Some([10, 11, 12, 13, 14, 15]), 16, 17)
        else {
            panic!("some are not known")
        };
        assert_eq!(
            [5, 4, 1, 10, 8, 9, 7, 16].map(|register| values[register]),
            [10, 11, 12, 13, 14, 15, 16, 17]
        );
        assert_eq!(known, [1, 4, 5, 7, 8, 9, 10, 16].map(bit).iter().sum::<u32>());
        let Registers::X86_64Partial { known, .. } = registers(None, 16, 17) else {
            panic!("some are not known")
        };
        assert_eq!(known, bit(7) | bit(16));
    }
}
