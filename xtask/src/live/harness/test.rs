//! A live test: what it runs, in which conditions, and beside which other tests it may run. A topic has tests of one
//! subject.

use std::time::Duration;

use super::condition::{AS_STARTED, Condition, EVERYWHERE, ON_BUSY_CPU};
use super::context::Context;
use super::expect::Verdict;

/// Why tests that measure run in pairs.
pub(crate) const SHARES: &str = "compares what was sampled with the CPU time that was used";

/// One test. Unless it says otherwise, it runs beside others.
pub(crate) struct Test {
    /// A short description of the tested behaviour.
    pub name: &'static str,
    /// The test itself.
    pub run: fn(&Context<'_>) -> Verdict,
    /// Whether `--quick` runs it.
    pub quick: bool,
    /// Which tests may run at the same time.
    pub beside: Beside,
    /// The conditions that the runner applies: the test runs once in each.
    pub conditions: &'static [Condition],
    /// Why only complete runs contain it, if that is so.
    pub only_in_all: Option<&'static str>,
    /// After this time the test is killed, with everything that it has started.
    pub limit: Duration,
}

/// Which tests may run at the same time as a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    /// As many as there are CPUs, up to four tests.
    Others,
    /// One other test of this kind, so that each has about a CPU. This is the reason.
    OneOther(&'static str),
    /// None. This is the reason.
    None(&'static str),
}

impl Test {
    /// A test that is not in `--quick`, and runs beside others.
    pub(crate) const fn new(name: &'static str, run: fn(&Context<'_>) -> Verdict) -> Self {
        let limit = Duration::from_mins(4);
        let (beside, conditions) = (Beside::Others, AS_STARTED);
        Self { name, run, quick: false, beside, conditions, only_in_all: None, limit }
    }

    /// Marks the test as part of `--quick`, too.
    pub(crate) const fn quick(self) -> Self {
        Self { quick: true, ..self }
    }

    /// Makes the test run by a plain user and on a busy CPU, too.
    pub(crate) const fn everywhere(self) -> Self {
        Self { conditions: EVERYWHERE, ..self }
    }

    /// Makes the test run on a busy CPU, too.
    pub(crate) const fn on_busy_cpu(self) -> Self {
        Self { conditions: ON_BUSY_CPU, ..self }
    }

    /// Makes the test run beside at most one other, for this reason. A measured number that is out of bounds
    /// then is measured again alone.
    pub(crate) const fn in_pairs(self, why: &'static str) -> Self {
        Self { beside: Beside::OneOther(why), ..self }
    }

    /// Makes the test run alone, for this reason.
    pub(crate) const fn exclusive(self, why: &'static str) -> Self {
        Self { beside: Beside::None(why), ..self }
    }

    /// Makes the test run only with `--all` or if a filter is given, for this reason.
    pub(crate) const fn only_in_all(self, why: &'static str) -> Self {
        Self { only_in_all: Some(why), ..self }
    }
}

/// Tests of one subject.
pub(crate) struct Topic {
    /// Its name, with which the names of its tests begin.
    pub name: &'static str,
    /// The conditions in which its tests run, by the runner or by themselves.
    pub conditions: &'static [Condition],
    /// Its tests.
    pub tests: &'static [Test],
}

/// A row of the list of topics.
pub(crate) const fn topic(
    name: &'static str,
    conditions: &'static [Condition],
    tests: &'static [Test],
) -> Topic {
    Topic { name, conditions, tests }
}
