//! Hard cases: very many threads, very short processes, reused ids, and code that is loaded and unloaded.

use std::fs;
use std::path::Path;

use super::by::{BOTH, By};
use super::context::Context;
use super::expect::{
    Stop, Verdict, expect, expect_eq, expect_measured, expect_share, expect_within, need_root, skip,
    tolerance,
};
use super::invocation::Invocation;
use super::profile::{Frame, Profile, Thread};
use super::recorded::Recorded;
use super::spare::watched;
use super::test::{SHARES, Test};
use crate::sys;

/// Why some of these tests run alone.
const HEAVY: &str = "starts compilers, very many processes or very many threads, which take all CPUs";

pub(super) const TESTS: &[Test] = &[
    Test::new("five_thousand_short_processes_are_counted", |test| storm(test, By::Best, &["vfork", "5000"]))
        .exclusive(HEAVY),
    Test::new("short_processes_that_never_exec_are_counted", |test| storm(test, By::Best, &["fork", "4000"]))
        .exclusive(HEAVY),
    Test::new("an_exec_storm_is_counted", |test| storm(test, By::Best, &["exec", "3000"])).exclusive(HEAVY),
    Test::new("by_ptrace_short_processes_are_counted", |test| storm(test, By::Ptrace, &["vfork", "600"]))
        .exclusive(HEAVY),
    Test::new("by_ptrace_short_forked_processes_are_counted", |test| {
        storm(test, By::Ptrace, &["fork", "600"])
    })
    .exclusive(HEAVY),
    Test::new("by_ptrace_an_exec_storm_is_counted", |test| storm(test, By::Ptrace, &["exec", "600"]))
        .exclusive(HEAVY),
    Test::new("a_shell_loop_has_the_time_of_its_commands", shell_loop).exclusive(HEAVY),
    Test::new("a_parallel_make_has_the_time_of_its_compilers", parallel_make).exclusive(HEAVY),
    Test::new("a_cargo_build_has_the_time_of_its_compilers", cargo_build).exclusive(HEAVY),
    Test::new("a_plain_user_is_warned_of_unsampled_tasks", unprivileged).exclusive(HEAVY),
    Test::new("five_hundred_threads_are_recorded", many_threads).exclusive(HEAVY),
    Test::new("a_number_used_again_is_another_process", pid_reuse).exclusive(HEAVY),
    Test::new("libraries_replacing_each_other_are_distinct", plugin_loop).in_pairs(SHARES),
    Test::new("a_program_closing_all_descriptors_is_recorded", closer).in_pairs(SHARES),
    Test::new("a_32_bit_program_is_named_as_not_unwound", bits32).in_pairs(SHARES),
    Test::new("a_stopped_and_continued_program_is_recorded", stopped).in_pairs(SHARES),
];

/// The backends for cases that are equally hard for both.
const BACKENDS: [&[&str]; 2] = [&[], BY_PTRACE];

const BY_PTRACE: &[&str] = &["--backend", "ptrace"];

/// Checks that the used CPU time, in seconds, is in the profile, whether or not it was sampled.
fn expect_time(profile: &Profile, used: f64) -> Verdict {
    expect_within("CPU milliseconds in the profile", profile.total(), used * 1000.0, 0.05)
}

/// Checks that the used CPU time, in seconds, was sampled.
fn expect_sampled(profile: &Profile, used: f64) -> Verdict {
    expect_within("CPU milliseconds by samples", profile.sampled(), used * 1000.0, 0.05)
}

/// Compares the CPU time of a process and all its children with its own truth.
fn storm(test: &Context<'_>, by: By, args: &[&str]) -> Verdict {
    if by == By::Best {
        need_root()?;
    }
    let args: Vec<&str> = ["storm"].iter().chain(args).copied().collect();
    let recording = test.record(&args).by(by);
    let watched = watched(|| recording.run_well())?;
    let recorded = &watched.result;
    let all = recorded.truth()?.part("all")?;
    let expect_ms = |found: f64| watched.expect_samples(found, all, 1000.0, 0.05);
    expect_ms(recorded.profile.total())?;
    if by == By::Best {
        expect_ms(recorded.profile.sampled())?;
    }
    // The names of all processes are known. No process has a number as its name.
    let nameless = recorded.profile.threads.iter().find(|thread| thread.process != "storm");
    expect(nameless.is_none(), format_args!("a process is named {:?}", nameless.map(|it| &it.process)))?;
    expect_ms(summary_seconds(recorded)? * 1000.0)?;
    // Sampling by the wall clock sees few of the processes that live for a millisecond. Their time is known,
    // but not their stacks.
    let work = recorded.profile.total_share("storm_work");
    expect_measured(
        work > 0.2 || by == By::Ptrace && args[1] != "exec",
        format_args!("storm_work has a share of {work:.3}"),
    )
}

