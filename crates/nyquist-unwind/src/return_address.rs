//! Whether a word on a stack can be a return address.

use crate::Module;
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
/// known without unwind information, and do not change.
pub(crate) fn may_return_to<A: Architecture>(mappings: &CodeMappings, address: u64) -> bool {
    is_in_code(mappings, address, |module, around| module.may_change() || follows_call::<A>(around))
}

/// The same, but the address must follow a call also in code that is made at run time, if its instructions were
/// read. They may have changed since.
pub(crate) fn returns_behind_call<A: Architecture>(mappings: &CodeMappings, address: u64) -> bool {
    is_in_code(mappings, address, |_, around| follows_call::<A>(around))
}

/// Whether an address is in code, and `may_return` if its instructions are known without unwind information.
fn is_in_code(
    mappings: &CodeMappings,
    address: u64,
    may_return: impl FnOnce(&Module, &CodeAround<'_>) -> bool,
) -> bool {
    let Some(mapping) = find(mappings, address.wrapping_sub(1)) else { return false };
    let Some((module, lookup)) = mapping.module().zip(mapping.relative(address.wrapping_sub(1))) else {
        return true;
    };
    let around = module.uncovered_around(lookup.0.wrapping_add(1));
    around.is_none_or(|around| may_return(module, &around))
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
