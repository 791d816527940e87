//! The bases of the stacks of threads, as found by walks. Without them, the recorder would have to copy and
//! read all memory that may belong to a stack.

use nyquist_object::Avma;
use rustc_hash::FxHashMap;

use crate::event::Tid;

/// The most threads that are remembered.
pub(crate) const MAX_THREADS: usize = 4096;
/// How many consecutive walks must reach the same base before it is reported.
const WALKS: u32 = 8;
/// Outermost words within this distance, in bytes, belong to the same base, because before a program begins,
/// other code runs at the base.
const MAX_BASE_DISTANCE: u64 = 4096;
/// If a thread's base moves more often than this, the thread alternates between stacks of coroutines or
/// goroutines. The end of its next stack cannot be predicted.
const MAX_MOVES: u32 = 3;
/// After this many walks to the same base, one move is forgotten.
const MANY_WALKS: u32 = 1024;

/// A change of a thread's base: the outermost word that walks to the root read. `None` if the reported base
/// is wrong.
pub(crate) type StackBaseUpdate = Option<Avma>;

/// The bases of stacks, by thread.
#[derive(Debug, Default)]
pub(crate) struct LearnedStackBases {
    threads: FxHashMap<Tid, Base>,
}

#[derive(Debug)]
struct Base {
    outermost: Avma,
    /// The number of walks that have reached it.
    walks: u32,
    /// How often it has moved.
    moves: u32,
    is_reported: bool,
}

impl LearnedStackBases {
    /// Notes that a walk has reached the root, and that `outermost` is the outermost word it has read.
    /// Returns the change to report.
    pub(crate) fn note(&mut self, tid: Tid, outermost: Avma) -> Option<StackBaseUpdate> {
        if self.threads.len() >= MAX_THREADS && !self.threads.contains_key(&tid) {
            return None;
        }
        let new = Base { outermost, walks: 0, moves: 0, is_reported: false };
        let base = self.threads.entry(tid).or_insert(new);
        if base.outermost.0.abs_diff(outermost.0) > MAX_BASE_DISTANCE {
            base.outermost = outermost;
            return base.moved();
        }
        base.walks = base.walks.wrapping_add(1);
        if base.walks.is_multiple_of(MANY_WALKS) {
            base.moves = base.moves.saturating_sub(1);
        }
        if outermost > base.outermost {
            base.outermost = outermost;
            base.is_reported = false;
        }
        let is_due = !base.is_reported && base.walks >= WALKS && base.moves <= MAX_MOVES;
        base.is_reported |= is_due;
        is_due.then_some(Some(base.outermost))
    }

    /// The outermost word that walks to the root read, if it was reported.
    pub(crate) fn published(&self, tid: Tid) -> Option<Avma> {
        self.threads.get(&tid).filter(|base| base.is_reported).map(|base| base.outermost)
    }

    /// Notes that the base of a stack is not at the reported address, if one was reported.
    pub(crate) fn invalidate(&mut self, tid: Tid) -> Option<StackBaseUpdate> {
        self.threads.get_mut(&tid).filter(|base| base.is_reported).and_then(Base::moved)
    }

    /// A thread has ended.
    pub(crate) fn forget(&mut self, tid: Tid) -> Option<StackBaseUpdate> {
        self.threads.remove(&tid).filter(|base| base.is_reported).map(|_| None)
    }
}

impl Base {
    fn moved(&mut self) -> Option<StackBaseUpdate> {
        self.walks = 0;
        self.moves = self.moves.saturating_add(1);
        std::mem::take(&mut self.is_reported).then_some(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 0x7fff_0000_0000;

    /// Notes a base `times` times, and returns the reported changes.
    fn note(bases: &mut LearnedStackBases, times: u32, outermost: u64) -> Vec<Option<u64>> {
        let changes = (0..times).filter_map(|_| bases.note(Tid(1), Avma(outermost)));
        changes.map(|changes| changes.map(|base| base.0)).collect()
    }

    #[test]
    fn a_base_is_published_after_enough_walks() {
        let mut bases = LearnedStackBases::default();
        assert_eq!(note(&mut bases, WALKS - 1, BASE), []);
        assert_eq!(bases.published(Tid(1)), None);
        assert_eq!(note(&mut bases, 100, BASE), [Some(BASE)]);
        assert_eq!(note(&mut bases, 100, BASE - 64), [], "this is nearer");
        assert_eq!(note(&mut bases, 100, BASE + 8), [Some(BASE + 8)]);
        assert_eq!([1, 2].map(|tid| bases.published(Tid(tid))), [Some(Avma(BASE + 8)), None]);
        assert_eq!(bases.forget(Tid(1)), Some(None));
        assert_eq!(bases.forget(Tid(1)), None);
    }

    #[test]
    fn a_base_that_moves_too_often_is_given_up() {
        let mut bases = LearnedStackBases::default();
        assert_eq!(note(&mut bases, 100, BASE), [Some(BASE)]);
        assert_eq!(bases.invalidate(Tid(1)), Some(None));
        assert_eq!(bases.invalidate(Tid(1)), None);
        assert_eq!(bases.published(Tid(1)), None);
        assert_eq!(note(&mut bases, 100, BASE), [Some(BASE)]);
        assert_eq!(
            note(&mut bases, 100, BASE - 2 * MAX_BASE_DISTANCE),
            [None, Some(BASE - 2 * MAX_BASE_DISTANCE)]
        );
        assert_eq!(note(&mut bases, 100, BASE), [None, Some(BASE)]);
        assert_eq!(note(&mut bases, 100, BASE - 2 * MAX_BASE_DISTANCE), [None], "this was once too often");
        assert_eq!(bases.published(Tid(1)), None);
        assert_eq!(
            note(&mut bases, MANY_WALKS, BASE - 2 * MAX_BASE_DISTANCE),
            [Some(BASE - 2 * MAX_BASE_DISTANCE)]
        );
    }

    #[test]
    fn so_many_threads_are_remembered_and_not_more() {
        let mut bases = LearnedStackBases::default();
        let published = (0..2 * MAX_THREADS as u32)
            .filter(|tid| (0..WALKS).any(|_| bases.note(Tid(*tid), Avma(BASE)).is_some()));
        assert_eq!(published.count(), MAX_THREADS);
    }
}
