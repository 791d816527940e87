//! The outcomes of stack copies. The recorder uses them to decide how much it copies.

use nyquist_object::Avma;
use rustc_hash::FxHashSet;

use crate::event::Tid;
use crate::unwind::deep_stacks::stack_bases;

/// The most threads of each kind that are listed between two reads of the feedback.
const MOST_NAMED: usize = 256;
/// The most threads whose bases are reported between two reads. Each base is reported once, so the limit is
/// the number of all threads that are remembered. If several threads walk stacks, they find the bases of
/// hundreds of threads between two reads.
const MOST_BASES: usize = stack_bases::MOST_THREADS;
/// The most pages of all threads' stacks that are listed between two reads.
const MOST_PAGES: usize = 512;

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
    /// Pages of living stacks, behind the copies, that walks to the roots have read.
    pub hot_pages: FxHashSet<(Tid, Avma)>,
    /// Threads with a living stack in which a walk came to a page that was not read.
    pub gaps: Vec<Tid>,
}

impl StackCopyFeedback {
    /// Whether it says something of which stacks to read, and which of their pages.
    pub fn concerns_readings(&self) -> bool {
        let Self { complete, truncated, hot_pages, gaps, .. } = self;
        !(complete.is_empty() && truncated.is_empty() && hot_pages.is_empty() && gaps.is_empty())
    }

    /// Notes a copy. `limited` is whether it reached its limit, and `ended_early` whether the walk ended at
    /// its end.
    pub(crate) fn note(&mut self, tid: Tid, limited: bool, ended_early: bool) {
        let named = if ended_early { &mut self.truncated } else { &mut self.complete };
        if limited && named.len() < MOST_NAMED && !named.contains(&tid) {
            named.push(tid);
        }
    }

    /// Notes the pages that a walk through a living stack has read, and whether it ended at a page that was
    /// not read.
    pub(crate) fn note_pages(&mut self, tid: Tid, pages: &[Avma], ended_at_gap: bool) {
        if ended_at_gap && self.gaps.len() < MOST_NAMED && !self.gaps.contains(&tid) {
            self.gaps.push(tid);
        }
        for page in pages.iter().map(|page| (tid, *page)) {
            if self.hot_pages.len() < MOST_PAGES {
                self.hot_pages.insert(page);
            }
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

    #[test]
    fn each_page_is_named_once_up_to_a_limit() {
        let mut feedback = StackCopyFeedback::default();
        feedback.note_pages(Tid(1), &[Avma(0x1000), Avma(0x3000), Avma(0x1000)], false);
        feedback.note_pages(Tid(2), &[Avma(0x1000)], true);
        feedback.note_pages(Tid(2), &[], true);
        let named = [(1, 0x1000), (1, 0x3000), (2, 0x1000)].map(|(tid, page)| (Tid(tid), Avma(page)));
        assert_eq!((&feedback.hot_pages, &feedback.gaps), (&named.into_iter().collect(), &vec![Tid(2)]));
        let many: Vec<Avma> = (0..2 * MOST_PAGES as u64).map(|page| Avma(page << 12)).collect();
        feedback.note_pages(Tid(3), &many, false);
        assert_eq!(feedback.hot_pages.len(), MOST_PAGES);
    }
}
