//! How each architecture finds callers whose return address is in a register that is not known.

use crate::StackMemory;
use crate::aarch64::{Aarch64, lost_link};
use crate::architecture::{Architecture, FrameRegisters, LostCaller};
use crate::rule::Rule;
use crate::space::CodeMappings;
use crate::x86_64::X86_64;

/// An architecture whose stacks are walked. This is apart from [`Architecture`], which compiles the tables of
/// modules, because callers are looked for in these tables.
pub(crate) trait FindLostCaller: Architecture {
    /// The caller of a frame whose return address is in an unknown register, if this can occur on the
    /// architecture.
    fn lost_caller(
        rule: Rule,
        frame: &FrameRegisters<Self>,
        mappings: &CodeMappings,
        memory: &impl StackMemory,
        address_bits: u64,
    ) -> Option<LostCaller<Self>>;
}

impl FindLostCaller for Aarch64 {
    fn lost_caller(
        rule: Rule,
        frame: &FrameRegisters<Self>,
        mappings: &CodeMappings,
        memory: &impl StackMemory,
        address_bits: u64,
    ) -> Option<LostCaller<Self>> {
        lost_link::lost_caller(rule, frame, mappings, memory, address_bits)
    }
}

/// A return address is always on the stack.
impl FindLostCaller for X86_64 {
    fn lost_caller(
        _: Rule,
        _: &FrameRegisters<Self>,
        _: &CodeMappings,
        _: &impl StackMemory,
        _: u64,
    ) -> Option<LostCaller<Self>> {
        None
    }
}
