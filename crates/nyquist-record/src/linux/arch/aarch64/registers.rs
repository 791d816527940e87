//! A stopped thread's registers, in the order of the kernel's `user_pt_regs`
//! (`arch/arm64/include/uapi/asm/ptrace.h`): x0 to x30, the stack pointer, the instruction pointer, the
//! processor state.

use std::io;

use nyquist_convert::event::Registers;

use crate::linux::sys::ptrace;
use crate::linux::thread_state::SystemCall;

/// The index of a system call's first argument, and of its result.
const X0: usize = 0;
/// The index of a system call's fourth argument.
const X3: usize = 3;
/// The index of a system call's number.
const X8: usize = 8;
/// The index of the stack pointer.
const SP: usize = 31;
/// The index of the instruction pointer.
const PC: usize = 32;

/// The length of an instruction.
const INSTRUCTION_LEN: u64 = 4;

/// The system call instruction.
const SVC: u32 = 0xd400_0001;

/// The bytes of a 32-bit program's registers: 18 words of four bytes (`compat_elf_gregset_t` in
/// `arch/arm64/include/asm/elf.h`).
const BYTES_32: usize = 18 * 4;

/// The number of words.
const WORDS: usize = 34;

/// Whether the registers show that the thread is leaving a call. Otherwise, a call that has ended with
/// `EINTR` looks like the code after it, because the kernel clears the call before a tracer sees the thread
/// (`arch/arm64/kernel/signal.c`, `do_signal`).
pub(crate) const SHOW_CALLS: bool = false;

/// Whether all arguments of a call that the thread is leaving are still in their registers.
#[cfg(test)]
pub(crate) const KEEP_ARGUMENTS: bool = false;

/// A stopped thread's registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TracedRegisters {
    words: [u64; WORDS],
    /// How many bytes the kernel returned.
    len: usize,
    /// The previous instruction and the next one.
    code: [u32; 2],
}

impl TracedRegisters {
    /// Reads the registers of a stopped thread.
    pub(crate) fn read(tid: u32) -> io::Result<Self> {
        let mut words = [0; WORDS];
        let len = ptrace::registers(tid, &mut words)?;
        let mut code = [[0; INSTRUCTION_LEN as usize]; 2];
        if len > BYTES_32 {
            ptrace::read_memory(tid, words[PC].wrapping_sub(INSTRUCTION_LEN), code.as_flattened_mut());
        }
        Ok(Self { words, len, code: code.map(u32::from_le_bytes) })
    }

    /// Writes these registers to the thread.
    pub(crate) fn write(&self, tid: u32) -> io::Result<()> {
        ptrace::set_registers(tid, &self.words)
    }

    /// The address of the innermost stack frame.
    pub(crate) fn stack_pointer(&self) -> u64 {
        if self.len == BYTES_32 { 0 } else { self.words[SP] }
    }

    /// The instruction pointer.
    pub(crate) fn instruction_pointer(&self) -> u64 {
        if self.len == BYTES_32 { self.instruction_pointer_32().into() } else { self.words[PC] }
    }

    /// The instruction pointer of a 32-bit program: the sixteenth word of four bytes.
    fn instruction_pointer_32(&self) -> u32 {
        (self.words[7] >> 32) as u32
    }

    /// The registers in the form of the event model.
    pub(crate) fn event_registers(&self) -> Registers {
        if self.len == BYTES_32 {
            return Registers::Bits32 { ip: self.instruction_pointer_32() };
        }
        Registers::Aarch64(Box::new(std::array::from_fn(|register| self.words[register])))
    }

    /// Whether the thread is in a system call, about to leave one, or about to restart it. Also true for a
    /// 32-bit program, for which this is unknown.
    pub(crate) fn is_in_call(&self) -> bool {
        self.len == BYTES_32 || self.code.contains(&SVC)
    }

