//! Stacks of assembly that has no unwind information, and leaves the frame pointer to its callers.

use super::context::Context;
use super::expect::{Verdict, expect_share, with_note};
use super::profile::Frame;
use super::stacks::{in_order, is_truncated};
use super::test::{SHARES, Test};

pub(super) const TESTS: &[Test] = &[
    Test::new("assembly_without_cfi_has_its_callers", |test| assembly(test, "assembly")).in_pairs(SHARES),
    Test::new("assembly_among_much_code_has_its_callers", |test| assembly(test, "assembly-large"))
        .in_pairs(SHARES),
    Test::new("stripped_assembly_shows_no_skipped_caller", stripped_assembly).in_pairs(SHARES),
];

/// The functions of the workload that take time.
const FUNCTIONS: [&str; 3] = ["spins_aligned", "spins_aligned_by_register", "spins_by_jumps"];

/// Functions that have aligned the stack, or jump on and on, and leave the frame pointer to their callers.
fn assembly(test: &Context<'_>, workload: &str) -> Verdict {
    let recorded = test.record(&[workload, "600"]).run_well()?;
    let profile = &recorded.profile;
    for function in FUNCTIONS {
        let caller = format!("calls_{function}");
        let held = profile.share_of_stacks(|stack| {
            let names: Vec<&str> = stack.iter().map(|frame| frame.function.as_str()).collect();
            in_order(&names, &["_start", "main"]) && names.ends_with(&[&*caller, function])
        });
        let verdict = expect_share(function, held, recorded.true_share(function)?, profile.count());
        with_note(verdict, format_args!("roots: {:?}", profile.roots()))?;
    }
    Ok(())
}

/// Without symbols, a stack that is not sure is cut. None has a caller's caller in place of the caller: of the program
/// itself there are four frames, from `_start` to the assembly.
fn stripped_assembly(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["assembly-stripped", "600"]).run_well()?;
    let profile = &recorded.profile;
    let of_program = |frame: &&&Frame| frame.lib.as_deref() == Some("assembly-stripped");
    let is_deep = |stack: &[&Frame]| stack.iter().filter(of_program).count() >= 4;
    // The program itself calls the assembly, so a function of a library in between is left over on the stack.
    let is_direct = |stack: &[&Frame]| {
        let own = stack.iter().rposition(|frame| of_program(&frame));
        own.and_then(|own| stack.get(own.checked_sub(1)?)).is_some_and(|caller| of_program(&caller))
    };
    let held = profile.share_of_stacks(|stack| is_deep(stack) && is_direct(stack) || is_truncated(stack));
    let expected: f64 =
        FUNCTIONS.iter().map(|part| recorded.true_share(part)).sum::<anyhow::Result<f64>>()?;
    let verdict = expect_share("with the caller, or truncated", held, expected, profile.count());
    with_note(verdict, format_args!("roots: {:?}", profile.roots()))
}
