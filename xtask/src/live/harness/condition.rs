//! The conditions in which tests run: whose rights, and how busy the CPUs are.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use anyhow::{Context as _, Result};

use super::expect::{Stop, skip};
use super::paranoid::Paranoid;
use crate::sys;

/// A condition in which tests run. A topic declares its own in `TOPICS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// By the user who runs the tests, with the machine's settings.
    AsStarted,
    /// As root: tests are skipped for others.
    Root,
    /// By a user without privileges, at the value of `kernel.perf_event_paranoid` that kernels have by default.
    PlainUser,
    /// At other values of `kernel.perf_event_paranoid`.
    OtherParanoid,
    /// By the user who runs the tests, on one CPU beside a loop that is always busy.
    BusyCpu,
}

/// The conditions that the runner applies to a test.
pub(crate) const AS_STARTED: &[Condition] = &[Condition::AsStarted];
/// The conditions that the runner applies to a test that needs the rights of whoever runs the tests.
pub(crate) const ON_BUSY_CPU: &[Condition] = &[Condition::AsStarted, Condition::BusyCpu];
/// The conditions that the runner applies to a test of what all users need.
pub(crate) const EVERYWHERE: &[Condition] = &[Condition::AsStarted, Condition::PlainUser, Condition::BusyCpu];

/// The plain user that root switches to in tests: Debian's `nobody`.
pub(crate) const PLAIN_USER: u32 = 65534;

/// The value of `kernel.perf_event_paranoid` that kernels have by default.
const DEFAULT_PARANOID: i32 = 2;

impl Condition {
    /// What it is, in the list of tests.
    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::AsStarted => "as started",
            Self::Root => "root",
            Self::PlainUser => "plain user at paranoid 2",
            Self::OtherParanoid => "other values of paranoid",
            Self::BusyCpu => "busy CPU",
        }
    }

    /// The end of the name of a test that runs in it, beside the test that runs as started.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::PlainUser => "::by_a_plain_user",
            Self::BusyCpu => "::on_a_busy_cpu",
            Self::AsStarted | Self::Root | Self::OtherParanoid => "",
        }
    }
}

/// How the programs of a test run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Placement {
    /// The user, if it is another one than that of the tests.
    pub user: Option<u32>,
    /// The only CPU.
    pub cpu: Option<u32>,
}

impl Placement {
    /// Where the programs of a test run in this condition. Tests with following numbers have different CPUs.
    pub(crate) fn of(condition: Condition, number: u32) -> Result<Self, Stop> {
        match condition {
            Condition::PlainUser if sys::is_root() => Ok(Self { user: Some(PLAIN_USER), cpu: None }),
            Condition::PlainUser => skip("needs root, to become a plain user"),
            Condition::BusyCpu => {
                let status = std::fs::read_to_string("/proc/self/status")?;
                let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
                let cpus = list.and_then(cpus).context("no list of CPUs")?;
                Ok(Self { user: None, cpu: Some(cpus[number as usize % cpus.len()]) })
            }
            Condition::AsStarted | Condition::Root | Condition::OtherParanoid => Ok(Self::default()),
        }
    }

    /// The words in front of a command that run it there.
    pub(crate) fn prefix(self) -> Vec<String> {
        self.cpu.map_or_else(Vec::new, |cpu| ["taskset", "-c", &cpu.to_string()].map(str::to_owned).into())
    }

    /// Changes what this needs of the machine until it is dropped. `mark` marks a command as part of the test.
    pub(crate) fn apply(self, mark: impl Fn(&mut Command)) -> Result<Applied> {
        let held = self.user.map(|_| Paranoid::share(DEFAULT_PARANOID)).transpose()?;
        let busy = self.cpu.is_some().then(|| {
            let words =
                [self.prefix(), ["sh", "-c", "while :; do :; done"].map(str::to_owned).into()].concat();
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]).stdin(Stdio::null());
            mark(&mut command);
            command.spawn().with_context(|| format!("cannot start {}", words[0]))
        });
        Ok(Applied { _held: held, busy: busy.transpose()? })
    }
}

/// A condition that lasts until this is dropped.
pub(crate) struct Applied {
    _held: Option<Arc<Paranoid>>,
    busy: Option<Child>,
}

impl Drop for Applied {
    fn drop(&mut self) {
        if let Some(busy) = &mut self.busy {
            drop(busy.kill());
            drop(busy.wait());
        }
    }
}

/// The CPUs of a list as in `/proc/self/status`, of which there is at least one.
fn cpus(list: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?);
    }
    (!cpus.is_empty()).then_some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read() {
        assert_eq!(cpus("\t0-2,5\n"), Some(vec![0, 1, 2, 5]));
        assert_eq!(cpus("3"), Some(vec![3]));
        assert_eq!(cpus(""), None);
    }

    #[test]
    fn following_tests_have_different_cpus() {
        let cpu = |number| Placement::of(Condition::BusyCpu, number).unwrap().cpu;
        let all = crate::sys::cpu_count();
        assert!(cpu(0).is_some());
        assert_eq!(cpu(0) == cpu(1), all == 1);
    }
}
