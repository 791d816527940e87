//! The recorded threads, and what is known of each.

use std::ops::Range;

use nyquist_convert::event::{Registers, UserStack};

use super::cpu_clock::CpuClock;

/// A recorded thread.
#[derive(Debug)]
pub(crate) struct RecordedThread<T> {
    pub(crate) pid: u32,
    /// The number of the thread by which the system knows it.
    pub(crate) tid: u32,
    /// The number that events have: that of its process for the main thread.
    pub(crate) shown_tid: u32,
    pub(crate) thread: T,
    pub(crate) clock: CpuClock,
    pub(crate) activity: Activity,
    /// The registers at the last look that suspended it.
    pub(crate) registers: Option<Registers>,
    /// The addresses of its stack, when it was last needed.
    pub(crate) stack: Range<u64>,
    /// When it was last checked.
    pub(crate) looked_at: u64,
    /// How long it has waited since its last sample, in nanoseconds.
    pub(crate) waited_ns: u64,
    /// How much of its CPU time samples stand for.
    pub(crate) sampled_ns: u64,
    /// How often it got a CPU, by the last listing.
    pub(crate) turns: u32,
    /// Whether the last listing shows that it has run since its last look.
    pub(crate) is_due: bool,
    /// How many looks in a row have found it in the same place, if its clock is coarse.
    pub(crate) unchanged_checks: u32,
    /// When such a thread is looked at again, even if its clock has not moved.
    pub(crate) next_check: u64,
    /// Whether a look has suspended it since its clock was last read: it uses some CPU time for that.
    pub(crate) is_disturbed: bool,
    /// Whether it has run since its name was last read.
    pub(crate) has_run: bool,
    pub(crate) name: String,
}

/// What the system's clocks say of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuReading {
    /// Its CPU time, as the system counts it.
    pub(crate) counted_ns: u64,
    /// About how long it has run since the last reading, if another clock shows that.
    pub(crate) estimated_run_ns: Option<u64>,
}

/// What a thread is doing, as far as known.
#[derive(Debug)]
pub(crate) enum Activity {
    /// It ran at the last look, or nothing is known.
    Running,
    /// It waited at the last look, and this was its stack.
    Waiting(UserStack),
}

/// The CPU time that a suspension costs the suspended thread at most: it enters and leaves the kernel.
const COST_OF_LOOK_NS: u64 = 30_000;
/// The longest time between two looks at a waiting thread whose clock is coarse, in nanoseconds.
const MAX_PAUSE_NS: u64 = 32_000_000;

impl<T> RecordedThread<T> {
    /// A thread that is recorded from now on.
    pub(crate) fn new((pid, tid): (u32, u32), thread: T, clock: CpuClock, now: u64) -> Self {
        Self {
            pid,
            tid,
            shown_tid: tid,
            thread,
            clock,
            activity: Activity::Running,
            registers: None,
            stack: 0..0,
            looked_at: now,
            waited_ns: 0,
            sampled_ns: 0,
            turns: 0,
            is_due: true,
            unchanged_checks: 0,
            next_check: now,
            is_disturbed: false,
            has_run: true,
            name: String::new(),
        }
    }

    /// Whether it ran at the last look.
    pub(crate) fn is_running(&self) -> bool {
        matches!(self.activity, Activity::Running)
    }

    /// Whether it may have run since the last look, given what the system's clocks say.
    pub(crate) fn may_have_run(&self, read: CpuReading, now: u64) -> bool {
        let own_cost = if self.is_disturbed { COST_OF_LOOK_NS } else { 0 };
        let hides_runs = self.clock.is_coarse() && read.estimated_run_ns.is_none();
        let is_overdue = hides_runs && now >= self.next_check;
        self.is_running() || self.moved_ns(read) > own_cost || self.is_due || is_overdue
    }

    /// How far its clock has moved since the last look, in nanoseconds. A finer clock is not delayed by steps.
    pub(crate) fn moved_ns(&self, read: CpuReading) -> u64 {
        read.estimated_run_ns.unwrap_or_else(|| self.clock.advance_to(read.counted_ns))
    }

    /// Takes over the system's clock, and time for which it was seen to run. The rest of the time since the
    /// last look counts as waiting. Returns the CPU time since then in nanoseconds.
    pub(crate) fn account(&mut self, read_ns: u64, ran_ns: u64, now: u64) -> u64 {
        let used = self.clock.note(read_ns, ran_ns);
        let passed = now.saturating_sub(self.looked_at);
        self.waited_ns += passed.saturating_sub(used);
        self.looked_at = now;
        used
    }

    /// Notes whether a look has found it in the same place. The looks at a thread with a coarse clock that
    /// stays where it is become rare.
    pub(crate) fn note_place(&mut self, is_same: bool, interval_ns: u64, now: u64) {
        self.unchanged_checks = if is_same { self.unchanged_checks.saturating_add(1) } else { 0 };
        let doubled = 1_u64 << self.unchanged_checks.min(16);
        let pause = interval_ns.saturating_mul(doubled).min(MAX_PAUSE_NS.max(interval_ns));
        self.next_check = if self.unchanged_checks == 0 { now } else { now + pause };
    }

