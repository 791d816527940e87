//! The parts that are specific to 64-bit x86.

mod compact;
pub(crate) mod flow;
pub(crate) mod frame_state;
pub(crate) mod instructions;
mod length;
mod registers;
mod return_path;
mod rows;
mod saved_stack_pointer;
mod stack_bang;
mod step;

use crate::architecture::{Architecture, FrameRegisters, FullRegisters};
use crate::call_instruction::CallInstruction;
use crate::cfi::CfiRow;
use crate::rule::Rule;
use crate::{Reason, StackMemory};
use registers::{RBP, REGISTERS, RIP, RSP};

pub(crate) use registers::{RCX, X86_64};

impl Architecture for X86_64 {
    type Values = [u64; REGISTERS];
    type Link = ();

    const ZEROS: Self::Values = [0; REGISTERS];
    const FRAME_POINTER: usize = RBP;
    const STACK_POINTER: usize = RSP;
    const INSTRUCTION_POINTER: usize = RIP;
    const RETURN_ADDRESS: usize = RIP;
    const KEEPS_RETURN_ADDRESS: bool = false;
    const VENDOR: gimli::Vendor = gimli::Vendor::Default;
    const FRAME_RECORD: Rule = Rule::FRAME_RECORD;
    const CALLED: Rule = Rule::RETURN_ADDRESS;

    const COMPACT_DWARF: u32 = compact::DWARF;
    const SIGNAL_STACK: u64 = 0x10;
    const SIGNAL_POINTER: u64 = 0xa0;

    fn rule(row: &CfiRow<'_>, is_signal: bool) -> Rule {
        rows::rule(row, is_signal)
    }

    fn link(_: &FullRegisters<Self>, _: bool) {}

    fn set_link(_: &mut FullRegisters<Self>, (): ()) {}

    fn address_bits(_: Option<u64>, _: u64) -> u64 {
        u64::MAX
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a call a frame is a tenth of the cost of walking")]
    fn apply(
        rule: Rule,
        frame: &FrameRegisters<Self>,
        memory: &impl StackMemory,
        _: u64,
    ) -> Result<FrameRegisters<Self>, Reason> {
        step::apply(rule, frame, memory)
    }

    fn signal_context(
        frame: &FrameRegisters<Self>,
        memory: &impl StackMemory,
    ) -> Result<FullRegisters<Self>, Reason> {
        step::signal_context(frame, memory)
    }

    /// Signal frames are recognised by the C library's code that they return to, which every process has.
    fn is_signal_frame(_: &FrameRegisters<Self>, _: &impl StackMemory) -> bool {
        false
    }

    fn is_signal_return(code: &[u8], offset: usize) -> bool {
        instructions::is_signal_return(code, offset)
    }

    fn rule_at(code: &[u8], offset: usize) -> Option<Rule> {
        instructions::rule_at(code, offset)
    }

    fn followed_rule_at(code: &[u8], offset: usize) -> Option<Rule> {
        flow::rule_at(code, offset)
    }

    fn rule_of_made_code(code: &[u8], offset: usize) -> Option<Rule> {
        return_path::rule_to_return(code, offset).or_else(|| stack_bang::rule_by_prologue(code, offset))
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
