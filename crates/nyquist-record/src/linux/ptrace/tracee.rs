//! The traced threads, and what is known of each.

use std::collections::HashMap;

use nyquist_convert::event::{UserStack, WaitReason};

use crate::linux::thread_state::{ScheduleStatistics, ThreadFiles};

/// A traced thread.
#[derive(Debug)]
pub(crate) struct Tracee {
    pub(crate) tid: u32,
    pub(crate) pid: u32,
    pub(crate) files: ThreadFiles,
    pub(crate) activity: Activity,
    /// The scheduler's statistics at the last sample.
    pub(crate) schedule: ScheduleStatistics,
    /// When it was last stopped for a sample.
    pub(crate) held: Option<SampleStop>,
    /// The scheduler's count of CPU time when the thread was first traced, and the CPU time that it had used
    /// as another thread.
    base_ns: u64,
    carried_ns: u64,
    /// The CPU time that it had used when a sample last found it running.
    seen_ns: u64,
    /// When it was last checked.
    pub(crate) looked_at: u64,
    /// How long it has waited since its last sample.
    pub(crate) waited_ns: u64,
    /// When its system call was last restarted.
    pub(crate) repeated: Option<RestartedCall>,
    /// When it was requested to stop, if it has not stopped since.
    pub(crate) requested: Option<StopRequest>,
    /// Whether job control has stopped it.
    pub(crate) has_stopped: bool,
    /// Whether it has run since its name was last read.
    pub(crate) has_run: bool,
    pub(crate) name: String,
}

/// A system call that was restarted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RestartedCall {
    /// The time of the restart. A part of a millisecond of the earlier wait may be included.
    pub(crate) at: u64,
    /// The scheduler's statistics at that time.
    pub(crate) schedule: ScheduleStatistics,
    /// The timeout of the restarted call.
    pub(crate) timeout: u64,
    /// Whether that differs from the timeout that the thread has requested.
    pub(crate) is_shortened: bool,
}

/// How long before the tracing thread's turn a thread can have lost its CPU to it.
const WAKING_NS: u64 = 20_000;

/// A stop request to a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StopRequest {
    pub(crate) at: u64,
    /// When the turn began, if its time was random. Then the tracing thread took a CPU, maybe from the thread
    /// that it samples.
    pub(crate) turn: Option<u64>,
    /// The scheduler's statistics just before.
    pub(crate) schedule: ScheduleStatistics,
}

impl StopRequest {
    /// The maximum time until `now` for which the request kept the thread from running. Excludes the time
    /// that it waited for a CPU meanwhile, according to the scheduler's statistics during the stop.
    pub(crate) fn held_at_most_ns(&self, stopped: ScheduleStatistics, noticed: u64, now: u64) -> u64 {
        let until_noticed = noticed.saturating_sub(self.at);
        let queued = stopped.waited_for_cpu_since(&self.schedule).min(until_noticed);
        now.saturating_sub(self.at) - queued
    }

    /// Whether the thread ran when the turn began. A thread that waited for a CPU at that time is found where
    /// it was preempted, and system calls are preempted more often than other code.
    pub(crate) fn ran(&self, stopped: ScheduleStatistics, noticed: u64) -> bool {
        let queued = stopped.waited_for_cpu_since(&self.schedule);
        let lost_cpu_to_turn = |turn: u64| noticed.saturating_sub(queued) + WAKING_NS >= turn;
        queued == 0 || self.turn.is_some_and(lost_cpu_to_turn)
    }
}

/// A stop of a thread for a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SampleStop {
    /// When the stop was noticed.
    pub(crate) noticed: u64,
    /// The scheduler's statistics during the stop.
    pub(crate) schedule: ScheduleStatistics,
    /// The time from the stop request until the resume. The thread has run for a part of it.
    pub(crate) at_most_ns: u64,
    /// The stack pointer.
    pub(crate) stack_pointer: u64,
}

