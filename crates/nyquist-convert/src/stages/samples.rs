//! Samples: what each stands for, and what stands for time without one.

use super::Stages;
use super::stacks::{Place, Waiting};
use crate::account::CpuTimeRemainder;
use crate::event::{Pid, Sample, SampleState, Tid, Timestamp};
use crate::intern::Mode;
use crate::off_cpu::OffCpuInterval;
use crate::track::Used;
use nyquist_profile::{self as profile, CategoryColor, ThreadIndex, well_known};

/// What a sample stands for.
struct Share {
    weight: u32,
    cpu_delta: u64,
    kind: Kind,
}

/// What a thread did in the time that a sample stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Ran,
    /// It waited for something to happen.
    Waited,
    /// It waited for a CPU alone, in the middle of its code.
    Runnable,
}

/// A sample without its stack, and where it goes.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) thread: ThreadIndex,
    /// The CPU that has a track of its own, and what the sample is called there.
    pub(super) on_cpu: Option<(u32, String)>,
    pub(super) sample: profile::Sample,
    /// Whether the thread waited for a CPU alone.
    pub(super) is_runnable: bool,
}

impl Stages {
    pub(super) fn sample(&mut self, now: Timestamp, cpu: Option<u32>, sample: &Sample) {
        self.end_wait(sample.tid, now);
        let id = (sample.pid, sample.tid);
        if self.is_left_out(id) {
            return;
        }
        let period = sample.period_ns.max(1);
        let used = match sample.cpu_time_ns {
            Some(since) if sample.counts_anew => self.thread(now, id).later_cpu_delta(cpu, since, now),
            Some(total) => self.thread(now, id).cpu_delta(cpu, total, now),
            None => Used { ns: period, since: now },
        };
        let lost = self.show_lost(now, (cpu, id), Used { ns: used.ns.saturating_sub(period), ..used });
        let used = used.ns - lost;
        let Some(Share { weight, cpu_delta, kind }) = self.share(now, sample, used) else { return };
        let off_cpu = kind != Kind::Ran;
        self.live_stacks.note_sample(sample.tid, now);
        let truncated = self.walk_user_stack(now, sample);
        self.statistics.truncated += u64::from(truncated.is_some());
        self.place_frames(now, sample, truncated);
        self.statistics.samples += 1;
        let thread = self.profile_thread(now, id);
        let row = Row {
            thread,
            on_cpu: self.cpu_track(now, cpu, id),
            sample: profile::Sample { time: self.profile_time(now), cpu_delta, stack: None, weight, off_cpu },
            is_runnable: kind == Kind::Runnable,
        };
        let dumps = &self.tracker.process(sample.pid, now).jit.dumps;
        if self.places.iter().any(Place::is_unknown) && !self.dumps.are_read_up_to(dumps, now) {
            let (dumps, places) = (dumps.clone(), self.places.clone());
            self.waiting.push_back(Waiting { time: now, row, places, dumps });
        } else {
            self.add_row(row);
        }
    }

    /// The CPU that has a track of its own, and what the sample is called there.
    pub(super) fn cpu_track(
        &mut self,
        now: Timestamp,
        cpu: Option<u32>,
        id: (Pid, Tid),
    ) -> Option<(u32, String)> {
        let cpu = cpu.filter(|_| self.shape.cpu_threads)?;
        Some((cpu, cpu_label(&self.thread(now, id).name, id)))
    }

    /// Adds a sample with the stack that `places` are.
    pub(super) fn add_row(&mut self, row: Row) {
        let mut stack = self.intern_places(row.thread.index());
        if row.is_runnable {
            // Its function is not one that waits.
            let other = self.builder.add_category(well_known::OTHER, CategoryColor::Grey);
            stack = Some(self.builder.intern_label(stack, well_known::RUNNABLE, Some(other)));
        }
        let sample = profile::Sample { stack, ..row.sample };
        self.builder.add_sample(row.thread, sample);
        if let Some((cpu, label)) = row.on_cpu {
            self.cpus.add_sample(&mut self.builder, cpu, &label, sample);
        }
    }

    /// What a sample stands for after `used` nanoseconds of CPU time; `None` where that is nothing yet.
    fn share(&mut self, now: Timestamp, sample: &Sample, used: u64) -> Option<Share> {
        let id = (sample.pid, sample.tid);
        let interval = self.interval();
        let waited = match sample.state {
            SampleState::Clocked => return Some(self.clocked_share(now, sample, used)),
            SampleState::Running { waited_ns }
            | SampleState::Runnable { waited_ns }
            | SampleState::Waiting { waited_ns } => waited_ns,
        };
        let thread = self.thread(now, id);
        thread.unsampled.add(used);
        thread.waited.add(waited);
        thread.unshown_ns = thread.unshown_ns.saturating_add(used);
        let on_cpu = match sample.state {
            SampleState::Running { .. } => thread.unsampled.take_nearest(interval),
            _ => 0,
        };
        // A thread that has hardly run waits for a CPU, whatever it seemed to do.
        let weight = if on_cpu > 0 { on_cpu } else { thread.waited.take_nearest(interval) };
        (weight > 0).then(|| Share {
            weight,
            cpu_delta: std::mem::take(&mut thread.unshown_ns),
            kind: match sample.state {
                _ if on_cpu > 0 => Kind::Ran,
                SampleState::Waiting { .. } => Kind::Waited,
                _ => Kind::Runnable,
            },
        })
    }

