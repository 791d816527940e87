//! Whether the machine had CPU time to spare while something was recorded: what a recorder does in time on an idle machine, it
//! does late on a busy one.

use anyhow::{Context as _, Result};

/// The part of one CPU that has to be idle, on the whole, for whoever is woken to get one at once.
const LEAST_IDLE: f64 = 0.5;
/// The part of the time for which a hypervisor may hold CPUs that want to run.
const MOST_STOLEN: f64 = 0.01;

/// What the kernel has counted of all CPUs' time (`proc_stat(5)`), in its ticks.
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
        let words = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
        // The time of guests, after these eight, is a part of others.
        let times: Vec<f64> = words.take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
        let [_user, _nice, _system, idle, _iowait, _irq, _softirq, stolen] = times[..] else { return None };
        Some(Self { all: times.iter().sum(), idle, stolen })
    }

    /// Whether there was time to spare on so many CPUs since an earlier count.
    fn had_spare_since(self, before: Self, cpus: usize) -> bool {
        let all = self.all - before.all;
        let part = |now: f64, before: f64| if all > 0.0 { (now - before) / all } else { 0.0 };
        part(self.idle, before.idle) * cpus as f64 >= LEAST_IDLE
            && part(self.stolen, before.stolen) <= MOST_STOLEN
    }
}

/// Runs something, and says whether the machine had CPU time to spare meanwhile.
pub(super) fn had_spare_time<T, E: From<anyhow::Error>>(
    run: impl FnOnce() -> Result<T, E>,
) -> Result<(T, bool), E> {
    let before = Times::now()?;
    let result = run()?;
    Ok((result, Times::now()?.had_spare_since(before, crate::sys::cpu_count())))
}

#[cfg(test)]
mod tests {
    use super::Times;

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
