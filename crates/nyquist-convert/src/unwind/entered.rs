//! Functions that a stack by frame pointers returns to, and that called nothing: the kernel or `makecontext` has laid the
//! address of their beginning on the stack.

use crate::modules::store::ModuleStore;
use crate::processes::process::Process;
use nyquist_unwind::FrameAddress;

/// glibc's functions in assembly are aligned to this (`ENTRY`), which few return addresses are.
const ALIGNED: u64 = 16;

/// Turns what looks like a return address, and is the beginning of such a function, into an instruction's address. Frames are
/// innermost first. At the bottom of a coroutine's stack the frame pointer is that of whichever stack made the coroutine:
/// what a walk found beyond it is dropped, and the answer is whether that was so. O(log n) in the functions of a module for one
/// address in sixteen.
pub(super) fn settle_entered(
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
