//! The roots of the stacks of threads, as found by walks. Without them, the recorder would have to copy and
//! read all memory that may belong to a stack.

use nyquist_object::Avma;
use rustc_hash::FxHashMap;

use crate::event::Tid;

/// The most threads that are remembered.
pub(crate) const MOST_THREADS: usize = 4096;
/// How many consecutive walks must reach the same root before it is reported.
const WALKS: u32 = 8;
/// Outermost words within this distance, in bytes, belong to the same root, because before a program begins,
/// other code runs at the root.
const NEAR: u64 = 4096;
/// If a thread's root moves more often than this, the thread alternates between stacks of coroutines or
/// goroutines. The end of its next stack cannot be predicted.
const MOST_MOVES: u32 = 3;
/// After this many walks to the same root, one move is forgotten.
const MANY_WALKS: u32 = 1024;

/// A change of a thread's root: the outermost word that walks to the root read. `None` if the reported root
/// is wrong.
pub(crate) type StackBaseUpdate = Option<Avma>;

/// The roots of stacks, by thread.
#[derive(Debug, Default)]
pub(crate) struct LearnedStackBases {
    threads: FxHashMap<Tid, Root>,
}

#[derive(Debug)]
struct Root {
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
        if self.threads.len() >= MOST_THREADS && !self.threads.contains_key(&tid) {
            return None;
        }
        let new = Root { outermost, walks: 0, moves: 0, is_reported: false };
        let root = self.threads.entry(tid).or_insert(new);
        if root.outermost.0.abs_diff(outermost.0) > NEAR {
            root.outermost = outermost;
            return root.moved();
        }
        root.walks = root.walks.wrapping_add(1);
        if root.walks.is_multiple_of(MANY_WALKS) {
            root.moves = root.moves.saturating_sub(1);
        }
        if outermost > root.outermost {
            root.outermost = outermost;
            root.is_reported = false;
        }
        let is_due = !root.is_reported && root.walks >= WALKS && root.moves <= MOST_MOVES;
        root.is_reported |= is_due;
        is_due.then_some(Some(root.outermost))
    }

    /// The outermost word that walks to the root read, if it was reported.
    pub(crate) fn published(&self, tid: Tid) -> Option<Avma> {
        self.threads.get(&tid).filter(|root| root.is_reported).map(|root| root.outermost)
    }

    /// Notes that the root of a stack is not at the reported address, if one was reported.
    pub(crate) fn invalidate(&mut self, tid: Tid) -> Option<StackBaseUpdate> {
        self.threads.get_mut(&tid).filter(|root| root.is_reported).and_then(Root::moved)
    }

    /// A thread has ended.
    pub(crate) fn forget(&mut self, tid: Tid) -> Option<StackBaseUpdate> {
        self.threads.remove(&tid).filter(|root| root.is_reported).map(|_| None)
    }
}

impl Root {
    fn moved(&mut self) -> Option<StackBaseUpdate> {
        self.walks = 0;
        self.moves = self.moves.saturating_add(1);
        std::mem::take(&mut self.is_reported).then_some(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: u64 = 0x7fff_0000_0000;

    /// Notes a root `times` times, and returns the reported changes.
    fn note(roots: &mut LearnedStackBases, times: u32, outermost: u64) -> Vec<Option<u64>> {
        let changes = (0..times).filter_map(|_| roots.note(Tid(1), Avma(outermost)));
        changes.map(|changes| changes.map(|root| root.0)).collect()
    }

    #[test]
    fn a_root_is_published_after_enough_walks() {
        let mut roots = LearnedStackBases::default();
        assert_eq!(note(&mut roots, WALKS - 1, ROOT), []);
        assert_eq!(roots.published(Tid(1)), None);
        assert_eq!(note(&mut roots, 100, ROOT), [Some(ROOT)]);
        assert_eq!(note(&mut roots, 100, ROOT - 64), [], "this is nearer");
        assert_eq!(note(&mut roots, 100, ROOT + 8), [Some(ROOT + 8)]);
        assert_eq!([1, 2].map(|tid| roots.published(Tid(tid))), [Some(Avma(ROOT + 8)), None]);
        assert_eq!(roots.forget(Tid(1)), Some(None));
        assert_eq!(roots.forget(Tid(1)), None);
    }

    #[test]
    fn a_root_that_moves_too_often_is_given_up() {
        let mut roots = LearnedStackBases::default();
        assert_eq!(note(&mut roots, 100, ROOT), [Some(ROOT)]);
        assert_eq!(roots.invalidate(Tid(1)), Some(None));
        assert_eq!(roots.invalidate(Tid(1)), None);
        assert_eq!(roots.published(Tid(1)), None);
        assert_eq!(note(&mut roots, 100, ROOT), [Some(ROOT)]);
        assert_eq!(note(&mut roots, 100, ROOT - 2 * NEAR), [None, Some(ROOT - 2 * NEAR)]);
        assert_eq!(note(&mut roots, 100, ROOT), [None, Some(ROOT)]);
        assert_eq!(note(&mut roots, 100, ROOT - 2 * NEAR), [None], "this was once too often");
        assert_eq!(roots.published(Tid(1)), None);
        assert_eq!(note(&mut roots, MANY_WALKS, ROOT - 2 * NEAR), [Some(ROOT - 2 * NEAR)]);
    }

    #[test]
    fn so_many_threads_are_remembered_and_not_more() {
        let mut roots = LearnedStackBases::default();
        let published = (0..2 * MOST_THREADS as u32)
            .filter(|tid| (0..WALKS).any(|_| roots.note(Tid(*tid), Avma(ROOT)).is_some()));
        assert_eq!(published.count(), MOST_THREADS);
    }
}
