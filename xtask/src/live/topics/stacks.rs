//! Complete stacks: roots, recursion, frames of odd shapes, signal frames, the kernel's part.

use super::context::Context;
use super::expect::{
    Stop, Verdict, expect, expect_eq, expect_measured, expect_share, need_root, skip, with_note,
};
use super::profile::{Frame, Profile};
use super::recorded::Recorded;
use super::test::{SHARES, Test};

pub(super) const TESTS: &[Test] = &[
    Test::new("every_stack_begins_at_start_with_cfi", |test| roots(test, "shares"))
        .quick()
        .in_pairs(SHARES)
        .everywhere(),
    Test::new("every_stack_begins_at_start_unoptimised", |test| roots(test, "shares-O0")).in_pairs(SHARES),
    Test::new("stacks_begin_at_start_with_frame_pointers", |test| roots(test, "shares-fp")).in_pairs(SHARES),
    Test::new("stacks_begin_at_start_by_frame_pointers_alone", |test| roots(test, "shares-fp-no-cfi"))
        .in_pairs(SHARES),
    Test::new("stacks_begin_at_start_by_instructions_alone", |test| roots(test, "shares-no-cfi"))
        .in_pairs(SHARES),
    Test::new("stripped_stacks_are_whole_by_instructions", |test| {
        expect_whole(&test.record(&["shares-no-cfi-stripped", "500"]).run_well()?.profile)
    })
    .in_pairs(SHARES),
    Test::new("a_c_library_without_cfi_has_its_callers", |test| musl(test, &["-static"]))
        .quick()
        .in_pairs(SHARES),
    Test::new("a_stripped_c_library_without_cfi_has_callers", |test| musl(test, &[])).in_pairs(SHARES),
    Test::new("a_stripped_musl_program_has_whole_stacks", |test| {
        expect_whole(&record_musl(test, &["-static", "-s"])?.profile)
    })
    .in_pairs(SHARES),
    Test::new("every_stack_begins_at_start_by_debug_frame", |test| roots(test, "shares-debug-frame"))
        .in_pairs(SHARES),
    Test::new("every_stack_begins_at_start_without_pie", |test| roots(test, "shares-no-pie"))
        .in_pairs(SHARES),
    Test::new("every_stack_begins_at_start_in_static_c", |test| roots(test, "shares-static"))
        .in_pairs(SHARES),
    Test::new("every_stack_begins_at_start_in_a_static_pie", |test| roots(test, "shares-static-pie"))
        .quick()
        .in_pairs(SHARES),
    Test::new("stacks_begin_at_start_without_a_search_table", |test| roots(test, "shares-no-hash-header"))
        .in_pairs(SHARES),
    Test::new("stacks_begin_at_start_with_many_text_sections", |test| roots(test, "shares-text-sections"))
        .in_pairs(SHARES),
    Test::new("every_stack_begins_at_start_in_rust", |test| rust_roots(test, "inlines-v0"))
        .quick()
        .in_pairs(SHARES),
    Test::new("every_stack_begins_at_start_in_static_rust", |test| rust_roots(test, "inlines-static"))
        .in_pairs(SHARES),
    Test::new("thread_stacks_begin_where_threads_do", |test| thread_roots(test, "threads")).in_pairs(SHARES),
    Test::new("thread_stacks_have_roots_with_frame_pointers", |test| thread_roots(test, "threads-fp"))
        .in_pairs(SHARES),
    Test::new("callers_are_in_order", callers_in_order).quick().in_pairs(SHARES).everywhere(),
    Test::new("a_recursion_that_fits_is_complete", |test| recursion(test, "recursion", 100)).in_pairs(SHARES),
    Test::new("a_deep_recursion_is_complete_or_says_why_not", |test| recursion(test, "recursion", 300))
        .quick()
        .in_pairs(SHARES),
    Test::new("a_deep_fp_recursion_is_whole_or_says_why_not", |test| recursion(test, "recursion-fp", 300))
        .in_pairs(SHARES),
    Test::new("a_very_deep_recursion_is_whole_or_says_why", |test| recursion(test, "recursion", 4000))
        .in_pairs(SHARES),
    Test::new("a_fault_at_the_stack_pointer_has_its_function", fault_at_stack_pointer).in_pairs(SHARES),
    Test::new("a_handlers_own_stack_is_whole_or_says_so", |test| own_stack(test, "signal_stack"))
        .in_pairs(SHARES),
    Test::new("a_coroutines_stack_is_complete", |test| coroutine(test, "coroutine", &[], IN_COROUTINE))
        .in_pairs(SHARES),
    Test::new("what_a_coroutine_returns_to_has_its_name", |test| {
        coroutine(test, "coroutine-static", &[], IN_COROUTINE)
    })
    .in_pairs(SHARES),
    Test::new("a_coroutines_root_is_named_by_frame_pointers", |test| {
        // In a leaf without a frame, frame pointers skip its caller. That is `in_coroutine` when it reads the
        // time.
        coroutine(test, "coroutine-fp", &["--call-graph", "fp"], &["body"])
    })
    .in_pairs(SHARES),
    Test::new("frame_pointers_name_what_a_handler_returns_to", signal_return_by_frame_pointers)
        .in_pairs(SHARES),
    Test::new("what_a_handler_returns_to_has_its_name", |test| own_stack(test, "signal_stack-static"))
        .in_pairs(SHARES),
    Test::new("a_signal_handlers_stack_goes_on_below_it", |test| signal_frame(test, "signal_frame"))
        .in_pairs(SHARES),
    Test::new("a_handlers_stack_goes_on_with_frame_pointers", |test| signal_frame(test, "signal_frame-fp"))
        .in_pairs(SHARES),
    Test::new("a_leaf_without_cfi_is_whole_or_says_why_not", no_cfi).in_pairs(SHARES),
    Test::new("frame_pointers_lead_out_of_a_leaf_without_cfi", no_cfi_frame_pointers).in_pairs(SHARES),
    Test::new("made_code_without_cfi_has_its_callers", |test| made_code(test, &[])).quick().in_pairs(SHARES),
    Test::new("by_ptrace_made_code_without_cfi_has_callers", |test| {
        made_code(test, &["--backend", "ptrace"])
    })
    .in_pairs(SHARES),
    Test::new("frames_of_dynamic_size_are_walked", dynamic_frames).in_pairs(SHARES),
    Test::new("code_of_the_vdso_has_its_caller", vdso).in_pairs(SHARES),
    Test::new("a_plugin_loaded_at_run_time_has_its_caller", plugin).in_pairs(SHARES),
    Test::new("kernel_frames_lie_on_top_of_their_user_frames", kernel_on_user).in_pairs(SHARES),
];

