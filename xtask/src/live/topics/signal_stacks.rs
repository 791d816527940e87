//! Signal handlers on stacks of their own: below them is the code that they have interrupted.

use super::context::Context;
use super::expect::{Verdict, expect, expect_measured, need_root, skip};
use super::permissions::at_paranoid;
use super::profile::{Frame, Profile};
use super::stacks::{in_order, is_truncated};
use super::test::{SHARES, Test};

pub(super) const TESTS: &[Test] = &[
    Test::new("by_ptrace_handlers_have_interrupted_code", |test| by_ptrace(test, LONG)).in_pairs(SHARES),
    Test::new("by_ptrace_short_handlers_have_their_code", |test| by_ptrace(test, SHORT)).in_pairs(SHARES),
    Test::new("as_root_handlers_have_interrupted_code", |test| as_root(test, LONG)).in_pairs(SHARES),
    Test::new("as_root_short_handlers_have_their_code", |test| as_root(test, SHORT)).in_pairs(SHARES),
    Test::new("a_plain_users_handlers_say_what_is_missing", by_plain_user).in_pairs(SHARES),
];

/// The workload with handlers of 200 ms each, and with handlers of 1 ms one after the other, which interrupt two
/// functions in turn in the same place.
const LONG: &[&str] = &["signal_stack_turns", "5000", "200", "100"];
const SHORT: &[&str] = &["signal_stack_turns", "5000", "1", "0"];
/// The share of the handlers' samples that has to have the interrupted code. The first ones only show where the
/// signal stack is.
const MIN_WHOLE: f64 = 0.9;

/// Whether a stack is one of a handler. Fails if the handler is not the one of the function that it has interrupted.
fn is_whole(stack: &[&Frame]) -> Result<Option<bool>, String> {
    let names: Vec<&str> = stack.iter().map(|frame| frame.function.as_str()).collect();
    let Some(turn) = ["a", "b"].into_iter().find(|turn| names.contains(&&*format!("on_stack_{turn}"))) else {
        return Ok(None);
    };
    let (work, handler) = (format!("work_{turn}"), format!("on_stack_{turn}"));
    let whole = ["_start", "main", &work, "interrupt_itself", "handler", &handler];
    match (is_truncated(stack), in_order(&names, &whole)) {
        (false, true) => Ok(Some(true)),
        (true, _) if !names.contains(&"main") => Ok(Some(false)),
        _ => Err(format!("a stack that never was: {names:?}")),
    }
}

/// Checks that no handler has other code below it than it has interrupted. Returns the share of those that have it.
fn share_whole(profile: &Profile) -> Result<f64, super::expect::Stop> {
    let [mut whole, mut all] = [0.0, 0.0];
    for (stack, weight) in profile.stacks() {
        let is_whole = is_whole(&stack);
        expect(is_whole.is_ok(), format_args!("{is_whole:?}"))?;
        if let Ok(Some(is_whole)) = is_whole {
            whole += weight * f64::from(u8::from(is_whole));
            all += weight;
        }
    }
    expect_measured(all > 0.3 * profile.total(), format_args!("only {all} of {}", profile.total()))?;
    println!("        {:.3} of the handlers' stacks have the interrupted code", whole / all);
    Ok(whole / all)
}

fn expect_whole(profile: &Profile) -> Verdict {
    let whole = share_whole(profile)?;
    expect_measured(whole > MIN_WHOLE, format_args!("only {whole:.3}: {:?}", profile.roots()))
}

fn by_ptrace(test: &Context<'_>, words: &[&str]) -> Verdict {
    expect_whole(&test.record(words).options(&["--backend", "ptrace"]).run_well()?.profile)
}

fn as_root(test: &Context<'_>, words: &[&str]) -> Verdict {
    need_root()?;
    let recorded = test.record(words).options(&["-v"]).run_well()?;
    if !recorded.finished.stderr.contains("The kernel copies the rest of deeper stacks") {
        return skip("the kernel takes no program that copies stacks");
    }
    expect_whole(&recorded.profile)
}

/// From outside, nothing proves that the memory is of the moment of the sample.
fn by_plain_user(test: &Context<'_>) -> Verdict {
    let _held = at_paranoid(2)?;
    for words in [LONG, SHORT] {
        let profile = test.record(words).by_plain_user().run_well()?.profile;
        let whole = share_whole(&profile)?;
        let says_so = profile.roots().keys().any(|root| root.contains("is on another stack"));
        expect(whole > MIN_WHOLE || says_so, format_args!("{whole:.3} are whole: {:?}", profile.roots()))?;
    }
    Ok(())
}