    /// What a sample stands for that its thread's own clock has triggered.
    fn clocked_share(&mut self, now: Timestamp, sample: &Sample, used: u64) -> Share {
        let id = (sample.pid, sample.tid);
        let (interval, period) = (self.interval(), sample.period_ns.max(1));
        let (weight, cpu_delta) = if self.options.kernel_permitted {
            (self.thread(now, id).unsampled.weigh(used, interval), used)
        } else {
            // What is beyond the sample's own period was spent in the kernel.
            self.thread(now, id).unsampled.add(used.saturating_sub(period));
            let shown = self.show_not_permitted(now, id);
            (CpuTimeRemainder::default().weigh(period, interval), used.saturating_sub(shown))
        };
        Share { weight, cpu_delta, kind: Kind::Ran }
    }

    /// A thread has left the CPU. What left it before and was not seen to come back must have come back.
    pub(super) fn switch_out(&mut self, now: Timestamp, cpu: Option<u32>, sample: &Sample) {
        self.end_wait(sample.tid, now);
        if self.wants((sample.pid, sample.tid), cpu, now) {
            let truncated = self.walk_user_stack(now, sample);
            self.place_frames(now, sample, truncated);
            let stack = self.intern_places(sample.tid.0 as usize);
            self.waits.begin(sample.tid, OffCpuInterval { pid: sample.pid, since: now, stack });
        }
    }

    /// A thread is on a CPU again: if it waited, that becomes a sample.
    pub(super) fn end_wait(&mut self, tid: Tid, now: Timestamp) {
        if let Some(wait) = self.waits.end(tid) {
            self.add_wait(tid, wait, now);
        }
    }

    pub(crate) fn end_all_waits(&mut self) {
        for (tid, wait) in self.waits.end_all() {
            self.add_wait(tid, wait, self.last_time);
        }
    }

    /// Adds a sample for the intervals that a thread has waited, at the end of its wait.
    fn add_wait(&mut self, tid: Tid, wait: OffCpuInterval, end: Timestamp) {
        let (interval, id) = (self.interval(), (wait.pid, tid));
        let waited = &mut self.thread(wait.since, id).waited;
        waited.add(end.0.saturating_sub(wait.since.0));
        let weight = waited.take_nearest(interval);
        if weight > 0 {
            let thread = self.profile_thread(wait.since, id);
            let time = self.profile_time(end);
            let row = profile::Sample { time, cpu_delta: 0, stack: wait.stack, weight, off_cpu: true };
            self.builder.add_sample(thread, row);
        }
    }

    /// A thread has ended: what it used since its last sample was never sampled.
    pub(super) fn total(&mut self, now: Timestamp, cpu: Option<u32>, id: (Pid, Tid), total: u64) {
        if self.is_left_out(id) {
            return;
        }
        let used = self.thread(now, id).cpu_delta(cpu, total, now);
        let lost = self.show_lost(now, (cpu, id), used);
        self.thread(now, id).unsampled.add(used.ns - lost);
        if !self.options.kernel_permitted {
            self.show_not_permitted(now, id);
        }
        let interval = self.interval();
        let process = self.tracker.process(id.0, now);
        let program = std::mem::take(&mut process.name);
        let left = self.leftovers.settle(&program, &mut process.thread(id.1, now).unsampled, interval);
        process.name = program;
        self.add_stand_in(now, id, well_known::NOT_SAMPLED, left);
    }

    /// Adds a sample for what of a thread's CPU time has none because it was lost. Gives back how much that is.
    fn show_lost(&mut self, now: Timestamp, (cpu, id): (Option<u32>, (Pid, Tid)), used: Used) -> u64 {
        let interval = self.interval();
        let intervals = self.losses.take_intervals(cpu, used, interval);
        self.add_stand_in(now, id, well_known::NOT_SAMPLED, intervals);
        (u64::from(intervals) * interval).min(used.ns)
    }

    /// Adds a sample for the thread's whole intervals without one, which it spent in the kernel. Gives back how
    /// much CPU time that is.
    fn show_not_permitted(&mut self, now: Timestamp, id: (Pid, Tid)) -> u64 {
        let interval = self.interval();
        let intervals = self.thread(now, id).unsampled.take_intervals(interval);
        self.add_stand_in(now, id, well_known::KERNEL_NOT_PERMITTED, intervals);
        u64::from(intervals) * interval
    }

    /// Adds a sample whose stack is only a name.
    fn add_stand_in(&mut self, now: Timestamp, id: (Pid, Tid), label: &str, weight: u32) {
        if weight == 0 {
            return;
        }
        let thread = self.profile_thread(now, id);
        self.add_stand_in_row(now, thread, label, weight);
    }

    /// The same, to a row.
    pub(super) fn add_stand_in_row(&mut self, now: Timestamp, row: ThreadIndex, label: &str, weight: u32) {
        let category = match label {
            well_known::KERNEL_NOT_PERMITTED => self.interner.category(Mode::Kernel),
            _ => self.builder.add_category(well_known::OTHER, CategoryColor::Grey),
        };
        let stack = Some(self.builder.intern_label(None, label, Some(category)));
        let cpu_delta = u64::from(weight) * self.interval();
        let time = self.profile_time(now);
        self.builder.add_sample(row, profile::Sample { time, cpu_delta, stack, weight, off_cpu: false });
    }
}

/// The root of a stack on a CPU's thread: whose it is.
fn cpu_label(name: &str, (pid, tid): (Pid, Tid)) -> String {
    format!("{name} (process {}, thread {})", pid.0, tid.0)
}
