//! How many threads a recording has.

/// The CPUs whose rings one reader copies out: at 10 kHz, with the most that is copied of a stack, it would have to copy 20 GB/s.
const CPUS_PER_READER: usize = 32;
/// The CPUs for which one more thread walks stacks: their samples at 10 kHz keep one busy for a third of the time up to all of it.
const CPUS_PER_WALKER: usize = 16;

/// The threads of a recording. On few CPUs one reads, and one converts; they keep up with these, and more of them would only take
/// time from what is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    /// Those that copy records out of the rings: one or more.
    pub readers: usize,
    /// Those that walk stacks where many wait, beside the one that converts.
    pub walkers: usize,
}

impl Threads {
    /// Those that it takes to record so many CPUs.
    pub fn for_cpus(cpus: usize) -> Self {
        Self { readers: cpus.div_ceil(CPUS_PER_READER).max(1), walkers: cpus / CPUS_PER_WALKER }
    }

    /// As many, where there are so many CPUs for them beside the program: a container may have few of a machine's.
    #[must_use]
    pub fn at_most(self, usable: usize) -> Self {
        let Self { readers, walkers } = self;
        Self { readers: readers.min(usable.max(1)), walkers: walkers.min(usable.saturating_sub(1)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_cpus_need_no_more_threads() {
        let threads = [0, 1, 2, 8, 15, 16, 33, 64, 128, 512].map(Threads::for_cpus);
        let expected = [(1, 0), (1, 0), (1, 0), (1, 0), (1, 0), (1, 1), (2, 2), (2, 4), (4, 8), (16, 32)];
        assert_eq!(threads.map(|threads| (threads.readers, threads.walkers)), expected);
        let usable = [0, 1, 2, 64].map(|usable| Threads::for_cpus(128).at_most(usable));
        assert_eq!(
            usable.map(|threads| (threads.readers, threads.walkers)),
            [(1, 0), (1, 0), (2, 1), (4, 8)]
        );
    }
}