    /// The CPU time in nanoseconds that no sample stands for yet.
    pub(crate) fn unsampled_ns(&self) -> u64 {
        self.clock.used_ns().saturating_sub(self.sampled_ns)
    }
}

/// All recorded threads.
#[derive(Debug)]
pub(crate) struct RecordedThreads<T> {
    list: Vec<RecordedThread<T>>,
    /// Where the next passes over the running threads and over the waiting ones begin.
    turns: [usize; 2],
}

impl<T> Default for RecordedThreads<T> {
    fn default() -> Self {
        Self { list: Vec::new(), turns: [0; 2] }
    }
}

impl<T> RecordedThreads<T> {
    pub(crate) fn add(&mut self, task: RecordedThread<T>) {
        self.list.push(task);
    }

    /// Removes the threads that fit, and returns them.
    pub(crate) fn remove(&mut self, fits: impl Fn(&RecordedThread<T>) -> bool) -> Vec<RecordedThread<T>> {
        self.list.extract_if(.., |task| fits(task)).collect()
    }

    pub(crate) fn all(&self) -> &[RecordedThread<T>] {
        &self.list
    }

    pub(crate) fn all_mut(&mut self) -> &mut [RecordedThread<T>] {
        &mut self.list
    }

    /// How many threads ran at their last look.
    pub(crate) fn running(&self) -> usize {
        self.list.iter().filter(|task| task.is_running()).count()
    }

    /// The places of all threads, beginning with the one that was skipped at the last pass of this kind.
    pub(crate) fn places(&self, pass: Pass) -> impl Iterator<Item = usize> + use<T> {
        let (len, turn) = (self.list.len(), self.turns[pass as usize]);
        (0..len).map(move |step| (turn + step) % len)
    }

    /// Begins the next pass of this kind with the thread at this place.
    pub(crate) fn continue_with(&mut self, pass: Pass, place: usize) {
        self.turns[pass as usize] = place;
    }
}

/// Which threads a pass looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    /// Those that ran at their last look.
    Running,
    /// Those that waited.
    Waiting,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(step_ns: u64) -> RecordedThread<()> {
        RecordedThread::new((1, 2), (), CpuClock::new(step_ns, 0), 0)
    }

    fn counted(counted_ns: u64) -> CpuReading {
        CpuReading { counted_ns, estimated_run_ns: None }
    }

    #[test]
    fn a_waiting_thread_may_run_when_its_clock_moves() {
        let mut task = task(0);
        assert!(task.may_have_run(counted(0), 0), "nothing is known");
        task.activity = Activity::Waiting(UserStack::None);
        task.is_due = false;
        assert!(!task.may_have_run(counted(0), 1_000_000) && task.may_have_run(counted(1), 1_000_000));
        task.is_disturbed = true;
        assert!(!task.may_have_run(counted(COST_OF_LOOK_NS), 0));
        assert!(task.may_have_run(counted(COST_OF_LOOK_NS + 1), 0));
    }

    #[test]
    fn a_finer_clock_shows_what_a_coarse_one_hides() {
        let mut task = task(10_000_000);
        task.activity = Activity::Waiting(UserStack::None);
        task.is_due = false;
        let read = |about| CpuReading { counted_ns: 10_000_000, estimated_run_ns: Some(about) };
        assert!(task.may_have_run(read(1), 0));
        assert!(
            !task.may_have_run(read(0), u64::MAX),
            "the step is of what ran before, and no look is overdue"
        );
    }

    #[test]
    fn a_thread_with_a_coarse_clock_is_rarely_read() {
        let mut task = task(10_000_000);
        task.activity = Activity::Waiting(UserStack::None);
        task.is_due = false;
        let mut pauses = Vec::new();
        for _ in 0..7 {
            task.note_place(true, 1_000_000, 0);
            pauses.push(task.next_check / 1_000_000);
        }
        assert_eq!(pauses, [2, 4, 8, 16, 32, 32, 32]);
        assert!(!task.may_have_run(counted(0), 31_999_999) && task.may_have_run(counted(0), 32_000_000));
        task.note_place(false, 1_000_000, 5);
        assert_eq!(task.next_check, 5);
    }

    #[test]
    fn time_is_either_used_or_waited() {
        let mut task = task(0);
        assert_eq!(task.account(300, 0, 1000), 300);
        assert_eq!((task.waited_ns, task.unsampled_ns(), task.looked_at), (700, 300, 1000));
    }

    #[test]
    fn every_thread_gets_its_turn() {
        let mut tasks = RecordedThreads::default();
        for tid in 0..4 {
            tasks.add(RecordedThread { tid, ..task(0) });
        }
        tasks.continue_with(Pass::Running, 2);
        let places = |tasks: &RecordedThreads<()>, pass| tasks.places(pass).collect::<Vec<_>>();
        assert_eq!(places(&tasks, Pass::Running), [2, 3, 0, 1]);
        assert_eq!(places(&tasks, Pass::Waiting), [0, 1, 2, 3], "each pass has its own turn");
        assert_eq!(tasks.remove(|task| task.tid > 1).len(), 2);
        assert_eq!(places(&tasks, Pass::Running), [0, 1], "from the first again");
        tasks.remove(|_| true);
        assert_eq!(tasks.places(Pass::Running).count(), 0);
    }
}
