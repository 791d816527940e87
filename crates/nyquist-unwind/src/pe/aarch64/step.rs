//! Undoes a prologue with all registers.

use super::codes::{NONE, Operation};
use super::functions::Arm64FrameUndo;
use crate::architecture::{Architecture, FullRegisters, unreadable};
use crate::{Reason, StackMemory};
use nyquist_object::Avma;

/// Where all registers are in a `CONTEXT`: x0 to x30, the stack pointer, the instruction pointer (`winnt.h`,
/// `ARM64_NT_CONTEXT`).
const CONTEXT_REGISTERS: u64 = 8;

impl Arm64FrameUndo<'_> {
    /// The caller's registers, and whether it was interrupted.
    pub(crate) fn step<A: Architecture>(
        self,
        registers: &FullRegisters<A>,
        memory: &impl StackMemory,
    ) -> Result<(FullRegisters<A>, bool), Reason> {
        let mut caller = *registers;
        let mut sp = registers.get(A::STACK_POINTER).ok_or(Reason::RegisterUnknown)?;
        let lowest = sp;
        let read = |address: u64| memory.read_u64(Avma(address)).ok_or_else(|| unreadable(address, lowest));
        let mut interrupted = false;
        for operation in self.operations() {
            match operation {
                Operation::Allocate(bytes) => sp = sp.wrapping_add(bytes.into()),
                Operation::SetFrame(above) => {
                    let fp = caller.get(A::FRAME_POINTER).ok_or(Reason::RegisterUnknown)?;
                    sp = fp.wrapping_sub(above.into());
                }
                Operation::Save(save) => {
                    for (register, word) in save.registers.into_iter().zip([0, 8]) {
                        if register != NONE {
                            let place = sp.wrapping_add(u64::from(save.offset) + word);
                            caller.set(register.into(), read(place).ok());
                        }
                    }
                    sp = sp.wrapping_add(save.moved.into());
                }
                Operation::Nothing | Operation::PartEnd | Operation::End => {}
                Operation::Interrupted => interrupted = true,
                Operation::MachineFrame => {
                    caller.set(A::INSTRUCTION_POINTER, Some(read(sp.wrapping_add(8))?));
                    caller.set(A::STACK_POINTER, Some(read(sp)?));
                    return Ok((caller, true));
                }
                Operation::Context => {
                    for (register, word) in (0..registers.len()).zip(0..) {
                        let place = sp.wrapping_add(CONTEXT_REGISTERS + 8 * word);
                        caller.set(register, Some(read(place)?));
                    }
                    return Ok((caller, true));
                }
            }
        }
        let link = caller.get(A::RETURN_ADDRESS).ok_or(Reason::RegisterUnknown)?;
        caller.set(A::INSTRUCTION_POINTER, Some(link));
        caller.set(A::STACK_POINTER, Some(sp));
        // The register held the address at which the caller continues.
        caller.set(A::RETURN_ADDRESS, None);
        Ok((caller, interrupted))
    }
}
