//! Stacks that are deep, and deeper than their copies: outer frames from the running program's memory,
//! and the options that choose how callers are found.

use super::context::Context;
use super::expect::{
    Stop, Verdict, expect, expect_contains, expect_eq, expect_measured, need_root, skip, tolerance,
};
use super::kept_records::expect_kept;
use super::permissions::at_paranoid;
use super::profile::{Frame, Profile};
use super::recorded::Recorded;
use super::running_targets::{end, process_cpu_ms, working};
use super::spare::{Watched, watched, with_spare_time};
use super::stacks::{begins_at_start, in_order, is_truncated};
use super::test::{SHARES, Test};
use crate::many_functions::write_functions;

/// Why some of these tests run alone.
const CPU: &str = "how much is read of a deep stack depends on how soon the recorder gets a CPU";

pub(super) const TESTS: &[Test] = &[
    Test::new("stacks_of_40_kb_are_copied_whole", copied).quick().exclusive(CPU),
    Test::new("stacks_of_40_kb_are_whole_at_high_rates", copied_at_high_rate).exclusive(CPU),
    Test::new("a_plain_users_stacks_of_40_kb_are_whole", copied_for_plain_user).exclusive(CPU),
    Test::new("stacks_of_40_kb_are_whole_when_attached", |test| copied_while_it_runs(test, false))
        .exclusive(CPU),
    Test::new("stacks_of_40_kb_are_copied_whole_system_wide", |test| copied_while_it_runs(test, true))
        .exclusive(CPU),
    Test::new("a_recursion_beyond_all_copies_has_its_root", from_memory).quick().exclusive(CPU),
    Test::new("deep_stacks_are_whole_beside_busy_loops", beside_busy_loops).exclusive(CPU),
    Test::new("a_deep_stack_says_that_memory_is_denied", denied).exclusive(CPU),
    Test::new("a_very_deep_recursion_reaches_its_root", from_memory_far).exclusive(CPU),
    Test::new("a_recursion_of_over_a_megabyte_has_its_root", from_memory_farthest).exclusive(CPU),
    Test::new("compiler_stacks_reach_roots_beyond_copies", compiler).exclusive(CPU),
    Test::new("untouched_stack_pages_end_no_stacks", |test| skipped_page(test, &["800"], false))
        .quick()
        .exclusive(CPU),
    Test::new("untouched_pages_end_no_stack_from_the_start", |test| {
        skipped_page(test, &["1200", "0"], false)
    })
    .exclusive(CPU),
    Test::new("a_plain_users_untouched_pages_end_no_stack", |test| skipped_page(test, &["1200", "0"], true))
        .exclusive(CPU),
    Test::new("alternating_recursions_share_no_frame", |test| alternating(test, SLOW_TURN, 0)).exclusive(CPU),
    Test::new("fast_alternating_recursions_share_no_frame", |test| alternating(test, "300", 0))
        .exclusive(CPU),
    Test::new("recursions_on_a_common_base_stay_apart", |test| alternating(test, SLOW_TURN, 300))
        .exclusive(CPU),
    Test::new("fast_recursions_on_a_common_base_stay_apart", |test| alternating(test, "300", 300))
        .exclusive(CPU),
    Test::new("importing_kept_records_completes_stacks_again", kept_from_memory).exclusive(CPU),
    Test::new("frame_pointers_are_followed_if_requested", frame_pointers).quick().in_pairs(SHARES),
    Test::new("no_callers_are_searched_if_not_requested", no_callers).quick().in_pairs(SHARES),
    Test::new("the_requested_part_of_a_stack_is_copied", stack_size).quick().in_pairs(SHARES),
    Test::new("ptrace_copies_the_requested_part_of_a_stack", stack_size_by_ptrace).in_pairs(SHARES),
    Test::new("stack_options_that_make_no_sense_are_refused", refused).quick(),
];

/// The message of -v about the size of copies.
const COPIED: &str = "Copying 64 kB of each stack";
/// The message about stacks that were completed.
const COMPLETED: &str = "completed from the running program's memory";

/// Whether a stack of the workload `recursion` contains all levels.
fn is_whole(stack: &[&Frame], depth: usize) -> bool {
    begins_at_start(stack) && stack.iter().filter(|frame| frame.function == "descend").count() == depth
}