impl SampleStop {
    /// How long the thread was kept from running, given the time when its next stop was noticed and the
    /// scheduler's statistics then. If it got a CPU only once in between, all time in which it neither ran
    /// nor waited for a CPU was the stop.
    pub(crate) fn length_ns(&self, noticed: u64, stopped: ScheduleStatistics) -> u64 {
        let ScheduleStatistics { cpu_ns, delay_ns, turns } = self.schedule;
        if stopped.turns != turns + 1 {
            return self.at_most_ns;
        }
        let elsewhere = stopped.cpu_ns.saturating_sub(cpu_ns) + stopped.delay_ns.saturating_sub(delay_ns);
        noticed.saturating_sub(self.noticed).saturating_sub(elsewhere)
    }
}

/// What a thread is doing, as far as known.
#[derive(Debug)]
pub(crate) enum Activity {
    /// It must not be sampled: it has not become the command yet, or is ending.
    Aside,
    /// It ran at the last check.
    Running,
    /// It waited at the last check.
    Waiting(WaitState),
}

/// What is known of a waiting thread.
#[derive(Debug)]
pub(crate) struct WaitState {
    /// Its stack, which stays the same until the thread runs.
    pub(crate) stack: UserStack,
    /// The start of the wait.
    pub(crate) since: u64,
    /// The kind of object that it waits for, if known.
    pub(crate) reason: Option<WaitReason>,
}

impl Tracee {
    /// A thread that is traced from now on.
    pub(crate) fn new(pid: u32, tid: u32, now: u64) -> Self {
        Self {
            tid,
            pid,
            files: ThreadFiles::open(pid, tid),
            activity: Activity::Running,
            schedule: ScheduleStatistics::default(),
            held: None,
            base_ns: 0,
            carried_ns: 0,
            seen_ns: 0,
            looked_at: now,
            waited_ns: 0,
            repeated: None,
            requested: None,
            has_stopped: false,
            has_run: true,
            name: String::new(),
        }
    }

    /// Excludes the CPU time that the thread has used so far.
    pub(crate) fn start_counting(&mut self) {
        self.schedule = self.files.schedule().unwrap_or(self.schedule);
        self.base_ns = self.schedule.cpu_ns;
    }

    /// Leaves out all time since the last check.
    pub(crate) fn leave_out_until(&mut self, now: u64) {
        let schedule = self.files.schedule().unwrap_or(self.schedule);
        self.base_ns += schedule.cpu_ns.saturating_sub(self.schedule.cpu_ns);
        self.schedule = schedule;
        self.looked_at = now;
        self.waited_ns = 0;
        self.held = None;
        if let Activity::Waiting(_) = self.activity {
            // It may have run meanwhile.
            self.activity = Activity::Running;
        }
    }

    /// Continues as another thread that has called exec and had used this much CPU time by the scheduler's
    /// count.
    pub(crate) fn become_thread(&mut self, cpu_ns: u64) {
        self.carried_ns = self.used_ns();
        self.base_ns = cpu_ns;
        self.schedule.cpu_ns = cpu_ns;
        self.held = None;
    }

    /// Whether it has waited for a CPU ever since its stop, given the scheduler's current statistics.
    pub(crate) fn awaits_cpu(&self, schedule: ScheduleStatistics) -> bool {
        self.held.is_some_and(|held| held.schedule.turns == schedule.turns)
    }

    /// The CPU time in nanoseconds since it was first traced.
    pub(crate) fn used_ns(&self) -> u64 {
        self.carried_ns + self.schedule.cpu_ns.saturating_sub(self.base_ns)
    }

    /// The CPU time in nanoseconds since a sample last found it running.
    pub(crate) fn unseen_ns(&self) -> u64 {
        self.used_ns().saturating_sub(self.seen_ns)
    }

    /// Notes that a sample found it running.
    pub(crate) fn note_seen(&mut self) {
        self.seen_ns = self.used_ns();
    }

