//! The parts that are specific to 64-bit ARM.

mod compact;
pub(crate) mod instructions;
pub(crate) mod lost_link;
mod registers;
mod rows;
mod step;

use crate::architecture::{Architecture, FrameRegisters, FullRegisters};
use crate::call_instruction::CallInstruction;
use crate::cfi::CfiRow;
use crate::rule::Rule;
use crate::{Reason, StackMemory};
use registers::{LinkState, PC, REGISTERS, SP, X29, X30};

pub(crate) use registers::Aarch64;

impl Architecture for Aarch64 {
    type Values = [u64; REGISTERS];
    type Link = LinkState;

    const ZEROS: Self::Values = [0; REGISTERS];
    const FRAME_POINTER: usize = X29;
    const STACK_POINTER: usize = SP;
    const INSTRUCTION_POINTER: usize = PC;
    const RETURN_ADDRESS: usize = X30;
    const KEEPS_RETURN_ADDRESS: bool = true;
    const VENDOR: gimli::Vendor = gimli::Vendor::AArch64;
    const FRAME_RECORD: Rule = Rule::FRAME_RECORD_ANYWHERE;
    const CALLED: Rule = Rule::LINK_REGISTER;

    const SIGNAL_STACK: u64 = 128 + 16;
    const SIGNAL_POINTER: u64 = 128 + 176 + 8 + 8 * 31;
    const COMPACT_DWARF: u32 = compact::DWARF;

    fn rule(row: &CfiRow<'_>, is_signal: bool) -> Rule {
        rows::rule(row, is_signal)
    }

    fn link(registers: &FullRegisters<Self>, interrupted: bool) -> LinkState {
        LinkState { register: registers.get(X30).filter(|_| interrupted), knows_stack_pointer: true }
    }

    fn set_link(registers: &mut FullRegisters<Self>, link: LinkState) {
        registers.set(X30, link.register);
        if !link.knows_stack_pointer {
            registers.set(SP, None);
        }
    }

    /// Signatures are above the highest bit of user addresses. That is at least the highest bit of the
    /// addresses of the process's code.
    fn address_bits(mask: Option<u64>, code_end: u64) -> u64 {
        mask.unwrap_or_else(|| code_end.checked_next_power_of_two().unwrap_or(0).wrapping_sub(1))
    }

    fn apply(
        rule: Rule,
        frame: &FrameRegisters<Self>,
        memory: &impl StackMemory,
        address_bits: u64,
    ) -> Result<FrameRegisters<Self>, Reason> {
        step::apply(rule, frame, memory, address_bits)
    }

    fn signal_context(
        frame: &FrameRegisters<Self>,
        memory: &impl StackMemory,
    ) -> Result<FullRegisters<Self>, Reason> {
        step::signal_context(frame, memory)
    }

    fn is_signal_frame(frame: &FrameRegisters<Self>, memory: &impl StackMemory) -> bool {
        step::is_signal_frame(frame, memory)
    }

    fn is_signal_return(code: &[u8], offset: usize) -> bool {
        instructions::is_signal_return(code, offset)
    }

    fn rule_at(code: &[u8], offset: usize) -> Option<Rule> {
        instructions::rule_at(code, offset)
    }

    fn followed_rule_at(_code: &[u8], _offset: usize) -> Option<Rule> {
        None
    }

    fn compact_rows(encoding: u32, code: &[u8], emit: &mut impl FnMut(u32, Rule)) {
        compact::rows(encoding, code, emit);
    }

    fn call_at_end(code: &[u8]) -> Option<CallInstruction> {
        instructions::call_at_end(code)
    }

    fn frame_pointer_above(code: &[u8]) -> Option<u64> {
        instructions::frame_pointer_above(code)
    }
}
