//! The stacks on which threads handle signals, as walks have found them. While a handler runs there, the stack of the
//! interrupted code stays as it is, and is read besides.

use std::collections::HashMap;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};

use nyquist_convert::{SignalStack, StackCopyFeedback};
use nyquist_object::Avma;

/// The most threads whose signal stacks are remembered. If there are more, all are forgotten.
const MAX_THREADS: usize = 512;

/// The signal stacks of threads, by thread, with their processes.
#[derive(Debug, Default)]
pub(crate) struct SignalStacks {
    stacks: RwLock<HashMap<u32, (u32, SignalStack)>>,
    /// Nearly all programs have none, and then nothing is looked up.
    are_any: AtomicBool,
}

impl SignalStacks {
    /// Notes what walks have found.
    pub(crate) fn apply(&self, feedback: &StackCopyFeedback) {
        if feedback.signal_stacks.is_empty() {
            return;
        }
        let Ok(mut stacks) = self.stacks.write() else { return };
        for ((pid, tid), stack) in &feedback.signal_stacks {
            if stacks.len() >= MAX_THREADS {
                stacks.clear();
            }
            stacks.insert(tid.0, (pid.0, *stack));
        }
        self.are_any.store(true, Ordering::Relaxed);
    }

    /// The signal stack of a thread, if its stack pointer is there. Never waits: if what is known is being changed,
    /// nothing is.
    pub(crate) fn find(&self, (pid, tid): (u32, u32), stack_pointer: u64) -> Option<SignalStack> {
        if !self.are_any.load(Ordering::Relaxed) {
            return None;
        }
        let stacks = self.stacks.try_read().ok()?;
        let (_, stack) = stacks.get(&tid).filter(|(process, _)| *process == pid)?;
        stack.holds(Avma(stack_pointer)).then_some(*stack)
    }
}

#[cfg(test)]
mod tests {
    use nyquist_convert::event::{Pid, Tid};

    use super::*;

    #[test]
    fn a_signal_stack_is_found_by_thread_and_pointer() {
        let stacks = SignalStacks::default();
        assert_eq!(stacks.find((1, 2), 0x1000), None);
        let stack = SignalStack { start: Avma(0x1000), end: Avma(0x2000), pointer_at: Avma(0x1f00) };
        let feedback =
            StackCopyFeedback { signal_stacks: vec![((Pid(1), Tid(2)), stack)], ..Default::default() };
        stacks.apply(&feedback);
        stacks.apply(&StackCopyFeedback::default());
        assert_eq!([0x1000, 0x1fff].map(|pointer| stacks.find((1, 2), pointer)), [Some(stack); 2]);
        assert_eq!([0xfff, 0x2000].map(|pointer| stacks.find((1, 2), pointer)), [None; 2]);
        assert_eq!(
            [(1, 3), (3, 2)].map(|id| stacks.find(id, 0x1000)),
            [None; 2],
            "another thread, or process"
        );
    }

    #[test]
    fn only_so_many_signal_stacks_are_remembered() {
        let stacks = SignalStacks::default();
        let stack = SignalStack { start: Avma(0x1000), end: Avma(0x2000), pointer_at: Avma(0x1f00) };
        for tid in 0..3 * MAX_THREADS as u32 {
            let signal_stacks = vec![((Pid(1), Tid(tid)), stack)];
            stacks.apply(&StackCopyFeedback { signal_stacks, ..Default::default() });
        }
        assert_eq!(stacks.stacks.read().unwrap().len(), MAX_THREADS);
    }
}