fn share_whole(profile: &Profile, depth: usize) -> f64 {
    profile.share_of_stacks(|stack| is_whole(stack, depth))
}

/// Checks the samples of a recursion that is 40 kB deep: none is lost, and the stacks are complete.
fn expect_copied(watched: &Watched<Recorded>, rate: f64) -> Verdict {
    let Recorded { profile, finished, truths, .. } = &watched.result;
    expect_contains("stderr", &finished.stderr, COPIED)?;
    let used = truths.iter().map(|truth| truth.cpu).sum();
    watched.expect_samples(profile.total(), used, rate, 0.02)?;
    let whole = share_whole(profile, 150);
    println!("        {whole:.3} of the stacks are whole");
    expect_measured(
        whole > 0.95,
        format_args!("only {whole:.3} of the stacks are whole: {:?}", profile.roots()),
    )
}

fn copied(test: &Context<'_>) -> Verdict {
    let options = ["-v", "--call-graph", "dwarf"];
    let recording = test.record(&["recursion", "3000", "150"]).options(&options);
    expect_copied(&watched(|| recording.run_well())?, 1000.0)
}

/// A reader that gets a CPU at once can process twice as much of each stack.
fn copied_at_high_rate(test: &Context<'_>) -> Verdict {
    need_root()?;
    let options = ["-v", "--call-graph", "dwarf", "-r", "10000"];
    let recording = test.record(&["recursion", "3000", "150"]).options(&options);
    let watched = watched(|| recording.run_well())?;
    let lost = &watched.result.profile.json["meta"]["nyquist"]["lostSamples"];
    expect_measured(lost.as_f64() == Some(0.0), format_args!("{lost} samples were lost"))?;
    expect_copied(&watched, 10_000.0)
}

/// Two processes inherit the events. A plain user's rings are large enough for larger copies only at a low
/// rate.
fn copied_for_plain_user(test: &Context<'_>) -> Verdict {
    let _held = at_paranoid(2)?;
    let program = test.workload("recursion").display().to_string();
    let script = format!("{program} 3000 150 & {program} 3000 150 & wait");
    let options = ["-v", "--call-graph", "dwarf", "-r", "100"];
    let recording = test.record_command(&["sh", "-c", &script]).options(&options).by_plain_user();
    let watched = watched(|| recording.run_well())?;
    expect_eq("processes that wrote their truth", watched.result.truths.len(), 2)?;
    expect_copied(&watched, 100.0)
}

/// Only the owner of all rights may read the memory of a process that is not dumpable.
fn denied(test: &Context<'_>) -> Verdict {
    let _held = at_paranoid(2)?;
    let recording = test.record(&["recursion", "2000", "600", "denies"]).by_plain_user();
    let profile = recording.run_well()?.profile;
    let says_so = |frame: &&Frame| frame.function.contains("denies access to its memory (PR_SET_DUMPABLE)");
    let share = profile.share_of_stacks(|stack| stack.iter().any(says_so));
    expect_measured(share > 0.9, format_args!("only {share:.3} of the stacks say why they are cut"))
}

/// The CPU time for which a running recursion is recorded, in milliseconds.
const RECORDED_MS: f64 = 2500.0;