/// How many samples may have other roots, at the start (the dynamic loader) and the end of the process.
const EDGE_SAMPLES: usize = 4;

/// Whether a stack was walked to the outermost frame of a user program.
pub(super) fn begins_at_start(stack: &[&Frame]) -> bool {
    stack.first().is_some_and(|frame| frame.function == "_start")
}

/// Whether the kernel is replacing the process's program or ending the process. During that time, there is no
/// user code as the root.
fn is_between_programs(stack: &[&Frame]) -> bool {
    let replaces = |frame: &&Frame| ["bprm_execve", "do_exit"].contains(&frame.function.as_str());
    stack.iter().all(|frame| frame.category == "Kernel") && stack.iter().any(replaces)
}

/// Checks that every sample has a root, and none is left out. The loader's own `_start` counts as well as the
/// program's. Only kernel work before the program exists (exec) has no user root.
pub(super) fn expect_roots(profile: &Profile, fits: impl Fn(&[&Frame]) -> bool) -> Verdict {
    // Samples are counted instead of their time, because the first sample after the hypervisor has held the
    // CPU includes that time, too.
    let other = profile.stacks().filter(|(stack, _)| !fits(stack) && !is_between_programs(stack)).count();
    let roots = profile.roots();
    expect(
        other <= EDGE_SAMPLES,
        format_args!("{other} of {} samples begin elsewhere: {roots:?}", profile.count()),
    )?;
    expect_measured(profile.total() > 100.0, format_args!("only {} samples", profile.total()))
}

fn roots(test: &Context<'_>, workload: &str) -> Verdict {
    let recorded = test.record(&[workload, "600"]).run_well()?;
    expect_roots(&recorded.profile, begins_at_start)?;
    let in_main = recorded.profile.share_of_stacks(|stack| {
        let names: Vec<&str> = stack.iter().map(|frame| frame.function.as_str()).collect();
        names.contains(&"_start") && in_order(&names, &["main", "middle", "alpha"])
    });
    expect_share(
        "_start > main > middle > alpha",
        in_main,
        recorded.true_share("alpha")?,
        recorded.profile.count(),
    )
}

