//! Live recordings of the workloads by the real program, in a harness of our own: libtest hides the output of a passing
//! test, including its message about a skip.

pub(crate) mod harness;
pub(crate) mod topics;

use std::collections::BTreeSet;

use anyhow::Result;

pub(crate) use harness::plan::Plan;
use harness::run;
pub(crate) use topics::TOPICS;

use crate::tally::Tally;

/// Prints every test's name.
pub(crate) fn list() {
    run::list(TOPICS);
}

/// Whether any test passes the filter.
pub(crate) fn requested(filter: &[String]) -> bool {
    run::requested(TOPICS, filter)
}

/// The topics of the tests that pass the filter, or of all tests that are not left out.
pub(crate) fn topics(filter: &[String], quick: bool, left_out: &[&str]) -> BTreeSet<&'static str> {
    run::topics(TOPICS, filter, quick, left_out)
}

/// Runs the tests, prints a line for each, and counts them. Returns whether none failed.
pub(crate) fn run(plan: &Plan, tally: &mut Tally) -> Result<bool> {
    run::run(TOPICS, plan, tally)
}