    /// Updates the statistics. The part of the time since the last check that the thread has not used counts
    /// as waiting.
    pub(crate) fn account(&mut self, schedule: ScheduleStatistics, now: u64) {
        let used = schedule.cpu_ns.saturating_sub(self.schedule.cpu_ns);
        let passed = now.saturating_sub(self.looked_at);
        self.waited_ns += passed.saturating_sub(used);
        self.schedule = schedule;
        self.looked_at = now;
    }

    /// The minimum time for which it has waited in the system call that a stop has ended, given the
    /// scheduler's current statistics and the timeout of the call.
    pub(crate) fn waited_in_call(&self, schedule: ScheduleStatistics, timeout: u64, now: u64) -> u64 {
        let seen = match &self.activity {
            Activity::Waiting(waited) => waited.since,
            Activity::Running | Activity::Aside => self.looked_at,
        };
        // It got a CPU more often than for the stop alone, so its current call has begun since.
        let seen = if schedule.turns > self.schedule.turns + 1 { now } else { seen };
        let Some(RestartedCall { at, schedule: before, timeout: set, is_shortened }) = self.repeated else {
            return now.saturating_sub(seen);
        };
        // It got a CPU only to restart the call and to be stopped in it, so it has waited in no other call in
        // between. The same holds if it has not requested the timeout itself.
        if timeout == set && (is_shortened || schedule.turns <= before.turns + 2) {
            let ran = schedule.cpu_ns.saturating_sub(before.cpu_ns);
            return now.saturating_sub(at).saturating_sub(ran);
        }
        now.saturating_sub(seen.max(at))
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(self.activity, Activity::Running)
    }

    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.activity, Activity::Waiting(_))
    }
}

/// All traced threads.
#[derive(Debug, Default)]
pub(crate) struct Tracees {
    list: Vec<Tracee>,
    places: HashMap<u32, usize>,
    /// Where the next pass over running threads begins, and the next one over waiting threads.
    turns: [usize; 2],
}

impl Tracees {
    pub(crate) fn add(&mut self, task: Tracee) {
        self.places.insert(task.tid, self.list.len());
        self.list.push(task);
    }

    pub(crate) fn remove(&mut self, tid: u32) -> Option<Tracee> {
        let place = self.places.remove(&tid)?;
        let task = self.list.swap_remove(place);
        if let Some(moved) = self.list.get(place) {
            self.places.insert(moved.tid, place);
        }
        Some(task)
    }

    pub(crate) fn get(&self, tid: u32) -> Option<&Tracee> {
        self.list.get(*self.places.get(&tid)?)
    }

    pub(crate) fn get_mut(&mut self, tid: u32) -> Option<&mut Tracee> {
        self.list.get_mut(*self.places.get(&tid)?)
    }

    pub(crate) fn all(&self) -> &[Tracee] {
        &self.list
    }

    pub(crate) fn all_mut(&mut self) -> &mut [Tracee] {
        &mut self.list
    }

    /// Whether a process has threads left.
    pub(crate) fn any_of(&self, pid: u32) -> bool {
        self.list.iter().any(|task| task.pid == pid)
    }

    /// How many threads ran at their last check.
    pub(crate) fn running(&self) -> usize {
        self.list.iter().filter(|task| task.is_running()).count()
    }

    /// Puts the threads that ran into `out`, beginning with those that were skipped at the last call.
    pub(crate) fn running_in_turn(&self, out: &mut Vec<u32>) {
        self.in_turn(self.turns[0], Tracee::is_running, usize::MAX, out);
    }

    /// Begins the next pass over running threads with this one.
    pub(crate) fn continue_with(&mut self, tid: u32) {
        self.turns[0] = self.places.get(&tid).copied().unwrap_or_default();
    }

    /// Puts some of the waiting threads into `out`, different ones at each call.
    pub(crate) fn waiting_in_turn(&mut self, most: usize, out: &mut Vec<u32>) {
        self.in_turn(self.turns[1], Tracee::is_waiting, most, out);
        let last = out.last().and_then(|tid| self.places.get(tid).copied());
        self.turns[1] = last.map_or(0, |place| place + 1);
    }

