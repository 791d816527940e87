//! A stopped thread's registers, in the order of the kernel's `user_regs_struct` (`arch/x86/include/asm/user_64.h`).

use std::io;

use nyquist_convert::event::Registers;

use crate::linux::sys::ptrace;
use crate::linux::thread_state::SystemCall;

/// DWARF's register order (System V ABI for AMD64, figure 3.36), as indices in the kernel's order.
const DWARF_ORDER: [usize; 17] = [10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16];

/// The index of the instruction pointer.
const RIP: usize = 16;
/// The index of the stack pointer.
const RSP: usize = 19;
/// The index of a system call's number and its result.
const RAX: usize = 10;
/// The index of the number of the system call that the thread is leaving; -1 if it is not leaving one.
const ORIG_RAX: usize = 15;
/// The indices of a system call's arguments (syscall(2)).
const ARGUMENTS: [usize; 6] = [14, 13, 12, R10, 9, 8];
/// The index of a system call's fourth argument.
const R10: usize = 7;

/// The length of the system call instruction.
const SYSCALL_LEN: u64 = 2;

/// The bytes of a 32-bit program's registers: 17 words of four bytes (`user_regs_struct32`).
const BYTES_32: usize = 17 * 4;

/// A stopped thread's registers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TracedRegisters {
    words: [u64; 27],
    /// How many bytes the kernel returned.
    len: usize,
}

/// Whether the registers show that the thread is leaving a call. Otherwise, a call that has ended with
/// `EINTR` looks like the code after it.
pub(crate) const SHOW_CALLS: bool = true;

/// Whether all arguments of a call that the thread is leaving are still in their registers.
#[cfg(test)]
pub(crate) const KEEP_ARGUMENTS: bool = true;

impl TracedRegisters {
    /// Reads the registers of a stopped thread.
    pub(crate) fn read(tid: u32) -> io::Result<Self> {
        let mut words = [0; 27];
        let len = ptrace::registers(tid, &mut words)?;
        Ok(Self { words, len })
    }

    /// Writes these registers to the thread.
    pub(crate) fn write(&self, tid: u32) -> io::Result<()> {
        ptrace::set_registers(tid, &self.words)
    }

    /// The address of the innermost stack frame.
    pub(crate) fn stack_pointer(&self) -> u64 {
        if self.len == BYTES_32 { 0 } else { self.words[RSP] }
    }

    /// The instruction pointer.
    pub(crate) fn instruction_pointer(&self) -> u64 {
        self.words[RIP]
    }

    /// The registers in the form of the event model.
    pub(crate) fn event_registers(&self) -> Registers {
        if self.len == BYTES_32 {
            // The instruction pointer is the thirteenth word of four bytes.
            return Registers::Bits32 { ip: self.words[6] as u32 };
        }
        Registers::X86_64(DWARF_ORDER.map(|place| self.words[place]))
    }

    /// Whether the thread is in a system call, or about to leave one. Also true for a 32-bit program, for
    /// which this is unknown.
    pub(crate) fn is_in_call(&self) -> bool {
        self.len == BYTES_32 || self.words[ORIG_RAX].cast_signed() >= 0
    }

    /// The system call that the thread is in, or is about to leave. Unknown for a 32-bit program.
    pub(crate) fn call(&self) -> Option<SystemCall> {
        let number = self.words[ORIG_RAX].cast_signed();
        let arguments = ARGUMENTS.map(|place| self.words[place]);
        (self.len > BYTES_32 && number >= 0).then_some(SystemCall { number, arguments })
    }

    /// The number of the system call that the thread is leaving with `EINTR`.
    pub(crate) fn interrupted_call(&self) -> Option<i64> {
        let number = self.words[ORIG_RAX].cast_signed();
        let interrupted = self.words[RAX].cast_signed() == -i64::from(libc::EINTR);
        (self.len > BYTES_32 && number >= 0 && interrupted).then_some(number)
    }

    /// A system call's fourth argument.
    pub(crate) fn fourth_argument(&self) -> u64 {
        self.words[R10]
    }

    /// Changes the fourth argument.
    pub(crate) fn set_fourth_argument(&mut self, value: u64) {
        self.words[R10] = value;
    }

    /// Makes the thread restart its system call with the same arguments. Returns whether it will. All
    /// arguments are still in their registers, so none needs to be supplied.
    pub(crate) fn repeat_call(&mut self, _first_argument: impl FnOnce() -> Option<u64>) -> bool {
        self.words[RAX] = self.words[ORIG_RAX];
        // The thread is not leaving a system call any more, so the kernel does not restart one itself.
        self.words[ORIG_RAX] = u64::MAX;
        self.words[RIP] = self.words[RIP].wrapping_sub(SYSCALL_LEN);
        true
    }

    /// A thread that leaves a system call with a result.
    #[cfg(test)]
    pub(crate) fn leaving(number: i64, result: i64) -> Self {
        let mut stopped = Self { words: std::array::from_fn(|place| place as u64), len: 27 * 8 };
        stopped.words[ORIG_RAX] = number.cast_unsigned();
        stopped.words[RAX] = result.cast_unsigned();
        stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_come_in_dwarfs_order() {
        let stopped = TracedRegisters { words: std::array::from_fn(|place| place as u64), len: 27 * 8 };
        // rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15, rip, by their indices in `user_regs_struct`.
        let expected = [10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16];
        assert_eq!(stopped.event_registers(), Registers::X86_64(expected));
        assert_eq!((stopped.stack_pointer(), stopped.instruction_pointer()), (19, 16));
    }

    #[test]
    fn a_32_bit_program_has_an_instruction_pointer() {
        let mut stopped = TracedRegisters { words: [0; 27], len: 68 };
        stopped.words[6] = 0x1111_2222_0804_8000;
        assert_eq!(stopped.event_registers(), Registers::Bits32 { ip: 0x0804_8000 });
        assert_eq!(stopped.stack_pointer(), 0);
    }

    #[test]
    fn a_call_has_its_number_and_arguments() {
        let stopped = TracedRegisters { words: std::array::from_fn(|place| place as u64), len: 27 * 8 };
        let call = SystemCall { number: 15, arguments: [14, 13, 12, 7, 9, 8] };
        assert_eq!(stopped.call(), Some(call));
        assert_eq!(TracedRegisters::default().call(), None);
    }

    #[test]
    fn an_interrupted_call_is_repeated() {
        let mut stopped = TracedRegisters::leaving(232, -4);
        assert_eq!(stopped.interrupted_call(), Some(232));
        assert!(stopped.repeat_call(|| None));
        assert_eq!((stopped.words[RAX], stopped.words[RIP]), (232, 14));
        assert_eq!(stopped.interrupted_call(), None);
    }

    #[test]
    fn other_results_are_none_of_an_interrupted_call() {
        for (number, result) in [(232, 0), (232, -512), (232, -11), (-1, -4)] {
            assert_eq!(
                TracedRegisters::leaving(number, result).interrupted_call(),
                None,
                "{number} {result}"
            );
        }
    }

    #[test]
    fn code_between_calls_is_in_none() {
        let leaving = TracedRegisters::leaving;
        assert!(leaving(0, 64).is_in_call() && leaving(232, -4).is_in_call());
        assert!(!leaving(-1, 64).is_in_call());
        assert!(TracedRegisters { len: 68, ..leaving(-1, 0) }.is_in_call());
    }
}
