//! Differences in samples of Android's simpleperf.

use nyquist_object::Avma;

use crate::event::{Sample, UserStack};

/// Restores the return addresses of callers. Simpleperf has decreased them, so that they are within the calls
/// (`AdjustCallChainGeneratedByKernel` in its `record.cpp`). It may have walked the stack itself, up to
/// functions that are interpreted and in no executable memory.
pub(crate) fn restore_stack(sample: &mut Sample) {
    let restore = |stack: &mut [Avma]| {
        for caller in stack.iter_mut().skip(1) {
            caller.0 = caller.0.wrapping_add(1);
        }
    };
    restore(&mut sample.kernel_stack);
    if let UserStack::FramePointers(stack) = &mut sample.user {
        restore(stack);
        sample.user = UserStack::Walked(std::mem::take(stack));
    }
}