    fn in_turn(&self, turn: usize, fits: impl Fn(&Tracee) -> bool, most: usize, out: &mut Vec<u32>) {
        out.clear();
        let (before, after) = self.list.split_at(turn.min(self.list.len()));
        let fitting = after.iter().chain(before).filter(|task| fits(task));
        out.extend(fitting.map(|task| task.tid).take(most));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cpu_ns: u64, delay_ns: u64, turns: u64) -> ScheduleStatistics {
        ScheduleStatistics { cpu_ns, delay_ns, turns }
    }

    fn tasks(count: u32) -> Tracees {
        let mut tasks = Tracees::default();
        for tid in 1..=count {
            tasks.add(Tracee::new(0, tid, 0));
        }
        tasks
    }

    #[test]
    fn threads_are_found_whatever_has_gone() {
        let mut tasks = tasks(4);
        assert_eq!(tasks.remove(2).map(|task| task.tid), Some(2));
        assert!(tasks.remove(2).is_none());
        let found: Vec<_> =
            (1..=4).filter(|tid| tasks.get(*tid).is_some_and(|task| task.tid == *tid)).collect();
        assert_eq!(found, [1, 3, 4]);
        assert!(tasks.any_of(0) && !tasks.any_of(1));
    }

    #[test]
    fn every_thread_gets_its_turn() {
        let mut tasks = tasks(5);
        let mut turn = Vec::new();
        tasks.running_in_turn(&mut turn);
        assert_eq!(turn, [1, 2, 3, 4, 5]);
        tasks.continue_with(4);
        tasks.running_in_turn(&mut turn);
        assert_eq!(turn, [4, 5, 1, 2, 3]);
        for task in tasks.all_mut() {
            task.activity = Activity::Waiting(WaitState { stack: UserStack::None, since: 0, reason: None });
        }
        let mut looks = Vec::new();
        for _ in 0..3 {
            tasks.waiting_in_turn(2, &mut turn);
            looks.extend_from_slice(&turn);
        }
        assert_eq!(looks, [1, 2, 3, 4, 5, 1]);
    }

    #[test]
    fn waiting_for_a_cpu_is_not_being_held() {
        let requested = StopRequest { at: 1_000, turn: None, schedule: of(10, 500, 3) };
        assert_eq!(requested.held_at_most_ns(of(20, 500, 3), 9_000, 9_500), 8_500);
        assert_eq!(requested.held_at_most_ns(of(20, 6_500, 4), 9_000, 9_500), 2_500);
        // It has waited for a CPU since before the request.
        assert_eq!(requested.held_at_most_ns(of(20, 99_999, 4), 9_000, 9_500), 500);
    }

    #[test]
    fn a_running_threads_unused_time_was_a_hold() {
        let held =
            SampleStop { noticed: 10_000, schedule: of(500, 70, 3), at_most_ns: 900, stack_pointer: 0 };
        assert_eq!(held.length_ns(50_000, of(40_200, 70, 4)), 300);
        assert_eq!(held.length_ns(50_000, of(40_200, 90, 4)), 280, "it has waited for a CPU, too");
        assert_eq!(held.length_ns(50_000, of(40_200, 70, 5)), 900, "something else stopped it as well");
        assert_eq!(held.length_ns(50_000, of(40_200, 70, 3)), 900, "nothing is known");
        assert_eq!(held.length_ns(50_000, of(90_000, 70, 4)), 0, "the scheduler takes note late");
    }

    #[test]
    fn a_thread_that_lost_its_cpu_to_the_tracer_ran() {
        let turn = 1_000_000_u64;
        let requested = StopRequest { at: turn + 5_000, turn: Some(turn), schedule: of(10, 500, 3) };
        let noticed = turn + 70_000;
        let queued_for = |ns: u64| of(10, 500 + ns, 4);
        assert!(requested.ran(of(900, 500, 3), noticed), "it was on another CPU all the while");
        assert!(requested.ran(queued_for(69_000), noticed));
        assert!(!requested.ran(queued_for(200_000), noticed));
        assert!(
            !StopRequest { turn: None, ..requested }.ran(queued_for(69_000), noticed),
            "the turn was late"
        );
    }