    /// The system call that the thread is in, or is about to leave. Unknown for a 32-bit program. The first
    /// argument is also unknown, because the result is in the same register.
    pub(crate) fn call(&self) -> Option<SystemCall> {
        let number = i64::from(self.words[X8] as i32);
        let mut arguments = std::array::from_fn(|place| self.words[X0 + place]);
        arguments[0] = u64::MAX;
        (self.len > BYTES_32 && self.code.contains(&SVC)).then_some(SystemCall { number, arguments })
    }

    /// The number of the system call that the thread is leaving with `EINTR`.
    pub(crate) fn interrupted_call(&self) -> Option<i64> {
        let interrupted = self.words[X0].cast_signed() == -i64::from(libc::EINTR);
        // The kernel uses the lower half as the number (`arch/arm64/kernel/syscall.c`).
        let number = i64::from(self.words[X8] as i32);
        (self.len > BYTES_32 && self.code[0] == SVC && interrupted).then_some(number)
    }

    /// A system call's fourth argument.
    pub(crate) fn fourth_argument(&self) -> u64 {
        self.words[X3]
    }

    /// Changes the fourth argument.
    pub(crate) fn set_fourth_argument(&mut self, value: u64) {
        self.words[X3] = value;
    }

    /// Makes the thread restart its system call with the same arguments. Returns whether it will. The result
    /// has overwritten the first argument, which the kernel does not expose (`orig_x0` in
    /// `arch/arm64/include/asm/ptrace.h`).
    pub(crate) fn repeat_call(&mut self, first_argument: impl FnOnce() -> Option<u64>) -> bool {
        let Some(first) = first_argument() else { return false };
        self.words[X0] = first;
        self.words[PC] = self.words[PC].wrapping_sub(INSTRUCTION_LEN);
        true
    }

    /// A thread that leaves a system call with a result.
    #[cfg(test)]
    pub(crate) fn leaving(number: i64, result: i64) -> Self {
        let mut stopped =
            Self { words: std::array::from_fn(|place| place as u64), len: 8 * WORDS, code: [SVC, 0] };
        stopped.words[X8] = number.cast_unsigned();
        stopped.words[X0] = result.cast_unsigned();
        stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_come_in_dwarfs_order() {
        let stopped = TracedRegisters::leaving(8, 0);
        let expected: [u64; 33] = std::array::from_fn(|register| register as u64);
        assert_eq!(stopped.event_registers(), Registers::Aarch64(Box::new(expected)));
        assert_eq!((stopped.stack_pointer(), stopped.instruction_pointer()), (31, 32));
    }

    #[test]
    fn a_32_bit_program_has_an_instruction_pointer() {
        let mut stopped = TracedRegisters { words: [0; WORDS], len: BYTES_32, code: [0; 2] };
        stopped.words[7] = 0x0001_0450_ffff_fff0;
        assert_eq!(stopped.event_registers(), Registers::Bits32 { ip: 0x0001_0450 });
        assert_eq!((stopped.stack_pointer(), stopped.instruction_pointer()), (0, 0x0001_0450));
        assert!(stopped.is_in_call());
    }

    #[test]
    fn an_interrupted_call_is_repeated() {
        let mut stopped = TracedRegisters::leaving(22, -4);
        assert_eq!(stopped.interrupted_call(), Some(22));
        assert!(!stopped.repeat_call(|| None), "its first argument is lost");
        assert_eq!(stopped.interrupted_call(), Some(22));
        assert!(stopped.repeat_call(|| Some(3)));
        assert_eq!((stopped.words[X0], stopped.words[X8], stopped.words[PC]), (3, 22, 28));
    }

    #[test]
    fn other_results_are_none_of_an_interrupted_call() {
        for result in [0, -512, -11] {
            assert_eq!(TracedRegisters::leaving(22, result).interrupted_call(), None, "{result}");
        }
        assert_eq!(
            TracedRegisters { code: [0; 2], ..TracedRegisters::leaving(22, -4) }.interrupted_call(),
            None
        );
    }

    #[test]
    fn code_between_calls_is_in_none() {
        let with = |code| TracedRegisters { code, ..TracedRegisters::leaving(22, 0) }.is_in_call();
        assert_eq!([[SVC, 0], [0, SVC], [0, 0]].map(with), [true, true, false]);
    }
}
