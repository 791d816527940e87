//! The numbers of passed, failed and skipped tests, and whether each skip is allowed.

use std::fs;

use anyhow::{Context as _, Result, bail};

/// The counts of a run, and the reasons that must not be lost in its output.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    passed: usize,
    /// Tests that were measured twice, because the first result was out of bounds.
    measured_again: Vec<String>,
    /// Tests without a result, because the hypervisor held CPUs in each attempt.
    inconclusive: Vec<String>,
    failed: Vec<String>,
    skipped: Vec<Skip>,
}

/// A test that this machine cannot do.
#[derive(Debug)]
pub(crate) struct Skip {
    /// The test's name.
    pub test: String,
    /// Why it was skipped.
    pub reason: String,
}

impl Tally {
    pub(crate) fn pass(&mut self) {
        self.passed += 1;
    }

    /// Counts a test that passed in a new measurement.
    pub(crate) fn pass_again(&mut self, name: impl Into<String>) {
        self.passed += 1;
        self.measured_again.push(name.into());
    }

    pub(crate) fn fail(&mut self, name: impl Into<String>) {
        self.failed.push(name.into());
    }

    /// Counts a test without a result.
    pub(crate) fn inconclusive(&mut self, name: impl Into<String>) {
        self.inconclusive.push(name.into());
    }

    pub(crate) fn skip(&mut self, test: impl Into<String>, reason: impl Into<String>) {
        self.skipped.push(Skip { test: test.into(), reason: reason.into() });
    }

    /// Turns every skip that the list does not allow into a failure.
    pub(crate) fn deny_skips(&mut self, allowed: &AllowedSkips) {
        for skip in self.skipped.iter().filter(|skip| !allowed.allows(skip)) {
            self.failed.push(format!("{} (its skip is not in xtask/skips.txt: {})", skip.test, skip.reason));
        }
    }

    /// Prints skips, failures and finally the counts. Returns whether nothing failed, and at most 2 % of the
    /// tests have no result.
    pub(crate) fn print(&self) -> bool {
        for skip in &self.skipped {
            println!("skipped: {}: {}", skip.test, skip.reason);
        }
        for name in &self.measured_again {
            println!("passed when measured again: {name}");
        }
        for name in &self.inconclusive {
            println!("inconclusive, because the hypervisor held CPUs each time: {name}");
        }
        for name in &self.failed {
            println!("failed: {name}");
        }
        if self.has_too_few_results() {
            println!("failed: more than {MAX_INCONCLUSIVE_PERCENT} % of the tests that ran are inconclusive");
        }
        println!("{}", self.counts());
        self.failed.is_empty() && !self.has_too_few_results()
    }

    /// The last line of a run.
    fn counts(&self) -> String {
        let [failed, inconclusive, skipped] =
            [self.failed.len(), self.inconclusive.len(), self.skipped.len()];
        format!("{} passed, {failed} failed, {inconclusive} inconclusive, {skipped} skipped", self.passed)
    }

    fn has_too_few_results(&self) -> bool {
        let ran = self.passed + self.failed.len() + self.inconclusive.len();
        self.inconclusive.len() * 100 > ran * MAX_INCONCLUSIVE_PERCENT
    }
}

/// How many of the tests that ran may have no result, in percent.
const MAX_INCONCLUSIVE_PERCENT: usize = 2;

/// The checked-in list of skips that do not fail CI: `test | part of the reason | why it is allowed`.
#[derive(Debug)]
pub(crate) struct AllowedSkips(Vec<(String, String)>);

impl AllowedSkips {
    pub(crate) fn read() -> Result<Self> {
        let path = crate::paths::root().join("xtask/skips.txt");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self> {
        let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
        let entry = |line: &str| match line.split('|').map(str::trim).collect::<Vec<_>>()[..] {
            [test, reason, why] if !test.is_empty() && !reason.is_empty() && !why.is_empty() => {
                Ok((test.to_owned(), reason.to_owned()))
            }
            _ => bail!("skips.txt: not `test | reason | why`: {line}"),
        };
        Ok(Self(lines.map(entry).collect::<Result<_>>()?))
    }

    fn allows(&self, skip: &Skip) -> bool {
        self.0.iter().any(|(test, reason)| is_of(test, &skip.test) && skip.reason.contains(reason))
    }
}

/// Whether a line of the list names a test, or names its topic with `::*`.
fn is_of(line: &str, test: &str) -> bool {
    match line.strip_suffix('*') {
        Some(topic) => test.starts_with(topic),
        None => line == test,
    }
}

#[cfg(test)]
mod tests {
    use super::{AllowedSkips, Skip, Tally};

    #[test]
    fn only_skips_of_listed_reasons_are_allowed() {
        let list = AllowedSkips::parse("# comment\n\na::b | no PMU | the VM has none\n").unwrap();
        let skip = |test: &str, reason: &str| Skip { test: test.into(), reason: reason.into() };
        assert!(list.allows(&skip("a::b", "there is no PMU here")));
        assert!(!list.allows(&skip("a::b", "something else")));
        assert!(!list.allows(&skip("a::c", "no PMU")));
        let list = AllowedSkips::parse("a::* | no PMU | the VM has none").unwrap();
        assert!(list.allows(&skip("a::c", "no PMU")) && !list.allows(&skip("b::c", "no PMU")));
    }

    #[test]
    fn a_line_without_all_three_parts_is_an_error() {
        assert!(AllowedSkips::parse("a::b | no PMU").is_err());
        assert!(AllowedSkips::parse("a::b | | why").is_err());
    }

    #[test]
    fn a_denied_skip_fails_the_run() {
        let mut tally = Tally::default();
        tally.skip("a::b", "no reason");
        assert!(tally.print());
        tally.deny_skips(&AllowedSkips::parse("").unwrap());
        assert!(!tally.print());
    }

    #[test]
    fn a_few_tests_may_have_no_result() {
        let tally = |passed, inconclusive| {
            let mut tally = Tally::default();
            (0..passed).for_each(|_| tally.pass());
            (0..inconclusive).for_each(|number| tally.inconclusive(format!("a::{number}")));
            tally
        };
        for (passed, inconclusive, is_good) in
            [(49, 1, true), (48, 1, false), (98, 2, true), (97, 2, false), (0, 1, false), (1, 0, true)]
        {
            assert_eq!(tally(passed, inconclusive).print(), is_good, "{inconclusive} beside {passed}");
        }
        assert_eq!(tally(98, 2).counts(), "98 passed, 0 failed, 2 inconclusive, 0 skipped");
    }

    #[test]
    fn the_last_line_counts_everything() {
        let mut tally = Tally::default();
        tally.pass();
        tally.pass_again("a::b");
        tally.fail("a::c");
        tally.skip("a::d", "no PMU");
        assert_eq!(tally.counts(), "2 passed, 1 failed, 0 inconclusive, 1 skipped");
    }
}