/// Whether the names contain the requested ones, in this order.
pub(super) fn in_order(names: &[&str], expected: &[&str]) -> bool {
    let mut rest = names.iter();
    expected.iter().all(|expected| rest.any(|name| name == expected))
}

fn rust_roots(test: &Context<'_>, workload: &str) -> Verdict {
    let recorded = test.record(&[workload, "600"]).run_well()?;
    expect_roots(&recorded.profile, begins_at_start)?;
    let complete = recorded.profile.share_of_stacks(|stack| {
        let names: Vec<&str> = stack.iter().map(|frame| frame.function.as_str()).collect();
        in_order(&names, &["_start", "main", "inlines::main", "inlines::outer_frame"])
    });
    expect_share(
        "_start to outer_frame",
        complete,
        recorded.true_share("outer_frame")?,
        recorded.profile.count(),
    )
}

/// The stack begins with two frames of the C library, whatever their names are. Then comes the thread's
/// function.
fn thread_roots(test: &Context<'_>, workload: &str) -> Verdict {
    let recorded = test.record(&[workload, "800"]).run_well()?;
    for name in ["worker-half", "worker-third"] {
        for thread in recorded.profile.threads_named(name) {
            let whole = |stack: &[&Frame]| {
                let worker = stack.iter().position(|frame| frame.function == "worker");
                let below = worker.map(|index| &stack[..index]);
                below.is_some_and(|below| {
                    below.len() == 2 && below.iter().all(|frame| frame.lib.as_deref() == Some("libc.so.6"))
                })
            };
            let other = thread.stacks().filter(|(stack, _)| !whole(stack)).count();
            let example = thread.stacks().find(|(stack, _)| !whole(stack)).map(|(stack, _)| describe(&stack));
            let total = thread.total();
            expect_measured(
                other <= EDGE_SAMPLES && total > 100.0,
                format_args!(
                    "{other} of {total} samples of {name} do not begin at the thread's start: {example:?}"
                ),
            )?;
        }
    }
    Ok(())
}

/// A stack as text, for messages.
fn describe(stack: &[&Frame]) -> String {
    let names: Vec<&str> = stack.iter().take(12).map(|frame| frame.function.as_str()).collect();
    names.join(" > ")
}

fn callers_in_order(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "600"]).run_well()?;
    for (stack, _) in recorded.profile.stacks() {
        let names: Vec<&str> = stack.iter().map(|frame| frame.function.as_str()).collect();
        for leaf in ["alpha", "beta", "gamma_"] {
            let held = !names.contains(&leaf) || in_order(&names, &["main", "middle", leaf]);
            expect(held, format_args!("{leaf} without its callers: {}", describe(&stack)))?;
        }
    }
    Ok(())
}

/// When a stack grows, the page at the stack pointer does not exist until the kernel makes it. So the kernel
/// can copy nothing then. The function is still known, and the stack is marked as truncated.
fn fault_at_stack_pointer(test: &Context<'_>) -> Verdict {
    need_root()?;
    let script = format!("for i in $(seq 100); do {} 1 4000; done", test.workload("recursion").display());
    let recorded = test.record_command(&["sh", "-c", &script]).options(&["-r", "10000"]).run_well()?;
    let of_fault = |stack: &[&Frame], root: &str, function: &str| {
        let names = stack.iter().map(|frame| frame.function.as_str());
        names.take(3).eq([root, function, "asm_exc_page_fault"])
    };
    let profile = &recorded.profile;
    let begins = |root: &str| profile.roots().get(root).copied().unwrap_or_default();
    expect_eq("the samples of faults that begin in the kernel", begins("asm_exc_page_fault"), 0.0)?;
    let known = profile.share_of_stacks(|stack| of_fault(stack, "(truncated: stack copy ended)", "descend"));
    expect_measured(known > 0.0, format_args!("no fault is in its function: {:?}", profile.roots()))
}

