//! A control group whose CPU time is limited, and how long the kernel has held it up for that.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::linux::cgroup::groups_with_cpu_limits;

/// The longest file with a group's statistics.
const MAX_LEN: usize = 4096;

/// A group with a quota of CPU time.
#[derive(Debug)]
pub(super) struct LimitedGroup {
    /// Its path in the hierarchy, with its limit.
    pub(super) label: Arc<str>,
    statistics: File,
    throttled_ns: u64,
}

/// The groups of processes with a quota, each once, inner ones first. Their folders in `/proc` are given.
pub(super) fn limited_groups(processes: &[String]) -> Vec<LimitedGroup> {
    let mut groups: BTreeMap<PathBuf, (PathBuf, f64)> = BTreeMap::new();
    for process in processes {
        let Some((mount, folders)) = groups_with_cpu_limits(process) else { continue };
        for folder in folders {
            if let Some(cpus) = limit(&folder) {
                groups.insert(folder, (mount.clone(), cpus));
            }
        }
    }
    let open = |(folder, (mount, cpus)): (PathBuf, (PathBuf, f64))| {
        let name = Path::new("/").join(folder.strip_prefix(&mount).unwrap_or(&folder));
        let label = format!("{} ({cpus:.2} CPUs)", name.display()).into();
        let statistics = File::open(folder.join("cpu.stat")).ok()?;
        let mut group = LimitedGroup { label, statistics, throttled_ns: 0 };
        group.read_more();
        Some(group)
    };
    groups.into_iter().rev().filter_map(open).collect()
}

/// The CPUs that a group may use at most, if it has a quota.
fn limit(folder: &Path) -> Option<f64> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    match read("cpu.max") {
        Some(text) => parse_max(&text),
        None => Some(ratio(&read("cpu.cfs_quota_us")?, &read("cpu.cfs_period_us")?)?),
    }
}

fn parse_max(text: &str) -> Option<f64> {
    let (quota, period) = text.trim_end().split_once(' ')?;
    ratio(quota, period)
}

/// The quota is `max` or -1 if there is none.
fn ratio(quota: &str, period: &str) -> Option<f64> {
    let [quota, period] = [quota, period].map(|text| text.trim_end().parse::<u32>().ok());
    Some(f64::from(quota?) / f64::from(period.filter(|period| *period > 0)?))
}

impl LimitedGroup {
    /// How much longer the group was held up since the last reading, in nanoseconds: the sum of its CPUs.
    pub(super) fn read_more(&mut self) -> u64 {
        let mut bytes = [0; MAX_LEN];
        let len = self.statistics.read_at(&mut bytes, 0).unwrap_or_default();
        let text = String::from_utf8_lossy(bytes.get(..len).unwrap_or_default());
        let Some(throttled_ns) = throttled_ns(&text) else { return 0 };
        throttled_ns.saturating_sub(std::mem::replace(&mut self.throttled_ns, throttled_ns))
    }
}

/// The time in `cpu.stat`: version 2 counts microseconds, and version 1 nanoseconds.
fn throttled_ns(text: &str) -> Option<u64> {
    text.lines().find_map(|line| match line.split_once(' ')? {
        ("throttled_usec", time) => time.parse::<u64>().ok().map(|time| time.saturating_mul(1000)),
        ("throttled_time", time) => time.parse().ok(),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_state_the_limit_and_the_time() {
        assert_eq!(parse_max("50000 100000\n"), Some(0.5));
        assert_eq!(parse_max("max 100000\n"), None);
        assert_eq!(ratio("200000\n", "100000\n"), Some(2.0));
        assert_eq!(ratio("-1\n", "100000\n"), None);
        assert_eq!(ratio("1\n", "0\n"), None);
        assert_eq!(throttled_ns("nr_periods 9\nthrottled_usec 25\nnr_bursts 0\n"), Some(25_000));
        assert_eq!(throttled_ns("nr_throttled 9\nthrottled_time 25\n"), Some(25));
        assert_eq!(throttled_ns("usage_usec 9\n"), None);
    }

    #[test]
    fn groups_without_a_quota_are_not_watched() {
        assert!(limited_groups(&["nonexistent".to_owned()]).is_empty());
    }
}