/// Records a running recursion until it has worked for this time. It does not matter when the recorder
/// begins.
fn copied_while_it_runs(test: &Context<'_>, system: bool) -> Verdict {
    if system {
        need_root()?;
    }
    let target = working(test, &["recursion", "1000000", "150"])?;
    let output = test.path("attached.json.gz");
    let pid = target.pid().to_string();
    let which = if system { ["-a", "--name", "recursion"].to_vec() } else { vec!["-p", &pid] };
    let call =
        test.nyquist(&["record", "-v", "-s", "--call-graph", "dwarf", "-o"]).path(&output).args(&which);
    let used = || process_cpu_ms(target.pid());
    let before = used()?;
    let Watched { result: finished, stolen, .. } = watched(|| {
        let recorder = call.start()?;
        recorder.wait_until_recording()?;
        let begun = used()?;
        recorder.wait_until("the recursion to work", || used().is_ok_and(|now| now - begun > RECORDED_MS))?;
        recorder.signal(libc::SIGINT)?;
        recorder.wait()?.succeeded()
    })?;
    // The sampling clocks go on while a hypervisor holds the CPU.
    let most = used()? - before + 1000.0 * stolen;
    end(target)?;
    let profile = Profile::read(&output)?;
    expect_contains("stderr", &finished.stderr, COPIED)?;
    // When whole CPUs are recorded, an interval across a context switch counts for the thread at its end.
    let tolerance = if system { 0.15 } else { 0.02 };
    let due = RECORDED_MS * (1.0 - tolerance) - 5.0..most * (1.0 + tolerance) + 5.0;
    let total = profile.total();
    expect_measured(due.contains(&total), format_args!("{total} samples, not {due:?}"))?;
    let whole = share_whole(&profile, 150);
    expect_measured(
        whole > 0.9,
        format_args!("only {whole:.3} of the stacks are whole: {:?}", profile.roots()),
    )
}

/// The minimum share of whole stacks. It is nearly all if the reader gets a CPU at once. Late readings on a
/// busy machine are not trusted.
fn least_from_memory(had_spare_time: bool, of_idle: f64) -> f64 {
    if had_spare_time { of_idle } else { 0.05 }
}

/// 80 kB of stack: each stack is whole, or is marked as truncated.
fn from_memory(test: &Context<'_>) -> Verdict {
    expect_from_memory(test, 300, 0.8)
}

/// 400 kB of stack.
fn from_memory_far(test: &Context<'_>) -> Verdict {
    expect_from_memory(test, 1500, 0.5)
}

/// 1.1 MB of stack: a stack that takes so long to read is read less often. How often depends on the machine.
/// Of stacks of 1.6 MB, half were whole on one machine, and a tenth on another.
fn from_memory_farthest(test: &Context<'_>) -> Verdict {
    expect_from_memory(test, 4200, 0.15)
}

/// With the rights for it, the kernel copies what lies beyond the copies at the moment of each sample, however late the
/// recorder gets a CPU.
fn beside_busy_loops(test: &Context<'_>) -> Verdict {
    need_root()?;
    let [one, other] = [(); 2].map(|()| working(test, &["recursion", "1000000", "1"]));
    let busy = [one?, other?];
    for depth in [300, 1500] {
        let recording = test.record(&["recursion", "1500", &depth.to_string()]).options(&["-v"]);
        let recorded = recording.run_well()?;
        if !recorded.finished.stderr.contains("The kernel copies the rest of deeper stacks") {
            return skip("the kernel takes no program that copies stacks");
        }
        let whole = share_whole(&recorded.profile, depth);
        println!("        {whole:.3} of {depth} frames are whole");
        expect_measured(whole > 0.98, format_args!("only {whole:.3} of the stacks are whole"))?;
    }
    busy.into_iter().try_for_each(end)
}

fn expect_from_memory(test: &Context<'_>, depth: usize, of_idle: f64) -> Verdict {
    let recording = test.record(&["recursion", "2500", &depth.to_string()]);
    let Watched { result: recorded, had_spare_time, .. } = with_spare_time(|| recording.run_well())?;
    let (profile, stderr) = (&recorded.profile, &recorded.finished.stderr);
    let (whole, least) = (share_whole(profile, depth), least_from_memory(had_spare_time, of_idle));
    println!("        {whole:.3} of the stacks are whole, of at least {least}");
    expect_measured(whole > least, format_args!("only {whole:.3} of the stacks are whole, not {least}"))?;
    expect_contains("stderr", stderr, COMPLETED)?;
    // A stack with this recursion has all of it, or is marked as truncated.
    let halves = profile.share_of_stacks(|stack| {
        let has_bottom = stack.iter().any(|frame| frame.function == "bottom");
        has_bottom && !is_whole(stack, depth) && !is_truncated(stack)
    });
    expect_eq("the share of stacks with frames missing in between", halves, 0.0)?;
    expect_marked(profile, stderr)?;
    let info = profile.json["meta"]["extra"].to_string();
    expect_contains("the profile's information", &info, "Stacks completed")
}

