//! What the agent may take of the machine.

use crate::system::linux::sys::give_memory_back;
use nyquist_resources::cpu_count;
use std::collections::VecDeque;
use std::fs;
use std::time::{Duration, Instant};

/// The memory above which the recording begins anew. It does not grow for long.
const MAX_MEMORY: u64 = 250 << 20;

/// The share of a CPU for each CPU and 20 samples a second.
const SHARE: f64 = 0.01;
const SAMPLES: f64 = 20.0;

/// How long most names are looked up for the first time. This does not come back, so it is not judged.
const NAMES_TAKE: Duration = Duration::from_mins(3);

/// The time over which the use is judged. A build or a test run starts hundreds of processes for a minute, which a
/// lower rate would not make cheaper.
const JUDGED: Duration = Duration::from_mins(3);

/// What is so much that a minute of it suffices: a share of a CPU, and how many times what is allowed.
const URGENT: f64 = 0.05;
const URGENT_TIMES: f64 = 3.0;
const URGENT_AFTER: Duration = Duration::from_mins(1);

/// The time for which the use has to be low before a rate that was lowered is raised.
const CHEAP_FOR: Duration = Duration::from_mins(5);

/// The clock ticks of a second in /proc.
const TICKS: f64 = 100.0;

/// What is too much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Excess {
    /// Bytes.
    Memory(u64),
    /// Per cent of a CPU.
    Cpu(f64),
}

/// The use so far.
#[derive(Debug)]
pub(super) struct Budget {
    looked: Instant,
    ticks: u64,
    /// The time since the agent began.
    age: Duration,
    /// The windows since the recording began anew.
    since_anew: u32,
    /// The ticks and lengths of the last windows, since the rate was changed.
    recent: VecDeque<(u64, Duration)>,
    /// The share of a CPU that is allowed.
    allowed: f64,
}

impl Budget {
    pub(super) fn new() -> Self {
        Self {
            looked: Instant::now(),
            ticks: 0,
            age: Duration::ZERO,
            since_anew: 0,
            recent: VecDeque::new(),
            allowed: 0.0,
        }
    }

    /// What was too much since the last call, if this rate is stated. The recorded command is a child, whose time is
    /// its own.
    pub(super) fn check(&mut self, rate: u32, command: Option<u32>) -> Option<Excess> {
        let (took, now) = (self.looked.elapsed(), ticks_of_all(command));
        let used = now.saturating_sub(self.ticks);
        (self.looked, self.ticks) = (Instant::now(), now);
        if resident() > MAX_MEMORY {
            give_memory_back();
        }
        self.judge(rate, (used, took), resident())
    }

    /// Whether twice the rate would be no more than is allowed. It is asked for once in a while.
    pub(super) fn has_room(&mut self) -> bool {
        let has_room = self.share_in(CHEAP_FOR).is_some_and(|share| share < self.allowed / 2.0);
        if has_room {
            self.recent.clear();
        }
        has_room
    }

    fn judge(&mut self, rate: u32, window: (u64, Duration), memory: u64) -> Option<Excess> {
        self.since_anew += 1;
        if memory > MAX_MEMORY && self.since_anew > 1 {
            self.since_anew = 0;
            return Some(Excess::Memory(memory));
        }
        self.allowed = SHARE * cpu_count().get() as f64 * f64::from(rate) / SAMPLES;
        let names_are_new = self.age < NAMES_TAKE;
        self.age += window.1;
        self.add(window);
        let urgent = (self.allowed * URGENT_TIMES).max(URGENT);
        let urgent = self.share_in(URGENT_AFTER).filter(|share| *share > urgent);
        let lasting = self.share_in(JUDGED).filter(|share| !names_are_new && *share > self.allowed);
        let excess = urgent.or(lasting);
        if excess.is_some() || (names_are_new && self.age >= NAMES_TAKE) {
            self.recent.clear();
        }
        excess.map(|share| Excess::Cpu(share * 100.0))
    }

    /// Adds a window, and forgets those that are no longer looked at.
    fn add(&mut self, window: (u64, Duration)) {
        self.recent.push_back(window);
        let mut length: Duration = self.recent.iter().map(|(_, took)| *took).sum();
        while let Some((_, took)) = self.recent.front() {
            length = length.saturating_sub(*took);
            if length < CHEAP_FOR {
                return;
            }
            self.recent.pop_front();
        }
    }

