//! Whether a word on a stack can be a return address.

use crate::architecture::Architecture;
use crate::call_instruction::CallInstruction;
use crate::code::CodeAround;
use crate::space::{CodeMappings, find};

/// What is known of a word on a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StackWord {
    /// It is no return address: not in code, or not behind a call.
    Other,
    /// It is in code whose instructions are not known, or may have changed.
    InUnknownCode,
    /// It is behind a call.
    AfterCall(CallInstruction),
}

/// Whether an address can be a return address. It must be in code, and follow a call if its instructions are
/// known without unwind information.
pub(crate) fn may_return_to<A: Architecture>(mappings: &CodeMappings, address: u64) -> bool {
    let Some(mapping) = find(mappings, address.wrapping_sub(1)) else { return false };
    let Some((module, lookup)) = mapping.module().zip(mapping.relative(address.wrapping_sub(1))) else {
        return true;
    };
    match module.uncovered_around(lookup.0.wrapping_add(1)) {
        Some(around) => module.may_change() || follows_call::<A>(&around),
        None => true,
    }
}

fn follows_call<A: Architecture>(around: &CodeAround<'_>) -> bool {
    around.code.get(..around.at).and_then(A::call_at_end).is_some()
}

/// What is known of a word. Reads the instructions before the address that it may be.
pub(crate) fn judge<A: Architecture>(mappings: &CodeMappings, word: u64) -> StackWord {
    let Some(mapping) = find(mappings, word.wrapping_sub(1)) else { return StackWord::Other };
    let Some((module, lookup)) = mapping.module().zip(mapping.relative(word.wrapping_sub(1))) else {
        return StackWord::InUnknownCode;
    };
    match module.code_before(lookup.0.wrapping_add(1)) {
        Some(code) if !module.may_change() => {
            A::call_at_end(&code).map_or(StackWord::Other, StackWord::AfterCall)
        }
        _ => StackWord::InUnknownCode,
    }
}