/// Each stack either has all levels and its root, or ends in a `(truncated)` root with the reason.
fn recursion(test: &Context<'_>, workload: &str, depth: usize) -> Verdict {
    let recorded = test.record(&[workload, "500", &depth.to_string()]).run_well()?;
    let truncated = recorded.profile.share_of_stacks(is_truncated);
    let fits_a_copy = depth * 272 < 48 * 1024;
    let complete = recorded.profile.share_of_stacks(|stack| {
        begins_at_start(stack) && stack.iter().filter(|frame| frame.function == "descend").count() == depth
    });
    println!("        {workload} {depth} deep: {complete:.3} complete, {truncated:.3} truncated");
    let roots = recorded.profile.roots();
    let expected = recorded.true_share("bottom")?;
    let accounted = if fits_a_copy { complete } else { complete + truncated };
    let verdict = expect_share("complete or truncated stacks", accounted, expected, recorded.profile.count());
    with_note(verdict, format_args!("roots: {roots:?}"))?;
    // All other stacks must have a root, too, and not be cut.
    expect_roots(&recorded.profile, |stack| begins_at_start(stack) || is_truncated(stack))
}

/// Whether the root says that the stack was not finished, and gives the reason.
pub(super) fn is_truncated(stack: &[&Frame]) -> bool {
    let reason =
        |name: &str| name.strip_prefix("(truncated").map(|rest| rest.trim_matches([':', ')', ' ']).len());
    let printed = stack.first().and_then(|root| reason(&root.function));
    let said_next = || stack.get(1).is_some_and(|next| next.function.starts_with('('));
    printed.is_some_and(|length| length > 0 || said_next())
}

fn signal_frame(test: &Context<'_>, workload: &str) -> Verdict {
    let recorded = test.record(&[workload, "900"]).run_well()?;
    let profile = &recorded.profile;
    expect_roots(profile, begins_at_start)?;
    let expected = recorded.true_share("burn_in_handler")?;
    let below = |below: &'static str| {
        profile.share_of_stacks(move |stack| {
            let names: Vec<&str> = stack.iter().map(|frame| frame.function.as_str()).collect();
            in_order(&names, &["main", below, "handler", "burn_in_handler"])
        })
    };
    expect_share("the handler above a call", below("interrupted_work"), expected / 2.0, profile.count())?;
    expect_share(
        "the handler above any instruction",
        below("interrupted_anywhere"),
        expected / 2.0,
        profile.count(),
    )
}

/// If a handler runs on a separate stack, the root says so. The handler's return address has its name if
/// there are symbols.
fn own_stack(test: &Context<'_>, workload: &str) -> Verdict {
    const ON_ANOTHER_STACK: &str = "(truncated: interrupted code is on another stack)";
    let recorded = test.record(&[workload, "400"]).run_well()?;
    let profile = &recorded.profile;
    let first: &[&str] =
        if workload.ends_with("-static") { &["__restore_rt", "handler"] } else { &["handler"] };
    let held = profile.share_of_stacks(|stack| {
        let names: Vec<&str> = stack.iter().map(|frame| frame.function.as_str()).collect();
        let is_said = names[0] == ON_ANOTHER_STACK || begins_at_start(stack);
        is_said && in_order(&names, first) && names.contains(&"on_own_stack")
    });
    let verdict = expect_share("on_own_stack", held, recorded.true_share("on_own_stack")?, profile.count());
    with_note(verdict, format_args!("roots: {:?}", profile.roots()))
}

/// The functions on the coroutine's stack.
const IN_COROUTINE: &[&str] = &["body", "in_coroutine"];

/// The frames beyond the handler depend on the interrupted code, but its return address does not.
fn signal_return_by_frame_pointers(test: &Context<'_>) -> Verdict {
    let recorded =
        test.record(&["signal_frame-fp-static", "400"]).options(&["--call-graph", "fp"]).run_well()?;
    let profile = &recorded.profile;
    let share = |expected: &[&str]| {
        profile.share_of_stacks(|stack| {
            let names: Vec<&str> = stack.iter().map(|frame| frame.function.as_str()).collect();
            names.contains(&"handler") && in_order(&names, expected)
        })
    };
    let (all, named) = (share(&["handler"]), share(&["__restore_rt", "handler"]));
    expect(all > 0.3 && named > 0.98 * all, format_args!("{named} of {all}; roots: {:?}", profile.roots()))
}