/// The CPU time in the summary.
fn summary_seconds(recorded: &Recorded) -> Result<f64, Stop> {
    let stderr = &recorded.finished.stderr;
    let before = stderr.split_once(" s of CPU time").map(|(before, _)| before);
    let seconds = before.and_then(|before| before.rsplit(' ').next()?.parse().ok());
    seconds.ok_or_else(|| Stop::Failed(format!("the summary says no CPU time: {stderr}")))
}

/// Records a command that runs under a measuring program.
fn measured(test: &Context<'_>, command: &[&str]) -> Result<(Recorded, f64), anyhow::Error> {
    measured_with(test, command, &[])
}

fn measured_with(
    test: &Context<'_>,
    command: &[&str],
    options: &[&str],
) -> Result<(Recorded, f64), anyhow::Error> {
    let (measured, figures) = (test.workload("measured"), test.fresh("figures"));
    let (measured, path) = (measured.display().to_string(), figures.display().to_string());
    let args: Vec<&str> = [measured.as_str(), &path].into_iter().chain(command.iter().copied()).collect();
    let recorded = test.record_command(&args).options(options).run_well()?;
    Ok((recorded, cpu_seconds(&figures)?))
}

/// The CPU time of a command, as the measuring program has written it.
fn cpu_seconds(figures: &Path) -> Result<f64, anyhow::Error> {
    let figures: serde_json::Value = serde_json::from_str(&fs::read_to_string(figures)?)?;
    Ok(figures["cpu_ns"].as_f64().unwrap_or_default() / 1e9)
}

/// The minimum CPU time of a command, in seconds, for checks of how much of its time is in the profile.
const MIN_CPU_SECONDS: f64 = 5.0;

/// How often some work has to be repeated to take longer than [`MIN_CPU_SECONDS`] on this machine. It is computed from
/// the time of one part without a recording.
fn times_for_long(test: &Context<'_>, part: &[&str]) -> Result<usize, anyhow::Error> {
    let figures = test.fresh("figures");
    test.program(test.workload("measured")).path(&figures).args(part).run()?.succeeded()?;
    Ok((1.2 * MIN_CPU_SECONDS / cpu_seconds(&figures)?).ceil() as usize)
}

/// Checks that all CPU time of a long command was sampled.
fn expect_all_of_long(profile: &Profile, used: f64) -> Verdict {
    expect_measured(used >= MIN_CPU_SECONDS, format_args!("the command used only {used:.2} s of CPU time"))?;
    expect_sampled(profile, used)
}

fn shell_loop(test: &Context<'_>) -> Verdict {
    need_root()?;
    let script = "for i in $(seq $0); do /bin/true; done";
    let times = 200 * times_for_long(test, &["bash", "-c", script, "200"])?;
    let (recorded, used) = measured(test, &["bash", "-c", script, &times.to_string()])?;
    expect_all_of_long(&recorded.profile, used)?;
    let commands = recorded.profile.threads.iter().filter(|thread| thread.process == "true");
    let weight: f64 = commands.map(Thread::sampled).sum();
    let all = recorded.profile.total();
    expect_measured(weight > 0.4 * all, format_args!("{weight} of {all} samples are those of true"))
}

/// A source file that keeps a compiler busy for some tenths of a second.
fn source(number: usize) -> String {
    let function = |index: usize| {
        format!(
            "double f{number}_{index}(double *x, int n) {{ double s = {index}; for (int i = 1; i < n; i++) \
             {{ s += x[i] * x[i - 1] / (s + {index}.5); if (s > 1e{index}) s -= x[i]; }} return s; }}\n"
        )
    };
    (0..150).map(function).collect()
}

