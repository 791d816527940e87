//! Stacks that programs have made for themselves: where they begin, and what is said of what lies beyond them.

use super::context::Context;
use super::expect::{Verdict, expect_share, with_note};
use super::harness::Test;
use super::profile::Frame;

pub(super) const TESTS: &[Test] = &[
    Test::new("the_stack_of_a_context_is_complete", context).quick(),
    Test::new("a_handlers_own_stack_is_said_to_end_there", handler),
];

/// The share of the samples whose stack has a function, with a root that is none or one of these words.
fn check(test: &Context<'_>, kind: &str, function: &str, is_root: fn(&str) -> bool) -> Verdict {
    let recorded = test.record(&["other_stacks", kind, "500"]).run_well()?;
    let held = recorded.profile.share_of_stacks(|stack: &[&Frame]| {
        stack.first().is_some_and(|frame| is_root(&frame.function))
            && stack.iter().any(|frame| frame.function == function)
    });
    let wanted = recorded.true_share(function)?;
    let verdict = expect_share(function, held, wanted, recorded.profile.count());
    with_note(verdict, format_args!("roots: {:?}", recorded.profile.roots()))
}

fn context(test: &Context<'_>) -> Verdict {
    check(test, "context", "on_context", |root| !root.starts_with("(truncated"))
}

fn handler(test: &Context<'_>) -> Verdict {
    let says_why = |root: &str| root == "(truncated: interrupted code on another stack)";
    check(test, "handler", "in_handler", says_why)
}
