//! Frames that no call made, in a stack by frame pointers. The kernel or `makecontext` has put a function's
//! start address onto the stack, and that function has called nothing.

use crate::modules::store::ModuleStore;
use crate::processes::process::Process;
use nyquist_unwind::FrameAddress;

/// glibc's functions in assembly are aligned to this (`ENTRY`), which few return addresses are.
const ALIGNED: u64 = 16;

/// Marks such frames: their addresses are of instructions, and not of returns. Frames are innermost first. A
/// coroutine's root ends the stack, because the frame pointer there is that of the stack that made the
/// coroutine. The frames beyond it are dropped. Returns whether there was such a root. O(log n) in the
/// functions of a module for one address in sixteen.
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
        let module = process.find(address).and_then(|range| range.module);
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