fn parallel_make(test: &Context<'_>) -> Verdict {
    need_root()?;
    let folder = test.path("project");
    fs::create_dir_all(&folder)?;
    let write = |number: usize| fs::write(folder.join(format!("f{number}.c")), source(number));
    write(0)?;
    let (first, trial) =
        (folder.join("f0.c").display().to_string(), test.path("trial.o").display().to_string());
    let files = times_for_long(test, &["gcc", "-O2", "-g", "-c", "-o", &trial, &first])?;
    (1..files).try_for_each(write)?;
    let objects: Vec<String> = (0..files).map(|number| format!("f{number}.o")).collect();
    let makefile = format!("all: {}\n\n%.o: %.c\n\tgcc -O2 -g -c -o $@ $<\n", objects.join(" "));
    fs::write(folder.join("Makefile"), makefile)?;
    let folder = folder.display().to_string();
    let (recorded, used) = measured(test, &["make", "-s", "-j2", "-C", &folder])?;
    expect_all_of_long(&recorded.profile, used)?;
    let compilers = recorded.profile.threads.iter().filter(|thread| thread.process == "cc1");
    expect_eq("compilers", compilers.count(), files)
}

fn cargo_build(test: &Context<'_>) -> Verdict {
    need_root()?;
    let folder = test.path("crates");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("Cargo.toml"), "[workspace]\nmembers = [\"built*\"]\nresolver = \"2\"\n")?;
    write_crate(&folder, 0)?;
    let manifest = folder.join("Cargo.toml").display().to_string();
    // The path comes from cargo's own variable, because a proxy of cargo may read settings from the home
    // folder.
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let rustc = Path::new(&cargo).with_file_name("rustc").display().to_string();
    let rustc = format!("RUSTC={rustc}");
    let build = ["env", &rustc, &cargo, "build", "-q", "--offline", "--manifest-path", &manifest];
    let trial = test.path("trial").display().to_string();
    let crates = times_for_long(test, &[&build[..], &["--target-dir", &trial]].concat())?;
    (1..crates).try_for_each(|number| write_crate(&folder, number))?;
    let (recorded, used) = measured(test, &build)?;
    expect_all_of_long(&recorded.profile, used)?;
    let names = recorded.profile.thread_names();
    let compilers =
        recorded.profile.threads.iter().filter(|thread| thread.is_main && thread.process == "rustc");
    expect(compilers.count() >= crates, format_args!("not {crates} of rustc among {names:?}"))
}

/// Writes a crate that keeps the compiler busy for about a second.
fn write_crate(folder: &Path, number: usize) -> std::io::Result<()> {
    let folder = folder.join(format!("built{number}"));
    fs::create_dir_all(folder.join("src"))?;
    let manifest = format!("[package]\nname = \"built{number}\"\nedition = \"2021\"\n");
    fs::write(folder.join("Cargo.toml"), manifest)?;
    let functions = (0..400).map(|number| {
        format!(
            "pub fn f{number}(words: &[String]) -> Vec<String> {{ let mut w: Vec<_> = words.iter().map(|w| \
             format!(\"{{w}}{number}\")).collect(); w.sort_by_key(|w| w.len() * {number}); w }}\n"
        )
    });
    fs::write(folder.join("src/lib.rs"), functions.collect::<String>())
}

/// Without the privilege, a short process has no sample, but its time is known.
fn unprivileged(test: &Context<'_>) -> Verdict {
    // The kernel closes a task's clocks before the task's end. On some virtual machines, 0.1 ms of the 1.5 ms
    // of a task that works once are never counted (`perf stat -e task-clock` misses as much). So each task
    // works ten times, and the period is ten times as long.
    const PERIOD_MS: f64 = 10.0;
    let _held = super::permissions::at_paranoid(1)?;
    let recorded = test
        .record(&["storm", "vfork", "300", "10"])
        .options(&["--rate", "100"])
        .by_plain_user()
        .run_well()?;
    let used_ms = recorded.truth()?.part("all")? * 1000.0;
    expect_within("CPU milliseconds by samples", recorded.profile.total() * PERIOD_MS, used_ms, 0.05)?;
    let share = recorded.profile.total_share("[not sampled]");
    expect_measured(share > 0.1, format_args!("[not sampled] has a share of {share:.3}"))?;
    let text = &recorded.finished.stderr;
    let printed = text.split_once("not sampled ").and_then(|(_, rest)| rest.split_once('%'));
    let Some(printed) = printed.and_then(|(percent, _)| percent.parse::<f64>().ok()) else {
        return expect(false, format_args!("the summary does not say so: {text}"));
    };
    let is_so = (printed / 100.0 - share).abs() < 0.001;
    expect(is_so, format_args!("the summary says that {printed} % are not sampled, not {share:.4}: {text}"))
}

