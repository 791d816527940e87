//! The CPU time of a thread, from a clock that may advance in large steps.

/// Steps up to this are small beside the time for which a thread that wakes runs.
const MAX_FINE_STEP_NS: u64 = 10_000;

/// The CPU time of a thread since it was first seen. Between two steps of the system's clock it is estimated
/// from the times at which the thread was seen to run, and never differs by more than a step.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_field_names, reason = "the unit is part of each name")]
pub(crate) struct CpuClock {
    /// The steps in which the system's clock advances, in nanoseconds; 0 if it is exact.
    step_ns: u64,
    /// The system's clock at the first look and at the last one.
    base_ns: u64,
    read_ns: u64,
    used_ns: u64,
    /// What the thread had used before that under the same number.
    carried_ns: u64,
}

impl CpuClock {
    /// The clock of a thread that had used `base_ns` when it was first seen.
    pub(crate) fn new(step_ns: u64, base_ns: u64) -> Self {
        Self { step_ns, base_ns, read_ns: base_ns, used_ns: 0, carried_ns: 0 }
    }

    /// The same clock for a thread that goes on where another one has ended.
    pub(crate) fn carrying(self, carried_ns: u64) -> Self {
        Self { carried_ns, ..self }
    }

    /// How far the system's clock is beyond the last look, in nanoseconds.
    pub(crate) fn advance_to(&self, read_ns: u64) -> u64 {
        read_ns.saturating_sub(self.read_ns)
    }

    /// Takes over the system's clock, and time for which the thread was seen to run. Returns the CPU time in
    /// nanoseconds since the last look.
    pub(crate) fn note(&mut self, read_ns: u64, ran_ns: u64) -> u64 {
        let before = self.used_ns;
        self.read_ns = self.read_ns.max(read_ns);
        let counted = self.read_ns.saturating_sub(self.base_ns);
        let most = counted.saturating_add(self.step_ns.saturating_sub(1));
        self.used_ns = self.used_ns.saturating_add(ran_ns).clamp(counted, most);
        self.used_ns - before
    }

    /// The CPU time in nanoseconds since it was first seen, with what was carried over.
    pub(crate) fn used_ns(&self) -> u64 {
        self.used_ns.saturating_add(self.carried_ns)
    }

    /// The steps in which the system's clock advances, in nanoseconds; 0 if it is exact.
    pub(crate) fn step_ns(&self) -> u64 {
        self.step_ns
    }

    /// Whether the system's clock advances in steps that hide that a thread has run.
    pub(crate) fn is_coarse(&self) -> bool {
        self.step_ns > MAX_FINE_STEP_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn an_exact_clock_is_taken_as_it_is() {
        let mut clock = CpuClock::new(0, 500);
        assert_eq!([600, 600, 750].map(|read| clock.note(read, MS)), [100, 0, 150]);
        assert_eq!(clock.note(700, 0), 0, "it never goes back");
        assert_eq!(clock.used_ns(), 250);
        let mut next = CpuClock::new(0, 10).carrying(250);
        assert_eq!((next.note(30, 0), next.used_ns()), (20, 270));
    }

    #[test]
    fn time_between_steps_is_estimated() {
        let mut clock = CpuClock::new(10 * MS, 20 * MS);
        let used = [20, 20, 20].map(|read| clock.note(read * MS, MS));
        assert_eq!(used, [MS; 3]);
        assert_eq!(clock.note(30 * MS, MS), 7 * MS, "more than was seen");
        for _ in 0..50 {
            clock.note(30 * MS, MS);
        }
        assert_eq!(clock.used_ns(), 20 * MS - 1, "no more than a step is estimated");
        assert_eq!(clock.note(40 * MS, 0), 1);
    }
}
