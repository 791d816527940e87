//! The time of a thread: what it has used on each CPU and waited, and what of that is in samples.

use super::remainder::CpuTimeRemainder;
use crate::event::Timestamp;

/// The time of a thread.
#[derive(Debug)]
pub(crate) struct ThreadTime {
    /// When the thread began.
    start: Timestamp,
    /// Its CPU time on each CPU at its last sample there.
    cpu_times: Vec<CpuTime>,
    /// The same for the events that have taken over from the first events.
    later_cpu_times: Vec<CpuTime>,
    /// On each CPU, the time of samples that the counters of the source have not confirmed yet.
    unconfirmed: Vec<CpuTime>,
    /// CPU time that no sample stands for yet.
    pub(crate) unsampled: CpuTimeRemainder,
    /// Time off the CPU that no sample stands for yet.
    pub(crate) waited: CpuTimeRemainder,
    /// All time off the CPU that is in the profile, in nanoseconds.
    waited_ns: u64,
    /// How much of its CPU time is shown as time off the CPU, in nanoseconds.
    counted_as_wait_ns: u64,
    /// CPU time that is in no sample's delta yet, in nanoseconds.
    pub(crate) unshown_ns: u64,
}

/// CPU time on a CPU, or on all of them together.
#[derive(Clone, Copy, Debug)]
struct CpuTime {
    cpu: Option<u32>,
    ns: u64,
    /// When it was reported.
    at: Timestamp,
}

/// CPU time that a thread has used since its last event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UsedCpuTime {
    /// In nanoseconds.
    pub(crate) ns: u64,
    /// The time of its last event.
    pub(crate) since: Timestamp,
}

impl ThreadTime {
    pub(super) fn new(start: Timestamp) -> Self {
        Self {
            start,
            cpu_times: Vec::new(),
            later_cpu_times: Vec::new(),
            unconfirmed: Vec::new(),
            unsampled: CpuTimeRemainder::default(),
            waited: CpuTimeRemainder::default(),
            waited_ns: 0,
            counted_as_wait_ns: 0,
            unshown_ns: 0,
        }
    }

    /// The CPU time that the thread has used on a CPU since its last event there, given its total there, in
    /// nanoseconds. Without a CPU, the total is that of all CPUs.
    pub(crate) fn cpu_delta(&mut self, cpu: Option<u32>, total_ns: u64, now: Timestamp) -> UsedCpuTime {
        let known = self.cpu_times.iter().chain(&self.later_cpu_times);
        let known = known.filter(|known| cpu.is_none() || known.cpu == cpu);
        let mut used = self.used_since(known, total_ns);
        // What was known of all CPUs together is known no longer when it is known by CPU.
        if cpu.is_some()
            && let Some(of_all) = self.cpu_times.iter_mut().find(|known| known.cpu.is_none())
        {
            let known_ns = of_all.ns.min(used.ns);
            of_all.ns -= known_ns;
            add_time(&mut self.cpu_times, CpuTime { cpu, ns: known_ns, at: now });
            used.ns -= known_ns;
        }
        add_time(&mut self.cpu_times, CpuTime { cpu, ns: used.ns, at: now });
        used
    }

    /// Notes a sample of a source that does not count the CPU time up to each sample.
    pub(crate) fn note_unconfirmed(&mut self, cpu: Option<u32>, ns: u64, at: Timestamp) {
        add_time(&mut self.unconfirmed, CpuTime { cpu, ns, at });
    }

    /// The time of such samples that a total on a CPU, or on all CPUs, includes, in nanoseconds.
    pub(crate) fn take_unconfirmed(&mut self, cpu: Option<u32>) -> u64 {
        let included = self.unconfirmed.iter_mut().filter(|time| cpu.is_none() || time.cpu == cpu);
        included.map(|time| std::mem::take(&mut time.ns)).fold(0, u64::saturating_add)
    }

    /// Whether the thread has such samples.
    pub(crate) fn has_unconfirmed_samples(&self) -> bool {
        !self.unconfirmed.is_empty()
    }

    /// The same, given its CPU time on a CPU since another event has taken over. The time between the first
    /// event's last sample and the take-over becomes known with the total.
    pub(crate) fn later_cpu_delta(&mut self, cpu: Option<u32>, since_ns: u64, now: Timestamp) -> UsedCpuTime {
        let known = self.later_cpu_times.iter().filter(|known| known.cpu == cpu);
        let used = self.used_since(known, since_ns);
        add_time(&mut self.later_cpu_times, CpuTime { cpu, ns: used.ns, at: now });
        used
    }

    /// The part of a wait, which ends now, that fits into the thread's lifetime beside its CPU time and its
    /// earlier waits. The kernel reports a switch some microseconds before it stops the thread's clock, and
    /// reports the switch back after it has started the clock.
    pub(crate) fn waited_apart(&mut self, waited_ns: u64, now: Timestamp) -> u64 {
        let lived = now.0.saturating_sub(self.start.0);
        let waited = waited_ns.min(lived.saturating_sub(self.used_ns()).saturating_sub(self.waited_ns));
        self.waited_ns = self.waited_ns.saturating_add(waited);
        waited
    }

