//! Whether the machine had spare CPU time during a recording, because a recorder is late on a busy machine.
//! And how much CPU time a hypervisor has taken.

use std::ops::RangeInclusive;

use anyhow::{Context as _, Result};

use super::expect::{Verdict, expect_measured};

/// The part of one CPU that must be idle, over all CPUs, so that a woken thread gets a CPU at once.
const MIN_IDLE_SHARE: f64 = 0.5;
/// The maximum part of the time for which a hypervisor may hold CPUs that want to run.
const MAX_STOLEN_SHARE: f64 = 0.01;

/// The kernel's ticks in a second (`sysconf(_SC_CLK_TCK)`).
const TICKS: f64 = 100.0;

/// The kernel's count of the time of all CPUs (`proc_stat(5)`), in its ticks.
#[derive(Clone, Copy)]
struct Times {
    all: f64,
    idle: f64,
    stolen: f64,
}

impl Times {
    fn now() -> Result<Self> {
        Self::parse(&std::fs::read_to_string("/proc/stat")?).context("/proc/stat does not say what CPUs do")
    }

    fn parse(stat: &str) -> Option<Self> {
        let args = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
        // The fields after these eight are the time of guests, which other fields already contain.
        let times: Vec<f64> = args.take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
        let [_user, _nice, _system, idle, _iowait, _irq, _softirq, stolen] = times[..] else { return None };
        Some(Self { all: times.iter().sum(), idle, stolen })
    }

    /// Whether there was spare time on this many CPUs since an earlier count.
    fn had_spare_since(self, before: Self, cpus: usize) -> bool {
        let all = self.all - before.all;
        let part = |now: f64, before: f64| if all > 0.0 { (now - before) / all } else { 0.0 };
        part(self.idle, before.idle) * cpus as f64 >= MIN_IDLE_SHARE
            && part(self.stolen, before.stolen) <= MAX_STOLEN_SHARE
    }
}

/// The result of a run, and the state of the machine during the run.
pub(crate) struct Watched<T> {
    pub(crate) result: T,
    /// Whether there was spare CPU time.
    pub(crate) had_spare_time: bool,
    /// For how many seconds the hypervisor held CPUs that requested to run.
    pub(crate) stolen: f64,
}

/// Runs a function, and observes the machine meanwhile.
pub(crate) fn watched<T, E: From<anyhow::Error>>(
    run: impl FnOnce() -> Result<T, E>,
) -> Result<Watched<T>, E> {
    let before = Times::now()?;
    let result = run()?;
    let now = Times::now()?;
    let had_spare_time = now.had_spare_since(before, crate::sys::cpu_count());
    Ok(Watched { result, had_spare_time, stolen: (now.stolen - before.stolen) / TICKS })
}

/// Runs a function, up to three times if the machine had no spare CPU time meanwhile. The last run counts.
pub(crate) fn with_spare_time<T, E: From<anyhow::Error>>(
    mut run: impl FnMut() -> Result<T, E>,
) -> Result<Watched<T>, E> {
    for _ in 0..2 {
        let watched = watched(&mut run)?;
        if watched.had_spare_time {
            return Ok(watched);
        }
    }
    watched(run)
}

impl<T> Watched<T> {
    /// Fails unless the number of samples fits to the CPU time and the rate in Hz. The sampling clocks go on
    /// while the hypervisor holds a CPU, but a program's own CPU time does not.
    pub(crate) fn expect_samples(&self, found: f64, used: f64, rate: f64, tolerance: f64) -> Verdict {
        let due = due(used, self.stolen, rate, tolerance);
        expect_measured(
            due.contains(&found),
            format_args!("{found} samples of {used:.3} s, not {due:.0?}: {:.2} s were stolen", self.stolen),
        )
    }
}

fn due(used: f64, stolen: f64, rate: f64, tolerance: f64) -> RangeInclusive<f64> {
    used * rate * (1.0 - tolerance)..=(used + stolen) * rate * (1.0 + tolerance)
}

#[cfg(test)]
mod tests {
    use super::{Times, due};

    #[test]
    fn what_was_stolen_may_have_samples_and_need_not() {
        assert_eq!(due(2.0, 0.5, 100.0, 0.25), 150.0..=312.5);
    }

    #[test]
    fn half_a_cpu_has_to_be_idle_and_none_held() {
        let line = |idle: u64, stolen: u64| {
            let busy = 200 - idle - stolen;
            Times::parse(&format!("cpu  {busy} 0 0 {idle} 0 0 0 {stolen} 7 0\ncpu0 1 2 3")).unwrap()
        };
        let before = Times { all: 0.0, idle: 0.0, stolen: 0.0 };
        let has_spare = |idle, stolen| line(idle, stolen).had_spare_since(before, 2);
        assert_eq!(
            [(100, 0), (50, 2), (49, 0), (100, 3)].map(|(i, s)| has_spare(i, s)),
            [true, true, false, false]
        );
        assert!(Times::parse("cpu  1 2 3").is_none());
    }
}
