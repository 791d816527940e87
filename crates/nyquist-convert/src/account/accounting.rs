//! The account stage: how much time each sample stands for, and how much time has no sample.

use super::cycle_time::CycleTime;
use super::gap::{Gap, GapCause};
use super::losses::Losses;
use super::share::{Activity, Share};
use crate::event::{Sample, SampleState, Tid, Timestamp};
use crate::processes::process::Process;
use crate::processes::remainder::{CpuTimeRemainder, ProgramRemainders};
use crate::processes::thread::Thread;
use crate::processes::thread_time::UsedCpuTime;
use crate::statistics::Statistics;

/// The time of threads, and of the recording, that samples stand for.
#[derive(Debug)]
pub(crate) struct Accounting {
    rules: TimeRules,
    statistics: Statistics,
    losses: Losses,
    cycle_time: CycleTime,
    /// Whether the source counts the CPU time of threads apart from their samples.
    has_totals: bool,
    /// Whether samples have the CPU time of their thread from the thread's own clock, as those of ptrace do.
    reads_thread_clocks: bool,
    /// The remainders of threads that have ended.
    remainders: ProgramRemainders,
}

/// How time becomes samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeRules {
    /// The time that a sample of weight 1 stands for, in nanoseconds.
    pub(crate) interval: u64,
    /// The time between two samples of a thread, in nanoseconds. It is as many of these intervals.
    pub(crate) sampling_interval: u64,
    /// Whether the source may sample the kernel.
    pub(crate) kernel_permitted: bool,
    /// Whether time off the CPU is shown.
    pub(crate) shows_waits: bool,
}

/// Intervals without a sample, which a total of a thread's CPU time has shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unsampled {
    /// Their records were lost.
    pub(crate) lost: u64,
    /// The process spent them in the kernel, which may not be sampled.
    pub(crate) not_permitted: u64,
    /// What ended threads and processes of the program have left over.
    pub(crate) left: u64,
}

impl Accounting {
    /// The accounting of a recording that has no events yet.
    pub(crate) fn new(rules: TimeRules, cycle_time: Option<CycleTime>) -> Self {
        Self {
            rules,
            statistics: Statistics::default(),
            losses: Losses::default(),
            cycle_time: cycle_time.unwrap_or_else(|| CycleTime::new(rules.sampling_interval)),
            has_totals: false,
            reads_thread_clocks: false,
            remainders: ProgramRemainders::default(),
        }
    }

    /// The counters so far.
    pub(crate) fn statistics(&self) -> Statistics {
        self.statistics.clone()
    }

    /// Counts a sample of the profile.
    pub(crate) fn count_sample(&mut self, is_truncated: bool) {
        self.statistics.truncated += u64::from(is_truncated);
        self.statistics.samples += 1;
    }

    /// Notes that a CPU has a sample, of any thread.
    pub(crate) fn note_sampled(&mut self, now: Timestamp, cpu: Option<u32>) {
        self.losses.note_sampled(now, cpu);
    }

    /// Computes the period of a sample that a counter of cycles has triggered. The samples of all processes
    /// show how fast the CPUs are.
    pub(crate) fn set_period(&mut self, sample: &mut Sample) {
        if let SampleState::Counted { cycles } = sample.state {
            sample.period_ns = self.cycle_time.ns(cycles);
        }
    }

    /// Records were dropped since the CPU's last sample. Returns the time in which samples may be missing.
    pub(crate) fn lose(&mut self, now: Timestamp, cpu: Option<u32>, records: u64) -> Gap {
        let gap = self.losses.lose(now, cpu, records);
        self.count_lost(&gap);
        gap
    }

    /// Notes a total of dropped records from one of the source's counters.
    pub(crate) fn count_lost_in_all(&mut self, cpu: Option<u32>, records: u64) {
        self.losses.count(cpu, records);
    }

    /// Adds CPU time that the source's counters have measured for everything that was recorded.
    pub(crate) fn count_cpu_time(&mut self, used_ns: u64) {
        self.losses.count_cpu_time(used_ns);
    }

    /// A CPU takes no samples from now on.
    pub(crate) fn pause(&mut self, now: Timestamp, cpu: Option<u32>) {
        self.statistics.throttled += 1;
        self.losses.pause(now, cpu);
    }

    /// A CPU takes samples again. Returns the time in which it took none.
    pub(crate) fn resume(&mut self, now: Timestamp, cpu: Option<u32>) -> Option<Gap> {
        self.losses.resume(now, cpu)
    }

    /// Ends all pauses at the end of the recording. Returns them, and the losses without a loss record.
    pub(crate) fn end_gaps(&mut self, end: Timestamp) -> Vec<Gap> {
        let gaps = self.losses.end(end);
        for gap in &gaps {
            self.count_lost(gap);
        }
        gaps
    }

    fn count_lost(&mut self, gap: &Gap) {
        if let GapCause::Lost(records) = gap.cause {
            self.statistics.lost = self.statistics.lost.saturating_add(records);
        }
    }

    /// How many records were dropped so far.
    pub(crate) fn lost(&self) -> u64 {
        self.statistics.lost
    }

