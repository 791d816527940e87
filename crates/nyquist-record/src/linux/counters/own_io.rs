//! The bytes that a process itself has read and written. The kernel's sum for a process (`/proc/PID/io`) also has those
//! of the children that it has waited for, whole, at the moment of the wait.

use std::collections::HashMap;

use super::texts::ProcessIo;

/// The most threads of a process whose bytes are read one by one.
pub(super) const MAX_THREADS: u64 = 64;

/// The bytes of one process.
///
/// Between two readings without a waited-for child, its sum rises by its own bytes. In the others, the bytes of its
/// living threads are added up. What a thread does in such an interval is lost if the thread ends in it, too. Waits are
/// recognized by the page faults of waited-for children, which rise together with their bytes: every child has page
/// faults.
#[derive(Debug, Default)]
pub(super) struct OwnIo {
    own: ProcessIo,
    /// The kernel's sum at the last reading.
    whole: ProcessIo,
    /// The page faults of waited-for children after the last two readings, the older first.
    child_faults: [u64; 2],
    /// The bytes of the threads that lived at the last reading.
    threads: HashMap<u32, ProcessIo>,
    has_children: bool,
}

/// What is read of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct IoReading {
    pub(super) whole: ProcessIo,
    /// The page faults of waited-for children, read after `whole`.
    pub(super) child_faults: u64,
}

impl OwnIo {
    /// Notes that the process has a child, so that its threads are read before it waits for that.
    pub(super) fn note_child(&mut self) {
        self.has_children = true;
    }

    /// Adds what a reading says; returns the process's own bytes so far. `read_threads` returns those of each living
    /// thread, or `None` if they are not readable: then those of waited-for children cannot be told apart.
    pub(super) fn note(
        &mut self,
        reading: IoReading,
        read_threads: impl FnOnce() -> Option<Vec<(u32, ProcessIo)>>,
    ) -> ProcessIo {
        let IoReading { whole, child_faults } = reading;
        // A child that was waited for between the bytes and the page faults of the last reading is in `whole` only now.
        let [older, last] = self.child_faults;
        let has_waited = older != child_faults;
        self.child_faults = [last, child_faults];
        self.has_children |= child_faults > 0;
        let risen = whole.less(self.whole);
        self.whole = whole;
        let threads = self.has_children.then(read_threads).flatten();
        let growth = threads.map(|threads| self.growth_of(&threads)).filter(|_| has_waited).unwrap_or(risen);
        self.own = self.own.plus(growth);
        self.own
    }

    /// The bytes of threads since their last reading. At their first reading, those that are not yet counted.
    fn growth_of(&mut self, found: &[(u32, ProcessIo)]) -> ProcessIo {
        let before = std::mem::replace(&mut self.threads, found.iter().copied().collect());
        if before.is_empty() {
            let sum = found.iter().fold(ProcessIo::default(), |sum, (_, io)| sum.plus(*io));
            return sum.less(self.own);
        }
        // A thread id that is used again counts from zero.
        let last = |tid, io: ProcessIo| before.get(tid).copied().filter(|last| last.is_within(io));
        let growths = found.iter().map(|(tid, io)| io.less(last(tid, *io).unwrap_or_default()));
        growths.fold(ProcessIo::default(), ProcessIo::plus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(written: u64) -> ProcessIo {
        ProcessIo { written, ..ProcessIo::default() }
    }

    /// The kernel's sum, the page faults of children, and the threads.
    type Numbers<'a> = (u64, u64, &'a [(u32, u64)]);

    /// The own bytes after each of these readings.
    fn own(own: &mut OwnIo, readings: &[Numbers<'_>]) -> Vec<u64> {
        let note = |(whole, child_faults, threads): &Numbers<'_>| {
            let reading = IoReading { whole: bytes(*whole), child_faults: *child_faults };
            let threads = threads.iter().map(|(tid, io)| (*tid, bytes(*io))).collect();
            own.note(reading, || Some(threads)).written
        };
        readings.iter().map(note).collect()
    }

    #[test]
    fn without_children_all_bytes_are_own() {
        let readings: &[Numbers<'_>] = &[(10, 0, &[]), (25, 0, &[]), (40, 0, &[])];
        assert_eq!(own(&mut OwnIo::default(), readings), [10, 25, 40]);
    }

    #[test]
    fn bytes_of_children_are_not_the_parents() {
        let readings: &[Numbers<'_>] = &[
            (10, 0, &[]),
            // A child with 500 is waited for. The parent has written 2 more.
            (512, 90, &[(1, 12)]),
            (515, 90, &[(1, 15)]),
            // From here on the sum rises by the process's own, also that of a second thread that ends.
            (520, 90, &[(1, 16), (2, 4)]),
            (529, 90, &[(1, 20)]),
        ];
        assert_eq!(own(&mut OwnIo::default(), readings), [10, 12, 15, 20, 29]);
    }

    #[test]
    fn a_wait_between_bytes_and_faults_is_noticed() {
        let readings: &[Numbers<'_>] =
            &[(10, 0, &[]), (10, 90, &[(1, 10)]), (510, 90, &[(1, 10)]), (511, 90, &[(1, 11)])];
        assert_eq!(own(&mut OwnIo::default(), readings), [10, 10, 10, 11]);
    }

    #[test]
    fn threads_are_known_before_the_first_wait() {
        let mut known = OwnIo::default();
        known.note_child();
        let readings: &[Numbers<'_>] = &[(30, 0, &[(1, 10), (2, 20)]), (535, 90, &[(1, 15), (3, 0)])];
        assert_eq!(own(&mut known, readings), [30, 35]);
        // A thread id that is used again has counted from zero.
        assert_eq!(own(&mut known, &[(600, 95, &[(1, 15), (3, 7)]), (700, 99, &[(1, 4)])]), [42, 46]);
    }

    #[test]
    fn bytes_of_earlier_children_are_left_out() {
        let readings: &[Numbers<'_>] = &[(900, 70, &[(1, 3)]), (905, 70, &[(1, 8)]), (906, 70, &[(1, 9)])];
        assert_eq!(own(&mut OwnIo::default(), readings), [3, 8, 9]);
    }
}
