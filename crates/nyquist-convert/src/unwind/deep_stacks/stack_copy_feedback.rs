//! What walks of stack copies tell the recorder: whose stacks are deeper than a copy, and where stacks end. It
//! decides by that how much of a copy it keeps, and which stacks it reads further.

use nyquist_object::Avma;
use nyquist_unwind::SignalStack;

use crate::event::{Pid, Tid};
use crate::unwind::deep_stacks::stack_bases;

/// The most threads with truncated copies that are listed between two reads of the feedback.
const MAX_TRUNCATED_THREADS: usize = 256;
/// The most signal stacks that are reported between two reads.
const MAX_SIGNAL_STACKS: usize = 64;
/// The most threads whose bases are reported between two reads. Each base is reported once, so the limit is
/// the number of all threads that are remembered. If several threads walk stacks, they find the bases of
/// hundreds of threads between two reads.
const MAX_BASES: usize = stack_bases::MAX_THREADS;

/// What walks of stack copies have found since the last read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackCopyFeedback {
    /// Threads with a copy that ended before the stack did.
    pub truncated: Vec<Tid>,
    /// Threads whose bases have changed, with the outermost word that a walk to the root has read. `None` if
    /// the reported base is wrong.
    pub bases: Vec<(Tid, Option<Avma>)>,
    /// The signal stacks on which walks have ended, because the interrupted stack was not copied.
    pub signal_stacks: Vec<((Pid, Tid), SignalStack)>,
}

impl StackCopyFeedback {
    /// Whether it says which stacks to read.
    pub fn concerns_readings(&self) -> bool {
        !self.truncated.is_empty()
    }

    /// Notes a thread whose copy ended before its stack did.
    pub(crate) fn note_truncated(&mut self, tid: Tid) {
        if self.truncated.len() < MAX_TRUNCATED_THREADS && !self.truncated.contains(&tid) {
            self.truncated.push(tid);
        }
    }

    /// Whether a thread's signal stack was noted since the last read.
    pub(crate) fn has_signal_stack(&self, id: (Pid, Tid)) -> bool {
        self.signal_stacks.iter().any(|(noted, _)| *noted == id)
    }

    /// Notes a thread's signal stack. It is noted again at a later sample if there is no room for it.
    pub(crate) fn note_signal_stack(&mut self, id: (Pid, Tid), stack: SignalStack) {
        if self.signal_stacks.len() < MAX_SIGNAL_STACKS {
            self.signal_stacks.push((id, stack));
        }
    }

    /// Notes a change of the base of a thread's stack.
    pub(crate) fn note_base(&mut self, tid: Tid, outermost: Option<Avma>) {
        // If a new base is left out, the thread's stack is copied and read as if nothing were known. A
        // correction of a wrong base must not be left out.
        if outermost.is_none() || self.bases.len() < MAX_BASES {
            self.bases.push((tid, outermost));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_many_signal_stacks_are_reported() {
        let stack = SignalStack { start: Avma(0x1000), end: Avma(0x2000), pointer_at: Avma(0x1f00) };
        let mut feedback = StackCopyFeedback::default();
        for tid in 0..1000 {
            feedback.note_signal_stack((Pid(1), Tid(tid)), stack);
        }
        assert_eq!(feedback.signal_stacks.len(), MAX_SIGNAL_STACKS);
        assert!(feedback.has_signal_stack((Pid(1), Tid(0))) && !feedback.has_signal_stack((Pid(2), Tid(0))));
    }
}
