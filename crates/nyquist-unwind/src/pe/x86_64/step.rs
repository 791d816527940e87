//! Undoes a prologue with all registers.

use super::functions::X64FrameUndo;
use super::info::Operation;
use crate::architecture::{Architecture, FullRegisters, unreadable};
use crate::{Reason, StackMemory};
use nyquist_object::Avma;

/// DWARF's numbers of the registers, by their numbers in instructions: rax, rcx, rdx, rbx, rsp, rbp, rsi,
/// rdi, r8 to r15.
const DWARF: [usize; 16] = [0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];

fn register(number: u8) -> usize {
    DWARF[usize::from(number & 15)]
}

impl X64FrameUndo<'_> {
    /// The caller's registers, and whether it was interrupted ("Unwind procedure").
    pub(crate) fn step<A: Architecture>(
        self,
        registers: &FullRegisters<A>,
        memory: &impl StackMemory,
    ) -> Result<(FullRegisters<A>, bool), Reason> {
        let mut caller = *registers;
        let mut sp = registers.get(A::STACK_POINTER).ok_or(Reason::RegisterUnknown)?;
        let read = |address: u64| {
            memory.read_u64(Avma(address)).ok_or_else(|| unreadable(address, sp_of(registers)))
        };
        let has_frame = self.operations().any(|operation| operation == Operation::SetFrame);
        let frame = self.register.filter(|_| has_frame);
        // Registers that were stored are above the frame register once there is one, and above the stack
        // pointer before.
        let base = match frame {
            Some(frame) => {
                registers.get(register(frame.number)).map(|value| value.wrapping_sub(frame.offset.into()))
            }
            None => Some(sp),
        };
        for operation in self.operations() {
            match operation {
                Operation::Push(number) => {
                    caller.set(register(number), read(sp).ok());
                    sp = sp.wrapping_add(8);
                }
                Operation::Allocate(size) => sp = sp.wrapping_add(size.into()),
                Operation::SetFrame => sp = base.ok_or(Reason::RegisterUnknown)?,
                Operation::Save(number, offset) => {
                    let saved = base.and_then(|base| read(base.wrapping_add(offset.into())).ok());
                    caller.set(register(number), saved);
                }
                Operation::MachineFrame(has_error_code) => {
                    // Five words: where the code was interrupted, its segment, the flags, the stack pointer.
                    let at = if has_error_code { sp.wrapping_add(8) } else { sp };
                    caller.set(A::INSTRUCTION_POINTER, Some(read(at)?));
                    caller.set(A::STACK_POINTER, Some(read(at.wrapping_add(24))?));
                    return Ok((caller, true));
                }
            }
        }
        caller.set(A::INSTRUCTION_POINTER, Some(read(sp)?));
        caller.set(A::STACK_POINTER, Some(sp.wrapping_add(8)));
        Ok((caller, false))
    }
}

fn sp_of<A: Architecture>(registers: &FullRegisters<A>) -> u64 {
    registers.get(A::STACK_POINTER).unwrap_or_default()
}
