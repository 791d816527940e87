//! Frames that no call made, in a stack walked by frame pointers. The kernel or `makecontext` has put a
//! function's start address onto the stack. So no call instruction precedes this address.

use crate::modules::store::ModuleStore;
use crate::processes::process::Process;
use nyquist_unwind::FrameAddress;

/// The alignment of glibc's assembly functions (`ENTRY`). Few return addresses have it.
const ALIGNED: u64 = 16;

/// Marks such frames: their addresses are instruction pointers, and not return addresses. Frames are
/// innermost first. A coroutine's root ends the stack, because the frame pointer there belongs to the stack
/// that created the coroutine. The frames beyond it are dropped. Returns whether the stack has such a root.
/// For one address in sixteen, this takes O(log n) in the functions of its module.
pub(super) fn mark_uncalled_frames(
    frames: &mut Vec<FrameAddress>,
    process: &Process,
    modules: &ModuleStore,
) -> bool {
    for depth in 1..frames.len() {
        let FrameAddress::ReturnAddress(address) = frames[depth] else { continue };
        if !address.0.is_multiple_of(ALIGNED) {
            continue;
        }
        let module = process.code.find(address).and_then(|range| range.module);
        let Some((module, base)) = module.map(|(module, base)| (modules.get(module), base)) else { continue };
        let is_root = module.is_coroutine_root(base, address);
        if is_root || module.is_signal_return(base, address) {
            frames[depth] = FrameAddress::InstructionPointer(address);
        }
        if is_root {
            frames.truncate(depth + 1);
            return true;
        }
    }
    false
}