/// All time is in the profile, and root has samples of all of it. Without the privilege, the recorder is one
/// of hundreds of threads. So the kernel drops samples before they are read, and the tracer sees little.
fn many_threads(test: &Context<'_>) -> Verdict {
    for (by, is_plain) in [(By::Best, false), (By::Best, true), (By::Ptrace, true)] {
        let _held = super::permissions::at_paranoid(2)?;
        let recording = test.record(&["pool", "6", "500"]).by(by);
        let recording = if is_plain { recording.by_plain_user() } else { recording };
        let recorded = recording.run_well()?;
        let (profile, used) = (&recorded.profile, recorded.truth()?.cpu);
        expect_time(profile, used)?;
        let known = profile.threads.iter().filter(|thread| thread.total() > 0.0).count();
        expect_measured(known >= 500, format_args!("{by:?}: only {known} of 500 threads have any time"))?;
        let samples = profile.equal_count();
        if !is_plain && sys::is_root() {
            expect_sampled(profile, used)?;
            let at_work = profile.threads.iter().filter(|thread| has(thread, "pool_work")).count();
            expect_measured(at_work >= 500, format_args!("only {at_work} of 500 threads are seen at work"))?;
        }
        let (found, least) = (profile.share_of_taken("pool_work"), 0.9 - tolerance(0.9, samples));
        expect_measured(
            found > least,
            format_args!("{by:?}: pool_work has {found:.3} of {samples:.0} samples, not {least:.3}"),
        )?;
    }
    Ok(())
}

/// Whether a thread has a sample in a function.
fn has(thread: &Thread, function: &str) -> bool {
    thread.stacks().any(|(stack, _)| stack.iter().any(|frame| frame.function == function))
}

fn pid_reuse(test: &Context<'_>) -> Verdict {
    need_root()?;
    for backend in BACKENDS {
        number_used_again(&test.record(&["pid_reuse", "400"]).options(backend).run_well()?)?;
    }
    Ok(())
}

fn number_used_again(recorded: &Recorded) -> Verdict {
    let (first, second) = (recorded.truth_of("first")?, recorded.truth_of("second")?);
    expect_eq("the second's number", second.pid, first.pid)?;
    let lives = [
        ("first_life", "second_life", first.pid.to_string()),
        ("second_life", "first_life", format!("{}.1", first.pid)),
    ];
    for (function, others, pid) in lives {
        let thread = recorded.profile.threads.iter().find(|thread| thread.pid == pid);
        let stacks = thread.into_iter().flat_map(Thread::stacks);
        let (mut own, mut all) = (0.0, 0.0);
        for (stack, weight) in stacks {
            let has = |function: &str| stack.iter().any(|frame| frame.function == function);
            expect(!has(others), format_args!("process {pid} has a sample of {others}"))?;
            all += weight;
            own += if has(function) { weight } else { 0.0 };
        }
        expect_measured(own > 350.0, format_args!("{function} has {own} samples of {all} in process {pid}"))?;
    }
    Ok(())
}

fn plugin_loop(test: &Context<'_>) -> Verdict {
    let libraries = ["libplugin.so", "libother.so"].map(|name| test.workload(name).display().to_string());
    let [first, second] = &libraries;
    // By ptrace the test is repeated, because it is random whether a sample falls into a swap of the
    // libraries.
    for backend in [&[][..], BY_PTRACE, BY_PTRACE, BY_PTRACE] {
        let recorded = test.record(&["plugin_loop", "900", first, second]).options(backend).run_well()?;
        let profile = &recorded.profile;
        for (function, lib) in [("plugin_inner", "libplugin.so"), ("other_inner", "libother.so")] {
            let (found, expected) = (profile.total_share(function), recorded.true_share(function)?);
            expect_share(function, found, expected, profile.equal_count())?;
            let frame = profile.frame_of(|frame| frame.function == function);
            expect_eq("its lib", frame.and_then(|frame| frame.lib), Some(lib.to_owned()))?;
        }
        let wrong = profile.share_of_stacks(|stack| {
            let has = |function: &str| stack.iter().any(|frame| frame.function == function);
            has("visit_plugin") && has("other_inner") || has("visit_other") && has("plugin_inner")
        });
        // By ptrace, the first removal of a library is not expected, so a few samples may be wrong.
        let allowed = if backend == BY_PTRACE { 0.01 } else { 0.0 };
        expect_measured(
            wrong <= allowed,
            format_args!("{wrong:.4} of the samples are in the library that the other has called"),
        )?;
    }
    Ok(())
}