    /// The time of the last loss record.
    pub(crate) fn last_loss(&self) -> Option<Timestamp> {
        self.losses.last()
    }

    /// The CPU time that a thread has used since its last sample. Returns that time less the time of lost
    /// records, and the number of intervals with lost records.
    pub(crate) fn used_by_sample(
        &mut self,
        thread: &mut Thread,
        (sample, now): (&Sample, Timestamp),
        cpu: Option<u32>,
    ) -> (u64, u64) {
        let period = sample.period_ns.max(1);
        let used = match sample.cpu_time_ns {
            Some(since) if sample.counts_anew => thread.time.later_cpu_delta(cpu, since, now),
            Some(total) => thread.time.cpu_delta(cpu, total, now),
            None => {
                thread.time.note_unconfirmed(cpu, period, now);
                UsedCpuTime { ns: period, since: now }
            }
        };
        let beyond = UsedCpuTime { ns: used.ns.saturating_sub(period), ..used };
        let (lost_ns, lost) = self.take_lost(cpu, beyond);
        (used.ns - lost_ns, lost)
    }

    /// The part of a thread's CPU time whose samples were lost, in nanoseconds and in intervals.
    fn take_lost(&mut self, cpu: Option<u32>, used: UsedCpuTime) -> (u64, u64) {
        let TimeRules { interval, sampling_interval, .. } = self.rules;
        let samples = self.losses.take_intervals(cpu, used, sampling_interval);
        let lost_ns = samples.saturating_mul(sampling_interval).min(used.ns);
        (lost_ns, lost_ns / interval)
    }

    /// The share of a sample after `used` nanoseconds of CPU time. `None` if its weight would be zero.
    pub(crate) fn share(
        &mut self,
        process: &mut Process,
        (sample, now): (&Sample, Timestamp),
        used: u64,
    ) -> Option<Share> {
        process.unsampled.note_sample();
        let waited = match sample.state {
            SampleState::Clocked => return Some(self.clocked_share(process, (sample, now), used)),
            SampleState::Counted { .. } => return self.counted_share(process, (sample, now), used),
            SampleState::Running { waited_ns }
            | SampleState::Runnable { waited_ns }
            | SampleState::Waiting { waited_ns, .. } => waited_ns,
        };
        self.reads_thread_clocks = true;
        let thread = process.thread(sample.tid, now);
        thread.time.unsampled.add(used);
        thread.time.waited.add(waited);
        thread.time.unshown_ns = thread.time.unshown_ns.saturating_add(used);
        let on_cpu = match sample.state {
            SampleState::Running { .. } => thread.time.unsampled.take_nearest(self.rules.interval),
            _ => 0,
        };
        // The thread has hardly run, so it waits for a CPU, even if it seemed to run.
        let weight = if on_cpu > 0 { on_cpu } else { thread.time.waited.take_nearest(self.rules.interval) };
        (weight > 0).then(|| Share {
            weight,
            cpu_delta: std::mem::take(&mut thread.time.unshown_ns),
            activity: match sample.state {
                _ if on_cpu > 0 => Activity::Ran,
                SampleState::Waiting { reason, .. } => Activity::Waited(reason),
                _ => Activity::Runnable,
            },
            not_permitted: 0,
        })
    }

    /// The share of a sample that the clock of its own thread has triggered.
    fn clocked_share(&self, process: &mut Process, (sample, now): (&Sample, Timestamp), used: u64) -> Share {
        let (interval, period) = (self.rules.interval, sample.period_ns.max(1));
        let activity = Activity::Ran;
        if self.rules.kernel_permitted {
            // The thread may have slept and woken so often that it has too few samples.
            let more = process.unsampled.take_one_certain(process.shares_clocks(), interval);
            let weight = process.thread(sample.tid, now).time.unsampled.weigh(used, interval);
            let cpu_delta = used.saturating_add(more.saturating_mul(interval));
            return Share { weight: weight.saturating_add(more), cpu_delta, activity, not_permitted: 0 };
        }
        let thread = process.thread(sample.tid, now);
        // Time beyond the sample's own period was spent in the kernel.
        thread.time.unsampled.add(used.saturating_sub(period));
        let not_permitted = self.take_not_permitted(thread);
        let shown = not_permitted.saturating_mul(interval);
        let weight = CpuTimeRemainder::default().weigh(period, interval);
        Share { weight, cpu_delta: used.saturating_sub(shown), activity, not_permitted }
    }

    /// The share of a sample that a counter of cycles has triggered. Time of the kernel is known by totals.
    fn counted_share(
        &self,
        process: &mut Process,
        (sample, now): (&Sample, Timestamp),
        used: u64,
    ) -> Option<Share> {
        let interval = self.rules.interval;
        let shares_clocks = process.shares_clocks();
        let thread = process.thread(sample.tid, now);
        thread.time.unsampled.add(used);
        thread.time.unshown_ns = thread.time.unshown_ns.saturating_add(used);
        let weight = thread.time.unsampled.take_nearest(interval);
        if weight == 0 {
            return None;
        }
        let cpu_delta = std::mem::take(&mut thread.time.unshown_ns);
        let is_behind = self.rules.kernel_permitted;
        let more = if is_behind { process.unsampled.take_one_certain(shares_clocks, interval) } else { 0 };
        Some(Share {
            weight: weight.saturating_add(more),
            cpu_delta: cpu_delta.saturating_add(more.saturating_mul(interval)),
            activity: Activity::Ran,
            not_permitted: 0,
        })
    }