/// As many stacks have marked frames as the message says were completed. The marks begin at the root, and do
/// not reach the innermost frame.
fn expect_marked(profile: &Profile, stderr: &str) -> Verdict {
    let printed = stderr.lines().find(|line| line.contains(COMPLETED)).unwrap_or_default();
    let digits: String = printed.split(" stack").next().unwrap_or_default().replace(',', "");
    let mut marked = 0;
    for (stack, _) in profile.stacks() {
        let is_marked: Vec<bool> =
            stack.iter().map(|frame| frame.subcategory == "Completed from memory").collect();
        if is_marked.contains(&true) {
            marked += 1;
            let is_outer =
                is_marked.is_sorted_by(|outer, inner| outer >= inner) && !is_marked.ends_with(&[true]);
            expect(is_outer, format_args!("frames of a copy are marked: {is_marked:?}"))?;
        }
    }
    expect_eq("the number of stacks with marked frames", marked.to_string(), digits)
}

/// The number of functions that the compiler compiles while it is recorded. They take some seconds.
const COMPILED_FUNCTIONS: u32 = 10;
/// The functions in which a thread's stack begins: the program's first thread, and others.
const ROOTS: [&str; 3] = ["_start", "clone3", "__clone3"];

/// Stacks of half a megabyte, with hundreds of thousands of functions. Readings of the running program are
/// added to the copies.
fn compiler(test: &Context<'_>) -> Verdict {
    let source = test.path("generated.rs");
    write_functions(&source, COMPILED_FUNCTIONS)?;
    let (source, output) = (source.display().to_string(), test.path("generated.rlib").display().to_string());
    // The path comes from cargo's own variable, because a proxy of cargo may read settings from the home
    // folder.
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let rustc = std::path::Path::new(&cargo).with_file_name("rustc").display().to_string();
    let words = [&rustc, "--crate-type=lib", "-O", "-Cdebuginfo=2", "-o", &output, &source];
    let share_of = |how: &str| -> Result<(f64, f64), Stop> {
        let profile = test.record_command(&words).options(&["--call-graph", how]).run_well()?.profile;
        let is_of_user = |stack: &[&Frame]| stack.iter().any(|frame| frame.category != "Kernel");
        let has_root = |stack: &[&Frame]| stack.first().is_some_and(|root| ROOTS.contains(&&*root.function));
        let whole = profile.share_of_stacks(|stack| is_of_user(stack) && has_root(stack));
        Ok((whole / profile.share_of_stacks(is_of_user), profile.count()))
    };
    let ((copied, _), (whole, samples)) = (share_of("dwarf")?, share_of("auto")?);
    println!("        {whole:.3} of {samples} stacks reach their roots, {copied:.3} of what is only copied");
    expect_measured(samples > 1000.0, format_args!("there are only {samples} samples"))?;
    expect_measured(whole > 0.75, format_args!("only {whole:.3} of the stacks reach their roots"))?;
    // Readings complete at least a quarter of the stacks that are truncated in copies. If the machine has
    // spare time, they complete most of them.
    let least = copied + 0.25 * (1.0 - copied) - tolerance(copied, samples);
    expect_measured(
        whole >= least,
        format_args!("{whole:.3} of the stacks reach their roots, {copied:.3} of copies: not {least:.3}"),
    )
}

/// The recorder reads pages into memory, and then the kernel can copy them.
fn skipped_page(test: &Context<'_>, arguments: &[&str], is_plain: bool) -> Verdict {
    let words = [&["skipped_page"], arguments].concat();
    let by = |how: &str| {
        let recording = test.record(&words).options(&["--call-graph", how]);
        if is_plain { recording.by_plain_user() } else { recording }.run_well()
    };
    let is_whole = |stack: &[&Frame]| {
        let names: Vec<&str> = stack.iter().map(|frame| frame.function.as_str()).collect();
        in_order(&names, &["work", "skips", "below"])
    };
    let [copied, read] =
        [by("dwarf")?, by("auto")?].map(|recorded| recorded.profile.share_of_stacks(is_whole));
    println!(
        "        {copied:.3} of the stacks go through the frame where they are only copied, {read:.3} else"
    );
    if copied > 0.5 {
        return skip("the system makes many pages of a stack at once");
    }
    expect_measured(read > 0.5, format_args!("only {read:.3} of the stacks are whole"))
}