fn closer(test: &Context<'_>) -> Verdict {
    for adapt in [|call| call, Invocation::by_plain_user] {
        for backend in BACKENDS {
            let _held = super::permissions::at_paranoid(2)?;
            let recorded = test.record(&["closer", "400"]).options(backend).with(adapt).run_well()?;
            let expected = recorded.true_share("work_without_files")?;
            let profile = &recorded.profile;
            expect_share(
                "its work",
                profile.total_share("work_without_files"),
                expected,
                profile.equal_count(),
            )?;
        }
    }
    Ok(())
}

/// A stack consists of its innermost function, below a root that says why there is no more.
fn bits32(test: &Context<'_>) -> Verdict {
    let program = test.workload("bits32");
    if test.program(&program).run().is_err() {
        return skip("the kernel runs no 32-bit programs");
    }
    let program = program.display().to_string();
    for (options, tolerance) in [(&[][..], 0.05), (&["--backend", "ptrace"], 0.1)] {
        let (recorded, used) = measured_with(test, &[&program], options)?;
        let own = || recorded.profile.threads.iter().filter(|thread| thread.process == "bits32");
        let weight: f64 = own().map(Thread::total).sum();
        expect_within("samples of the 32-bit program", weight, used * 1000.0, tolerance)?;
        let named = |root: &str| root == "(truncated: 32-bit code is not unwound)";
        let in_user = |function: &str| ["bits32_work", "bits32_wait", "_start"].contains(&function);
        // Between its fork and its exec, the process runs the 64-bit program that measures it.
        let before_exec =
            |stack: &[&Frame]| stack.iter().any(|frame| frame.lib.as_deref() == Some("measured"));
        let misread = own().flat_map(Thread::stacks).find(|(stack, _)| {
            let names: Vec<&str> = stack.iter().map(|frame| frame.function.as_str()).collect();
            // By ptrace, a thread may be ready to run without having a CPU.
            let is_code =
                |frame: &Frame| frame.category != "Kernel" && frame.function != "[waiting for a CPU]";
            let is_user = |frame: &&&Frame| is_code(frame) && frame.inline_depth == 0;
            let user = stack.iter().filter(is_user).count();
            // While the kernel starts or ends the process, there is no user code. The rest of an interval has
            // no stack.
            user > 0
                && names != ["[not sampled]"]
                && !before_exec(stack)
                && !(user == 2 && named(names[0]) && in_user(names[1]))
        });
        let misread =
            misread.map(|(stack, _)| stack.iter().map(|frame| frame.function.clone()).collect::<Vec<_>>());
        expect(misread.is_none(), format_args!("{options:?}: a stack is {misread:?}"))?;
    }
    Ok(())
}

fn stopped(test: &Context<'_>) -> Verdict {
    let program = test.workload("shares").display().to_string();
    // It stays stopped for 0.3 s, which must not be in the profile.
    let stops = "until [ -e $WORKLOAD_READY ]; do sleep 0.01; done; kill -STOP $!; sleep 0.3; kill -CONT $!";
    let script = format!("{program} 700 & {stops}; wait $!");
    for by in BOTH {
        let ready = test.fresh("ready").display().to_string();
        let recording = test.record_command(&["bash", "-c", &script]);
        let recording = recording.with(move |call| call.env("WORKLOAD_READY", ready.clone()));
        let recorded = recording.by(by).run_well()?;
        let own = recorded.profile.threads.iter().filter(|thread| thread.process == "shares");
        let weight: f64 = own.map(Thread::total).sum();
        expect_within("samples of the stopped program", weight, recorded.truth()?.cpu * 1000.0, 0.05)?;
        nothing_left_behind(test.workload("shares").as_path())?;
    }
    Ok(())
}

/// Checks that no process runs this program any more.
fn nothing_left_behind(program: &Path) -> Verdict {
    let entries = fs::read_dir("/proc")?.flatten();
    let mut programs = entries.filter_map(|entry| fs::read_link(entry.path().join("exe")).ok());
    expect(programs.all(|other| other != program), "the program runs on")
}