/// The stack ends where `makecontext` has made it begin. If the C library has no symbols, a stand-in replaces
/// the name.
fn coroutine(test: &Context<'_>, workload: &str, options: &[&str], functions: &[&str]) -> Verdict {
    let recorded = test.record(&[workload, "400"]).options(options).run_well()?;
    let profile = &recorded.profile;
    let is_bottom =
        |name: &str| name == "__start_context" || workload == "coroutine" && name.starts_with("fun_");
    let held = profile.share_of_stacks(|stack| {
        let names: Vec<&str> = stack.iter().map(|frame| frame.function.as_str()).collect();
        is_bottom(names[0]) && in_order(&names, functions)
    });
    let verdict = expect_share("in_coroutine", held, recorded.true_share("in_coroutine")?, profile.count());
    with_note(verdict, format_args!("roots: {:?}", profile.roots()))
}

fn no_cfi(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["no_cfi", "500"]).run_well()?;
    let held = recorded.profile.share_of_stacks(|stack| {
        let names: Vec<&str> = stack.iter().map(|frame| frame.function.as_str()).collect();
        in_order(&names, &["_start", "main", "calls_leaf", "leaf_without_cfi"])
    });
    let truncated = recorded.profile.share_of_stacks(is_truncated);
    let expected = recorded.true_share("leaf_without_cfi")?;
    let roots = recorded.profile.roots();
    println!("        no_cfi: {held:.3} complete, {truncated:.3} truncated");
    let verdict = expect_share(
        "the leaf with its callers, or truncated",
        held + truncated,
        expected,
        recorded.profile.count(),
    );
    with_note(verdict, format_args!("{truncated:.3} say that they are truncated; roots: {roots:?}"))
}

/// The frame pointer in the leaf is its caller's, so following it would lead to main, and skip the caller.
fn no_cfi_frame_pointers(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["no_cfi-fp", "500"]).run_well()?;
    let held = recorded.profile.share_of_stacks(|stack| {
        let names: Vec<&str> = stack.iter().map(|frame| frame.function.as_str()).collect();
        in_order(&names, &["_start", "main", "calls_leaf", "leaf_without_cfi"])
    });
    let expected = recorded.true_share("leaf_without_cfi")?;
    let verdict = expect_share("the leaf up to _start", held, expected, recorded.profile.count());
    with_note(verdict, format_args!("roots: {:?}", recorded.profile.roots()))
}

/// Between functions there are pieces of code that exist only in the process's memory. Only their
/// instructions describe how to unwind them.
fn made_code(test: &Context<'_>, options: &[&str]) -> Verdict {
    let recorded = test.record(&["trampolines", "600"]).options(options).run_well()?;
    let profile = &recorded.profile;
    expect_roots(profile, begins_at_start)?;
    let held = profile.share_of_stacks(|stack| {
        let names: Vec<&str> = stack.iter().map(|frame| frame.function.as_str()).collect();
        let made = names.iter().filter(|name| name.starts_with("0x")).count();
        made == 2 && in_order(&names, &["_start", "main", "outer", "middle", "inner"])
    });
    // Time without samples says nothing about stacks.
    let held = profile.of_taken(held);
    expect_share("through both pieces", held, recorded.true_share("inner")?, profile.equal_count())
}

/// A program whose C library calls back into it, and has no unwind information. The shared library is also
/// stripped.
fn musl(test: &Context<'_>, flags: &[&str]) -> Verdict {
    let recorded = record_musl(test, flags)?;
    expect_roots(&recorded.profile, begins_at_start)?;
    expect_whole(&recorded.profile)?;
    let held = recorded.profile.share_of_stacks(|stack| {
        let names: Vec<&str> = stack.iter().map(|frame| frame.function.as_str()).collect();
        in_order(&names, &["_start", "main", "sorts", "compares"])
    });
    // A file system with many recent deletions takes long to find a free inode. The program's truth does not
    // include that time.
    let held = held / (1.0 - recorded.profile.total_share("truth_write"));
    expect_share("through the library", held, recorded.true_share("compares")?, recorded.profile.count())
}

fn record_musl(test: &Context<'_>, flags: &[&str]) -> Result<Recorded, Stop> {
    let (program, sources) = (test.fresh("sorts"), crate::paths::root().join("workloads"));
    let compiler = test.program("musl-gcc").args(&["-O2", "-g", "-I"]).path(&sources.join("common"));
    match compiler.args(flags).path(&sources.join("sorts.c")).args(&["-o"]).path(&program).run() {
        Ok(finished) => drop(finished.succeeded()?),
        Err(error) => return skip(format_args!("musl-gcc is not installed: {error}")),
    }
    Ok(test.record_command(&[&program.display().to_string(), "100"]).run_well()?)
}