    /// All its CPU time up to its last event, in nanoseconds.
    fn used_ns(&self) -> u64 {
        let times = self.cpu_times.iter().chain(&self.later_cpu_times).chain(&self.unconfirmed);
        times.fold(0, |sum, time| sum.saturating_add(time.ns))
    }

    /// The CPU time, in nanoseconds, that is already shown as time off the CPU, as far as it was found since
    /// the last call. If a thread's samples are rare, some microseconds of each of its waits are CPU time.
    pub(crate) fn newly_counted_as_wait(&mut self, now: Timestamp) -> u64 {
        let lived = now.0.saturating_sub(self.start.0);
        let beyond = self.used_ns().saturating_add(self.waited_ns).saturating_sub(lived);
        let newly = beyond.saturating_sub(self.counted_as_wait_ns);
        self.counted_as_wait_ns = self.counted_as_wait_ns.saturating_add(newly);
        newly
    }

    /// The part of a sum that is not known yet. The arithmetic saturates, because files can state impossible
    /// times.
    fn used_since<'a>(&self, known: impl Iterator<Item = &'a CpuTime>, total_ns: u64) -> UsedCpuTime {
        let sampled = self.unconfirmed.iter().map(|sampled| sampled.at).max().unwrap_or(self.start);
        let (known_ns, since) = known.fold((0, self.start.max(sampled)), |(sum, since): (u64, _), known| {
            (sum.saturating_add(known.ns), since.max(known.at))
        });
        UsedCpuTime { ns: total_ns.saturating_sub(known_ns), since }
    }
}

fn add_time(times: &mut Vec<CpuTime>, more: CpuTime) {
    match times.iter_mut().find(|known| known.cpu == more.cpu) {
        Some(known) => *known = CpuTime { ns: known.ns.saturating_add(more.ns), ..more },
        None => times.push(more),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1);

    #[test]
    fn cpu_time_counts_from_zero_on_each_cpu() {
        let mut time = ThreadTime::new(NOW);
        let mut delta = |cpu, total| time.cpu_delta(Some(cpu), total, NOW).ns;
        assert_eq!([delta(0, 10), delta(1, 4), delta(0, 15), delta(1, 4), delta(0, 2)], [10, 4, 5, 0, 0]);
        assert_eq!(time.cpu_delta(None, 25, NOW).ns, 6, "the sum of all CPUs stands beside them");
        assert_eq!(time.cpu_delta(None, 25, NOW).ns, 0);
    }

    #[test]
    fn later_totals_include_a_reading_of_all_cpus() {
        let mut time = ThreadTime::new(NOW);
        assert_eq!(time.cpu_delta(None, 10, NOW).ns, 10);
        assert_eq!(time.cpu_delta(None, 16, NOW).ns, 6);
        let mut delta = |cpu, total| time.cpu_delta(Some(cpu), total, NOW).ns;
        assert_eq!([delta(0, 12), delta(1, 7), delta(2, 1)], [0, 3, 1]);
        assert_eq!(time.cpu_delta(None, 21, NOW).ns, 1);
    }

    #[test]
    fn a_total_confirms_the_samples_of_its_cpu() {
        let mut time = ThreadTime::new(NOW);
        for (cpu, ns) in [(0, 10), (1, 10), (0, 10)] {
            time.note_unconfirmed(Some(cpu), ns, NOW);
        }
        let mut confirmed = |cpu| time.take_unconfirmed(cpu);
        assert_eq!([Some(0), Some(0), None, None].map(&mut confirmed), [20, 0, 10, 0]);
    }

    #[test]
    fn running_and_waiting_fit_the_time_passed() {
        let mut time = ThreadTime::new(Timestamp(100));
        assert_eq!(time.waited_apart(50, Timestamp(150)), 50, "nothing is known of its CPU time");
        time.cpu_delta(Some(0), 30, Timestamp(190));
        assert_eq!(time.waited_apart(25, Timestamp(200)), 20);
        assert_eq!(time.waited_apart(25, Timestamp(200)), 0);
        assert_eq!(time.waited_apart(25, Timestamp(225)), 25);
    }

    #[test]
    fn cpu_time_known_late_is_not_shown_twice() {
        let mut time = ThreadTime::new(Timestamp(100));
        assert_eq!(time.waited_apart(80, Timestamp(200)), 80);
        time.cpu_delta(Some(0), 15, Timestamp(200));
        assert_eq!(time.newly_counted_as_wait(Timestamp(200)), 0);
        time.cpu_delta(Some(1), 12, Timestamp(200));
        assert_eq!(time.newly_counted_as_wait(Timestamp(200)), 7);
        assert_eq!(time.newly_counted_as_wait(Timestamp(200)), 0);
    }

    #[test]
    fn a_counter_taking_over_counts_from_zero() {
        let mut time = ThreadTime::new(NOW);
        assert_eq!(time.cpu_delta(Some(0), 10, NOW).ns, 10);
        let deltas = [(0, 4), (1, 3), (0, 9)].map(|(cpu, ns)| time.later_cpu_delta(Some(cpu), ns, NOW).ns);
        assert_eq!(deltas, [4, 3, 5]);
        assert_eq!(time.cpu_delta(Some(0), 21, NOW).ns, 2, "before the one and after the other");
        assert_eq!(time.cpu_delta(None, 30, NOW).ns, 6);
    }
}