    /// The thread's whole intervals without a sample. It spent them in the kernel, if the kernel may not be
    /// sampled.
    fn take_not_permitted(&self, thread: &mut Thread) -> u64 {
        if self.rules.kernel_permitted {
            0
        } else {
            thread.time.unsampled.take_intervals(self.rules.interval)
        }
    }

    /// Adds nanoseconds off the CPU that end now. Returns the intervals of the thread's time off the CPU that
    /// no sample stands for.
    pub(crate) fn waited(&self, thread: &mut Thread, waited_ns: u64, end: Timestamp) -> u64 {
        let waited_ns =
            if self.rules.shows_waits { thread.time.waited_apart(waited_ns, end) } else { waited_ns };
        thread.time.waited.add(waited_ns);
        thread.time.waited.take_nearest(self.rules.interval)
    }

    /// Accounts for the CPU time that a thread has used in all when it ended, or so far.
    pub(crate) fn count_total(
        &mut self,
        process: &mut Process,
        tid: Tid,
        (total, now): (u64, Timestamp),
        cpu: Option<u32>,
    ) -> Unsampled {
        self.has_totals = true;
        let (interval, thread) = (self.rules.interval, process.thread(tid, now));
        let used = thread.time.cpu_delta(cpu, total, now);
        let sampled = thread.time.take_unconfirmed(cpu);
        let beyond = UsedCpuTime { ns: used.ns.saturating_sub(sampled), ..used };
        let (lost_ns, lost) = self.take_lost(cpu, beyond);
        thread.time.unsampled.add(used.ns - lost_ns);
        thread.time.unsampled.take_out(sampled);
        if self.rules.shows_waits {
            let counted = thread.time.newly_counted_as_wait(now);
            thread.time.unsampled.take_out(counted);
        }
        let mut rest = std::mem::take(&mut thread.time.unsampled);
        // Nothing shows where a thread that is shorter than an interval has spent its time.
        if thread.end.is_some() && !thread.time.has_unconfirmed_samples() && rest.is_fraction(interval) {
            let left = self.remainders.settle(&process.name, &mut rest, interval);
            return Unsampled { lost, left, not_permitted: 0 };
        }
        // What a thread's own clock shows was not in another thread.
        let left = if self.reads_thread_clocks { rest.take_intervals(interval) } else { 0 };
        process.unsampled.add(rest);
        let settled = self.settle(process);
        Unsampled { lost, left: settled.left + left, ..settled }
    }

    /// Takes the intervals of a process that certainly have no sample. If the kernel is sampled, too, the next
    /// samples take them.
    fn settle(&mut self, process: &mut Process) -> Unsampled {
        if self.rules.kernel_permitted && !process.unsampled.has_samples() {
            let left = process.unsampled.rest().take_intervals(self.rules.interval);
            return Unsampled { left, ..Unsampled::default() };
        }
        let shares_clocks = process.shares_clocks();
        let not_permitted = self.take_certain_not_permitted(process, shares_clocks);
        Unsampled { not_permitted, ..Unsampled::default() }
    }

    /// Takes all intervals of a process that gets no more samples, and what it and other ended processes of its
    /// program have left over.
    pub(crate) fn end_process(&mut self, process: &mut Process) -> Unsampled {
        let not_permitted = self.take_certain_not_permitted(process, false);
        let left = self.remainders.settle(&process.name, process.unsampled.rest(), self.rules.interval);
        Unsampled { lost: 0, not_permitted, left }
    }

    /// Takes the intervals that a process spent in the kernel, if the kernel may not be sampled. If a short
    /// process has no sample in its own code, nothing shows that it was in the kernel.
    fn take_certain_not_permitted(&self, process: &mut Process, shares_clocks: bool) -> u64 {
        // Where records were lost, the time may be that of their samples.
        let shows_kernel = process.unsampled.shows_kernel(self.rules.interval) && self.statistics.lost == 0;
        if self.rules.kernel_permitted || !shows_kernel {
            return 0;
        }
        process.unsampled.take_certain(shares_clocks, self.rules.interval)
    }

    /// Whether some CPU time that the source has counted may have no samples, because records were lost. The
    /// lost records may include those of threads' total CPU time, so the thread of that time is not known. The
    /// kernel does not count the lost records of totals.
    pub(crate) fn may_have_rest(&self) -> bool {
        self.losses.cpu_time_ns() > 0 && (self.statistics.lost > 0 || self.has_totals)
    }

    /// The intervals of all CPU time that the source has counted, less those that have samples in the
    /// profile.
    pub(crate) fn rest(&self, shown: u64) -> Option<u64> {
        let rest = (self.losses.cpu_time_ns() / self.rules.interval).saturating_sub(shown);
        (rest > 0).then_some(rest)
    }
}