    #[test]
    fn a_repeated_call_has_waited_since_the_last_one() {
        let mut task = Tracee::new(0, 1, 7_000);
        task.schedule = of(100, 0, 11);
        assert_eq!(task.waited_in_call(of(100, 0, 9), 5, 9_000), 2_000, "since it was looked at");
        task.repeated =
            Some(RestartedCall { at: 8_000, schedule: of(100, 0, 9), timeout: 5, is_shortened: false });
        assert_eq!(task.waited_in_call(of(150, 0, 11), 5, 9_000), 950);
        assert_eq!(task.waited_in_call(of(150, 0, 12), 5, 9_000), 1_000, "it may be another call");
        assert_eq!(task.waited_in_call(of(150, 0, 11), 6, 9_000), 1_000, "with another timeout it is");
        task.looked_at = 8_900;
        assert_eq!(task.waited_in_call(of(150, 0, 12), 5, 9_000), 100);
        assert_eq!(task.waited_in_call(of(150, 0, 11), 5, 9_000), 950);
        let shortened = RestartedCall { at: 8_000, schedule: of(100, 0, 9), timeout: 5, is_shortened: true };
        task.repeated = Some(shortened);
        assert_eq!(task.waited_in_call(of(150, 0, 99), 5, 9_000), 950, "only the tracer has set 5");
        assert_eq!(task.waited_in_call(of(150, 0, 99), 6, 9_000), 0);
    }

    #[test]
    fn a_held_thread_awaits_a_cpu_until_it_gets_one() {
        let mut task = Tracee::new(0, 1, 0);
        assert!(!task.awaits_cpu(of(10, 500, 0)), "it was never held");
        task.held =
            Some(SampleStop { noticed: 0, schedule: of(10, 500, 3), at_most_ns: 0, stack_pointer: 0 });
        assert!(task.awaits_cpu(of(10, 500, 3)) && !task.awaits_cpu(of(10, 900, 4)));
        task.become_thread(5_000);
        assert!(!task.awaits_cpu(of(10, 500, 3)), "that was another thread");
    }

    #[test]
    fn unseen_use_begins_when_it_is_seen_to_run() {
        let mut task = Tracee::new(0, 1, 0);
        task.account(of(300, 0, 1), 1_000);
        assert_eq!(task.unseen_ns(), 300);
        task.note_seen();
        task.account(of(450, 0, 2), 2_000);
        assert_eq!(task.unseen_ns(), 150);
    }

    #[test]
    fn exec_by_another_thread_continues_the_count() {
        let mut task = Tracee::new(0, 1, 0);
        task.account(ScheduleStatistics { cpu_ns: 300, ..ScheduleStatistics::default() }, 1_000);
        task.become_thread(5_000);
        assert_eq!(task.used_ns(), 300);
        task.account(ScheduleStatistics { cpu_ns: 5_200, ..ScheduleStatistics::default() }, 2_000);
        assert_eq!(task.used_ns(), 500);
    }

    #[test]
    fn what_is_not_used_is_waited() {
        let mut task = Tracee::new(0, 1, 1_000);
        task.account(ScheduleStatistics { cpu_ns: 300, ..ScheduleStatistics::default() }, 2_000);
        assert_eq!((task.used_ns(), task.waited_ns, task.looked_at), (300, 700, 2_000));
        // The scheduler updates its count late, so the thread seems to have used more than the time that has
        // passed.
        task.account(ScheduleStatistics { cpu_ns: 2_300, ..ScheduleStatistics::default() }, 3_000);
        assert_eq!((task.used_ns(), task.waited_ns), (2_300, 700));
    }
}