/// The duration of turns that last longer than reading their stacks takes, in µs.
const SLOW_TURN: &str = "20000";
/// The depth of the alternating recursions.
const ALTERNATING: usize = 300;

/// Two deep recursions alternate. Each stack that is not marked as truncated is one that the program can have
/// had.
fn alternating(test: &Context<'_>, turn_us: &str, common: usize) -> Verdict {
    let words = ["alternating", "3000", turn_us, &ALTERNATING.to_string(), &common.to_string()];
    let Watched { result: recorded, had_spare_time, .. } =
        with_spare_time(|| test.record(&words).run_well())?;
    let profile = &recorded.profile;
    let [mut whole, mut cut] = [0.0, 0.0];
    for (stack, weight) in profile.stacks() {
        if is_truncated(&stack) {
            cut += weight;
            continue;
        }
        let turn: Vec<&str> =
            stack.iter().map(|frame| frame.function.as_str()).filter(|name| is_turns(name)).collect();
        let is_possible = is_possible(&turn, common);
        expect(is_possible, format_args!("a stack that never was: {}", in_short(&turn)))?;
        whole += weight * f64::from(u8::from(turn.last().is_some_and(|name| name.ends_with("leaf"))));
    }
    println!("        {whole} whole, {cut} cut, of {}", profile.total());
    expect_measured(
        whole + cut > 0.9 * profile.total(),
        format_args!("only {whole} are whole, and {cut} cut"),
    )?;
    // If turns are short, or if the inner 64 kB are equal in both, most readings are not trusted.
    if common == 0 && turn_us == SLOW_TURN {
        let least = least_from_memory(had_spare_time, 0.5) * profile.total();
        expect_measured(whole > least, format_args!("only {whole} of {} are whole", profile.total()))?;
    }
    Ok(())
}

/// Whether a function is one of those that make up the turns of the workload `alternating`. Some functions of
/// the kernel have similar names (`second_overflow`).
fn is_turns(name: &str) -> bool {
    matches!(
        name.split_once('_'),
        Some(("first" | "second", "even" | "odd" | "leaf") | ("common", "even" | "odd"))
    )
}

/// Whether the workload can have had these functions on its stack. They are given outermost first.
fn is_possible(turn: &[&str], common: usize) -> bool {
    let of = |prefix: &str| turn.iter().position(|name| !name.starts_with(prefix)).unwrap_or(turn.len());
    let which = if turn.first().is_some_and(|name| name.starts_with("second")) { "second" } else { "first" };
    let is_leaf = |name: &&str| name.ends_with("_leaf");
    let (frames, leaf) = match turn.split_last() {
        Some((last, rest)) if is_leaf(last) => (rest, Some(*last)),
        _ => (turn, None),
    };
    let (below, above) = frames.split_at(of(which).min(frames.len()));
    let alternates = |frames: &[&str], prefix: &str| {
        let expected =
            |index: usize| format!("{prefix}_{}", if index.is_multiple_of(2) { "even" } else { "odd" });
        frames.iter().enumerate().all(|(index, name)| *name == expected(index))
    };
    let is_full = below.len() == ALTERNATING;
    alternates(below, which)
        && alternates(above, "common")
        && (above.is_empty() || is_full)
        && leaf.is_none_or(|leaf| is_full && above.len() == common && leaf == format!("{which}_leaf"))
        && below.len() <= ALTERNATING
        && above.len() <= common
}

/// A short form of a stack: a number for each run of the same recursion.
fn in_short(turn: &[&str]) -> String {
    let runs = turn.chunk_by(|one, next| one.split('_').next() == next.split('_').next());
    let run = |run: &[&str]| format!("{} x {}", run.first().copied().unwrap_or_default(), run.len());
    runs.map(run).collect::<Vec<_>>().join(" > ")
}

fn kept_from_memory(test: &Context<'_>) -> Verdict {
    let live = expect_kept(test, test.record(&["recursion", "2000", "300"]))?;
    expect_contains("stderr", &live.finished.stderr, COMPLETED)
}

