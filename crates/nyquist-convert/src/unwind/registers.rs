//! The registers of a sample in the form of the unwinder.

use crate::event::Registers;
use nyquist_object::Avma;
use nyquist_unwind as unwind;

/// The registers in the form of the unwinder. `None` for a 32-bit program.
pub(crate) fn unwindable(registers: &Registers) -> Option<unwind::Registers> {
    Some(match *registers {
        Registers::X86_64(values) => unwind::Registers::X86_64(values),
        Registers::X86_64Partial { values, known } => unwind::Registers::X86_64Partial { values, known },
        Registers::Aarch64(ref values) => unwind::Registers::Aarch64(**values),
        Registers::Aarch64Partial { ref values, known } => {
            unwind::Registers::Aarch64Partial { values: **values, known }
        }
        Registers::Bits32 { .. } => return None,
    })
}

/// The instruction pointer of a 32-bit program.
pub(super) fn code_32(registers: &Registers) -> Option<Avma> {
    match *registers {
        Registers::Bits32 { ip } => Some(Avma(u64::from(ip))),
        _ => None,
    }
}