/// Checks that no stack was cut.
fn expect_whole(profile: &Profile) -> Verdict {
    let cut = profile.stacks().filter(|(stack, _)| is_truncated(stack)).count();
    expect(cut <= EDGE_SAMPLES, format_args!("{cut} of {} stacks are cut", profile.count()))
}

fn dynamic_frames(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["dynamic_frames", "600"]).run_well()?;
    expect_roots(&recorded.profile, begins_at_start)?;
    let expected = ["_start", "main", "with_alignment", "with_array", "with_alloca", "burn_below"];
    let held = recorded.profile.share_of_stacks(|stack| {
        let names: Vec<&str> = stack.iter().map(|frame| frame.function.as_str()).collect();
        in_order(&names, &expected)
    });
    expect_share("all dynamic frames", held, recorded.true_share("burn_below")?, recorded.profile.count())
}

fn vdso(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["clock_loop", "500"]).run_well()?;
    expect_roots(&recorded.profile, begins_at_start)?;
    let in_vdso = |frame: &Frame| frame.lib.as_deref().is_some_and(|lib| lib.contains("vdso"));
    let share = recorded.profile.share_with(in_vdso);
    expect_measured(share > 0.2, format_args!("only {share:.3} of the samples are in the vdso"))?;
    let named =
        recorded.profile.share_with(|frame| in_vdso(frame) && frame.function.contains("clock_gettime"));
    expect_measured(
        named > share * 0.9,
        format_args!("{named:.3} of {share:.3} in the vdso have its function's name"),
    )
}

fn plugin(test: &Context<'_>) -> Verdict {
    let library = test.workload("libplugin.so").display().to_string();
    let recorded = test.record(&["plugin_host", "400", &library]).run_well()?;
    let held = recorded.profile.share_of_stacks(|stack| {
        let names: Vec<&str> = stack.iter().map(|frame| frame.function.as_str()).collect();
        in_order(&names, &["_start", "main", "plugin_entry", "plugin_inner"])
    });
    expect_share(
        "the plugin and its caller",
        held,
        recorded.true_share("plugin_inner")?,
        recorded.profile.count(),
    )?;
    let frame = recorded.profile.frame_of(|frame| frame.function == "plugin_inner");
    expect_eq("its lib", frame.and_then(|frame| frame.lib), Some("libplugin.so".to_owned()))
}

fn kernel_on_user(test: &Context<'_>) -> Verdict {
    need_root()?;
    let recorded = test.record(&["kernel_heavy", "600", "zero"]).run_well()?;
    expect_kernel_frames(&recorded)?;
    expect_roots(&recorded.profile, begins_at_start)
}

/// The function that reads /dev/zero, in kernels of different ages.
const ZERO_READERS: &[&str] = &["read_zero", "read_iter_zero"];

/// Checks that kernel frames have their category and their names, and lie above the user's frames.
pub(super) fn expect_kernel_frames(recorded: &Recorded) -> Verdict {
    let profile = &recorded.profile;
    let truth = recorded.truth()?;
    let kernel = |stack: &[&Frame]| stack.last().is_some_and(|frame| frame.category == "Kernel");
    // The truth is the kernel's accounting by ticks. So the tolerance is 0.08, which is larger than the
    // binomial one.
    let found = profile.share_of_stacks(kernel);
    let expected = truth.system / truth.cpu;
    expect_measured(
        found > expected - 0.08,
        format_args!("kernel share {found:.3}, accounted {expected:.3}"),
    )?;
    let above = profile.share_of_stacks(|stack| {
        let first = stack.iter().position(|frame| frame.category == "Kernel");
        let user = stack.iter().rposition(|frame| frame.function == "read_zeroes");
        first.is_some() && user < first && user.is_some()
    });
    expect_measured(
        above > found * 0.95,
        format_args!("{above:.3} of {found:.3} kernel stacks lie on read_zeroes"),
    )?;
    let named = profile
        .share_with(|frame| frame.category == "Kernel" && ZERO_READERS.contains(&frame.function.as_str()));
    expect_measured(
        named > 0.8 * found,
        format_args!("{named:.3} of {found:.3} have a name of {ZERO_READERS:?}"),
    )
}