fn frame_pointers(test: &Context<'_>) -> Verdict {
    let options = ["-v", "--call-graph", "fp"];
    let recorded = test.record(&["recursion-fp", "600", "60"]).options(&options).run_well()?;
    expect_contains("stderr", &recorded.finished.stderr, "Following frame pointers")?;
    let levels = recorded
        .profile
        .share_of_stacks(|stack| stack.iter().filter(|frame| frame.function == "descend").count() == 60);
    expect_measured(levels > 0.9, format_args!("only {levels:.3} of the stacks have all levels"))?;
    // If the program has no frame pointers, the kernel cannot follow them.
    let recorded = test.record(&["recursion", "600", "60"]).options(&options).run_well()?;
    expect_eq("complete stacks of a program without them", share_whole(&recorded.profile, 60), 0.0)
}

fn no_callers(test: &Context<'_>) -> Verdict {
    let options = ["-v", "--call-graph", "none"];
    let recorded = test.record(&["shares", "600"]).options(&options).run_well()?;
    // An inlined function lies on the function that it is inlined into. That one is known without any
    // callers.
    let is_own = |frame: &&&Frame| frame.address >= 0 && frame.inline_depth == 0;
    let functions = |stack: &[&Frame]| stack.iter().filter(is_own).count();
    let deeper = recorded.profile.share_of_stacks(|stack| functions(stack) > 1);
    expect_eq("the share of stacks with callers", deeper, 0.0)?;
    let (found, requested) = (recorded.profile.self_share("alpha"), recorded.true_share("alpha")?);
    super::expect::expect_share("alpha itself", found, requested, recorded.profile.count())
}

fn stack_size(test: &Context<'_>) -> Verdict {
    let record = |size: &str| {
        let options = ["-v", "--call-graph", "dwarf", "--stack-size", size];
        test.record(&["recursion", "600", "150"]).options(&options).run_well()
    };
    let small = record("4096")?;
    let roots = small.profile.roots();
    expect_contains("stderr", &small.finished.stderr, "Copying 4 kB of each stack into")?;
    let cut = small.profile.share_of_stacks(|stack| {
        stack.first().is_some_and(|root| root.function == "(truncated: stack copy ended after 4 kB)")
    });
    expect_measured(cut > 0.9, format_args!("only {cut:.3} of the stacks are cut at 4 kB: {roots:?}"))?;
    let large = record("65528")?;
    let whole = share_whole(&large.profile, 150);
    expect_measured(whole > 0.9, format_args!("only {whole:.3} of the stacks are whole with 64 kB"))
}

fn stack_size_by_ptrace(test: &Context<'_>) -> Verdict {
    let options = ["--backend", "ptrace", "--stack-size", "4096"];
    let recorded = test.record(&["recursion", "600", "150"]).options(&options).run_well()?;
    let cut = recorded.profile.share_of_stacks(is_truncated);
    expect_measured(
        cut > 0.9,
        format_args!("only {cut:.3} of the stacks are cut: {:?}", recorded.profile.roots()),
    )
}

fn refused(test: &Context<'_>) -> Verdict {
    let cases: [(&[&str], &str); 6] = [
        (
            &["record", "--stack-size", "65529"],
            "'65529' for '--stack-size <BYTES>': not a whole number from 8 to 65528",
        ),
        (&["record", "--stack-size", "32k"], "invalid value '32k'"),
        (&["record", "--call-graph", "lbr"], "possible values: auto, fp, dwarf, none"),
        (&["record", "--call-graph", "fp", "--stack-size", "4096"], "leave out one of them"),
        (&["record", "--backend", "ptrace", "--call-graph", "fp"], "always found in copies of the stack"),
        (&["top", "--stack-size", "0"], "'0' for '--stack-size <BYTES>': not a whole number from 8 to 65528"),
    ];
    for (words, requested) in cases {
        let touched = test.fresh("touched");
        let finished = test.nyquist(words).args(&["touch"]).path(&touched).run()?;
        expect(finished.status.code() != Some(0), format_args!("{words:?} succeeded"))?;
        expect_contains("stderr", &finished.stderr, requested)?;
        expect(!touched.exists(), format_args!("{words:?}: the command was started"))?;
    }
    Ok(())
}
