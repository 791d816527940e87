//! What came of copies of stacks: for who decides how much is copied.

use crate::event::Tid;

/// The most threads of each kind that are named between two looks at the counts.
const MOST_NAMED: usize = 256;

/// What came of the copies of stacks since it was last asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyCounts {
    /// The copies that were walked.
    pub copies: u64,
    /// Those that ended before the stack did, because their limit was reached.
    pub ended_early: u64,
    /// Threads of which a copy that had reached its limit held the whole stack: what is behind it is other memory.
    pub whole: Vec<Tid>,
    /// Threads of which a copy ended before the stack did.
    pub cut: Vec<Tid>,
}

impl CopyCounts {
    /// Counts a copy: whether it had reached its limit (`limited`), and whether the walk ended there.
    pub(crate) fn note(&mut self, tid: Tid, limited: bool, ended_early: bool) {
        self.copies += 1;
        self.ended_early += u64::from(limited && ended_early);
        let named = if ended_early { &mut self.cut } else { &mut self.whole };
        if limited && named.len() < MOST_NAMED && !named.contains(&tid) {
            named.push(tid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_counted_by_what_came_of_them() {
        let mut counts = CopyCounts::default();
        for (tid, limited, ended) in [(1, false, false), (2, true, true), (3, true, false), (3, true, false)]
        {
            counts.note(Tid(tid), limited, ended);
        }
        assert_eq!(counts, CopyCounts { copies: 4, ended_early: 1, whole: vec![Tid(3)], cut: vec![Tid(2)] });
    }
}
