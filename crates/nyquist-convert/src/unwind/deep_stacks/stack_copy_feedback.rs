//! The outcomes of stack copies. The recorder uses them to decide how much it copies.

use nyquist_object::Avma;

use crate::event::Tid;
use crate::unwind::deep_stacks::stack_bases;

/// The most threads of each kind that are listed between two reads of the feedback.
const MOST_NAMED: usize = 256;
/// The most threads whose bases are reported between two reads. Each base is reported once, so the limit is
/// the number of all threads that are remembered. If several threads walk stacks, they find the bases of
/// hundreds of threads between two reads.
const MOST_BASES: usize = stack_bases::MOST_THREADS;

/// The outcomes of stack copies since the last read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackCopyFeedback {
    /// Threads with a copy that reached its limit, but contained the whole stack. The memory behind the stack
    /// is not part of it.
    pub complete: Vec<Tid>,
    /// Threads with a copy that ended before the stack did.
    pub truncated: Vec<Tid>,
    /// Threads whose bases have changed, with the outermost word that a walk to the root has read. `None` if
    /// the reported base is wrong.
    pub bases: Vec<(Tid, Option<Avma>)>,
}

impl StackCopyFeedback {
    /// Whether it says which stacks to read.
    pub fn concerns_readings(&self) -> bool {
        !(self.complete.is_empty() && self.truncated.is_empty())
    }

    /// Notes a copy. `limited` is whether it reached its limit, and `ended_early` whether the walk ended at
    /// its end.
    pub(crate) fn note(&mut self, tid: Tid, limited: bool, ended_early: bool) {
        let named = if ended_early { &mut self.truncated } else { &mut self.complete };
        if limited && named.len() < MOST_NAMED && !named.contains(&tid) {
            named.push(tid);
        }
    }

    /// Notes a change of the base of a thread's stack.
    pub(crate) fn note_base(&mut self, tid: Tid, outermost: Option<Avma>) {
        // If a new base is left out, the thread's stack is copied and read as if nothing were known. A
        // correction of a wrong base must not be left out.
        if outermost.is_none() || self.bases.len() < MOST_BASES {
            self.bases.push((tid, outermost));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_listed_by_what_came_of_them() {
        let mut feedback = StackCopyFeedback::default();
        for (tid, limited, ended) in [(1, false, false), (2, true, true), (3, true, false), (3, true, false)]
        {
            feedback.note(Tid(tid), limited, ended);
        }
        let expected = StackCopyFeedback {
            complete: vec![Tid(3)],
            truncated: vec![Tid(2)],
            ..StackCopyFeedback::default()
        };
        assert_eq!(feedback, expected);
    }
}
