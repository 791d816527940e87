//! What is different in samples of Android's simpleperf.

use nyquist_object::Avma;

use crate::event::{Sample, UserStack};

/// Gives callers the addresses to which they are returned. Simpleperf has taken something off them, so that they are within
/// the calls (`AdjustCallChainGeneratedByKernel` in its `record.cpp`).
pub(crate) fn restore_return_addresses(sample: &mut Sample) {
    let restore = |stack: &mut [Avma]| {
        for caller in stack.iter_mut().skip(1) {
            caller.0 = caller.0.wrapping_add(1);
        }
    };
    restore(&mut sample.kernel_stack);
    if let UserStack::Walked(stack) = &mut sample.user {
        restore(stack);
    }
}