    /// The share of a CPU in the last windows of that length together; `None` if there are not as many.
    fn share_in(&self, length: Duration) -> Option<f64> {
        let (mut ticks, mut time) = (0, Duration::ZERO);
        for (used, took) in self.recent.iter().rev() {
            (ticks, time) = (ticks + used, time + *took);
            if time >= length {
                return Some(ticks as f64 / TICKS / time.as_secs_f64().max(0.001));
            }
        }
        None
    }
}

/// The CPU time of this process and of those that open and read for it, in ticks.
fn ticks_of_all(command: Option<u32>) -> u64 {
    ticks("self") + workers(command).iter().map(|pid| ticks(pid)).sum::<u64>()
}

/// The children of this process, but for the recorded command.
fn workers(command: Option<u32>) -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let pids: Vec<_> =
        lists.flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect();
    pids.into_iter().filter(|pid| pid.parse().ok() != command).collect()
}

/// The CPU time of a process, in ticks.
fn ticks(pid: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = text.rsplit_once(") ").map_or("", |(_, fields)| fields);
    fields.split(' ').skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
}

/// The memory of this process.
fn resident() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages.saturating_mul(rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ticks of a minute in which a share of what is allowed at 20 samples a second is used.
    fn minute(share: f64) -> (u64, Duration) {
        let allowed = SHARE * cpu_count().get() as f64 * 60.0 * TICKS;
        ((allowed * share).round() as u64, Duration::from_mins(1))
    }

    #[test]
    fn too_much_is_what_lasts() {
        let mut budget = Budget::new();
        let mut judge = |share: f64| budget.judge(20, minute(share), 0);
        // Names, and a minute with much between minutes with little.
        for share in [2.9, 2.5, 2.0, 0.5, 1.8, 0.6, 0.5] {
            assert_eq!(judge(share), None);
        }
        assert_eq!(judge(1.7), None);
        assert!(matches!(judge(1.7), Some(Excess::Cpu(_))));
        // The lower rate is judged by itself.
        assert_eq!(judge(1.7), None);
    }

    /// Names included.
    #[test]
    fn far_too_much_is_not_waited_for() {
        let mut budget = Budget::new();
        let much = URGENT_TIMES.max(URGENT / SHARE / cpu_count().get() as f64) + 0.1;
        assert!(matches!(budget.judge(20, minute(much), 0), Some(Excess::Cpu(_))));
        assert_eq!(budget.judge(20, (10_000, Duration::from_secs(15)), 0), None);
    }

    #[test]
    fn much_memory_begins_anew() {
        let mut budget = Budget::new();
        let much = MAX_MEMORY + 1;
        budget.judge(20, minute(0.1), 0);
        // When the recording has just begun anew, what it had may not be given back yet.
        for excess in [Some(Excess::Memory(much)), None, Some(Excess::Memory(much))] {
            assert_eq!(budget.judge(20, minute(0.1), much), excess);
        }
        assert!(resident() > 0);
    }

    #[test]
    fn there_is_room_when_little_is_used_for_long() {
        let mut budget = Budget::new();
        let mut after = |minutes: u32, share: f64| {
            for _ in 0..minutes {
                budget.judge(20, minute(share), 0);
            }
            budget.has_room()
        };
        assert!(!after(7, 0.4));
        assert!(after(1, 0.4) && !after(4, 0.4) && after(1, 0.4));
        assert!(!after(20, 0.6));
        // Windows of any length.
        budget.recent.clear();
        budget.judge(20, (1, Duration::from_hours(1)), 0);
        assert!(budget.has_room());
    }

    /// A child's time counts, unless it is the command.
    #[test]
    fn those_that_work_for_it_count() {
        let mut child = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let pid = child.id();
        while ticks(&pid.to_string()) < 5 {
            std::thread::sleep(Duration::from_millis(10));
        }
        let (all, others) = (workers(None), workers(Some(pid)));
        let own = pid.to_string();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(all.contains(&own) && !others.contains(&own), "{all:?}, {others:?}");
    }
}
