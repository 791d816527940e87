//! What the agent may take of the machine.

use crate::system::linux::sys::give_memory_back;
use nyquist_resources::cpu_count;
use std::fs;
use std::time::{Duration, Instant};

/// The memory above which the recording begins anew. It does not grow for long.
const MAX_MEMORY: u64 = 250 << 20;

/// The share of a CPU for each CPU and 20 samples a second.
const SHARE: f64 = 0.01;
const SAMPLES: f64 = 20.0;

/// How many windows in a row may take too much, and how many are not looked at because names are looked up.
const MAX_EXPENSIVE: u32 = 4;
const FIRST_WINDOWS: u32 = 4;

/// How many windows in a row have to be cheap before a rate that was lowered is raised.
const MIN_CHEAP: u32 = 20;

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
    /// The windows since the rate was changed, and those since the recording began anew.
    windows: u32,
    since_anew: u32,
    expensive: u32,
    /// The windows in a row that took less than half of what is allowed.
    cheap: u32,
}

impl Budget {
    pub(super) fn new() -> Self {
        Self { looked: Instant::now(), ticks: 0, windows: 0, since_anew: 0, expensive: 0, cheap: 0 }
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
        let has_room = self.cheap >= MIN_CHEAP;
        if has_room {
            (self.windows, self.cheap) = (0, 0);
        }
        has_room
    }

    fn judge(&mut self, rate: u32, (ticks, took): (u64, Duration), memory: u64) -> Option<Excess> {
        (self.windows, self.since_anew) = (self.windows + 1, self.since_anew + 1);
        if memory > MAX_MEMORY && self.since_anew > 1 {
            self.since_anew = 0;
            return Some(Excess::Memory(memory));
        }
        if self.windows <= FIRST_WINDOWS {
            return None;
        }
        let share = ticks as f64 / TICKS / took.as_secs_f64().max(0.001);
        let allowed = SHARE * cpu_count().get() as f64 * f64::from(rate) / SAMPLES;
        self.expensive = if share > allowed { self.expensive + 1 } else { 0 };
        self.cheap = if share < allowed / 2.0 { self.cheap + 1 } else { 0 };
        let is_too_much = self.expensive > MAX_EXPENSIVE;
        is_too_much.then(|| {
            (self.windows, self.expensive) = (0, 0);
            Excess::Cpu(share * 100.0)
        })
    }
}

/// The CPU time of this process and of those that open and read for it, in ticks.
fn ticks_of_all(command: Option<u32>) -> u64 {
    let lists = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = lists.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let lists: Vec<_> = lists.collect();
    let children = lists.iter().flat_map(|list| list.split_whitespace());
    let others = children.filter(|pid| pid.parse().ok() != command);
    ticks("self") + others.map(ticks).sum::<u64>()
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

    #[test]
    fn too_much_is_what_lasts() {
        let mut budget = Budget::new();
        let second = Duration::from_secs(1);
        let rate = 20;
        let much = 100 * cpu_count().get() as u64;
        for _ in 0..FIRST_WINDOWS + MAX_EXPENSIVE {
            assert_eq!(budget.judge(rate, (much, second), 0), None);
        }
        assert!(matches!(budget.judge(rate, (much, second), 0), Some(Excess::Cpu(_))));
        // When the recording has just begun anew, what it had may not be given back yet.
        for excess in [Some(Excess::Memory(MAX_MEMORY + 1)), None, Some(Excess::Memory(MAX_MEMORY + 1))] {
            assert_eq!(budget.judge(rate, (0, second), MAX_MEMORY + 1), excess);
        }
        assert!(resident() > 0);
    }

    #[test]
    fn there_is_room_when_little_is_used_for_long() {
        let mut budget = Budget::new();
        let mut windows = |count: u32, ticks| {
            for _ in 0..count {
                budget.judge(20, (ticks, Duration::from_secs(100)), 0);
            }
            budget.has_room()
        };
        assert!(!windows(FIRST_WINDOWS + MIN_CHEAP - 1, 1));
        assert!(windows(1, 1) && !windows(FIRST_WINDOWS + MIN_CHEAP - 1, 1) && windows(1, 1));
        let half = 50 * cpu_count().get() as u64;
        assert!(!windows(FIRST_WINDOWS + 2 * MIN_CHEAP, half));
    }

    /// A child's time counts, unless it is the command.
    #[test]
    fn those_that_work_for_it_count() {
        let mut child = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let pid = child.id();
        while ticks(&pid.to_string()) < 5 {
            std::thread::sleep(Duration::from_millis(10));
        }
        let (all, without) = (ticks_of_all(None), ticks_of_all(Some(pid)));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(all >= 5 && without + 5 <= all, "{all}, {without}");
    }
}
