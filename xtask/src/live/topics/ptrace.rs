//! Recording by ptrace where `perf_event_open` is refused, as in containers. The recorded program must not
//! notice it.

use std::fs;

use super::by::refused;
use super::context::Context;
use super::expect::{
    Stop, Verdict, expect, expect_contains, expect_eq, expect_measured, expect_share, expect_within,
};
use super::profile::{Profile, Thread};
use super::recorded::{Recorded, Recording};
use super::recording::expect_named_in_fork_tree;
use super::rules;
use super::running_targets::is_alive;
use super::test::{SHARES, Test};
use crate::holds::Holds;
use crate::sys;

pub(super) const TESTS: &[Test] = &[
    Test::new("a_refused_perf_event_open_leaves_shares_right", falls_back).quick().in_pairs(SHARES),
    Test::new("a_plain_user_is_recorded_too", plain_user).quick().in_pairs(SHARES),
    Test::new("other_refusals_are_no_error_either", other_refusals).in_pairs(SHARES),
    Test::new("the_chosen_backend_is_taken_or_says_why_not", chosen_backend),
    Test::new("chosen_cpus_are_refused_before_the_command", chosen_cpus),
    Test::new("what_the_command_leaves_running_is_said", left_running),
    Test::new("threads_have_their_names_and_shares", threads).quick().in_pairs(SHARES),
    Test::new("each_process_of_a_fork_tree_has_its_share", fork_tree).quick().in_pairs(SHARES),
    Test::new("weights_agree_with_the_cpu_time_used", weights).in_pairs(SHARES),
    Test::new("stacks_go_to_their_roots", stacks).in_pairs(SHARES),
    Test::new("a_library_that_is_loaded_late_has_names", late_library).in_pairs(SHARES),
    Test::new("waiting_is_distinguished_from_running", idle_and_running).quick().in_pairs(SHARES),
    Test::new("a_program_that_waits_sees_no_interrupted_call", no_interrupted_calls).quick().in_pairs(SHARES),
    Test::new("ignored_signals_end_no_call", ignored_signals).quick().in_pairs(SHARES),
    Test::new("exit_statuses_are_the_commands", exit_statuses).quick(),
    Test::new("a_command_that_cannot_be_run_is_an_error", cannot_run),
    Test::new("ctrl_c_lets_the_command_save_its_work", ctrl_c).quick().in_pairs(SHARES),
    Test::new("sigterm_saves_the_profile", terminated).in_pairs(SHARES),
    Test::new("a_stopped_program_stays_so_until_continued", job_control).quick().in_pairs(SHARES),
    Test::new("exec_of_every_kind_keeps_the_count", exec_chain).in_pairs(SHARES),
    Test::new("programs_that_soon_call_exec_have_callers", short_programs).in_pairs(SHARES),
    Test::new("vfork_and_short_processes_are_counted", short_processes).in_pairs(SHARES),
];

/// A recording under the filter that refuses `perf_event_open`.
fn denied<'a>(recording: Recording<'a>, test: &'a Context<'a>) -> Recording<'a> {
    recording.with(move |call| refused(test, call))
}

/// The same recording by ptrace and by the best backend. The program must see no difference.
pub(super) fn by_both<'a>(
    test: &'a Context<'a>,
    recording: impl Fn() -> Recording<'a>,
) -> [(&'static str, Recording<'a>); 2] {
    [("by ptrace", denied(recording(), test)), ("as well as it can be", recording())]
}

pub(super) fn record<'a>(test: &'a Context<'a>, args: &[&str]) -> Recording<'a> {
    denied(test.record(args), test)
}

pub(super) fn expect_shares(recorded: &Recorded) -> Verdict {
    for function in ["alpha", "beta", "gamma_"] {
        let (found, expected) = (recorded.profile.total_share(function), recorded.true_share(function)?);
        expect_share(function, found, expected, recorded.profile.equal_count())?;
    }
    Ok(())
}

fn falls_back(test: &Context<'_>) -> Verdict {
    let recorded = record(test, &["shares", "2000"]).options(&["-v"]).run_well()?;
    expect_shares(&recorded)?;
    let stderr = &recorded.finished.stderr;
    for part in ["by ptrace", "perf_event_open is refused", "--cap-add=PERFMON"] {
        expect_contains("stderr", stderr, part)?;
    }
    expect(Holds::parse(stderr)?.count > 0.0, "no thread was held")?;
    let broken = rules::broken(&recorded.profile.json);
    expect(broken.is_empty(), broken.join("; "))
}

fn plain_user(test: &Context<'_>) -> Verdict {
    let recorded = record(test, &["shares", "1000"]).by_plain_user().run_well()?;
    expect_shares(&recorded)?;
    expect_contains("stderr", &recorded.finished.stderr, "by ptrace")
}

/// `perf_event_paranoid` of 3 and above leads to EACCES, and a kernel without perf events to ENOSYS.
fn other_refusals(test: &Context<'_>) -> Verdict {
    for error in [libc::EACCES, libc::ENOSYS] {
        let filter = test.workload("deny_perf").display().to_string();
        let error = format!("-{error}");
        let recorded =
            test.record(&["shares", "300"]).with(move |call| call.under(&[&filter, &error])).run_well()?;
        expect_contains("stderr", &recorded.finished.stderr, "by ptrace")?;
        expect_measured(recorded.profile.total_share("alpha") > 0.3, "alpha is missing")?;
    }
    Ok(())
}

fn chosen_backend(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "300"]).options(&["--backend", "ptrace"]).run_well()?;
    expect_contains("stderr", &recorded.finished.stderr, "by ptrace")?;
    expect_measured(recorded.profile.total_share("alpha") > 0.3, "alpha is missing")?;
    let ran = test.path("it-ran");
    let command = ["touch", &ran.display().to_string()];
    let refused =
        denied(test.record_command(&command).options(&["--backend", "perf"]), test).prepare().call.run()?;
    expect_eq("the status", refused.code(), 1)?;
    expect_contains("stderr", &refused.stderr, "perf_event_open is refused")?;
    expect(!ran.exists(), "the command was started")?;
    let unknown = test.nyquist(&["record", "--backend", "dtrace", "true"]).run()?;
    expect_eq("the status", unknown.code(), 2)?;
    expect_contains("stderr", &unknown.stderr, "possible values: auto, perf, ptrace")
}

/// A recording of some CPUs must not contain other CPUs.
fn chosen_cpus(test: &Context<'_>) -> Verdict {
    for (is_refused, cpu, says) in [
        (false, "0", &["--cpu cannot be used with ptrace", "hint: ", "taskset -c"][..]),
        (
            true,
            "0",
            &[
                "perf_event_open is refused",
                "--cpu cannot be used with ptrace",
                "hint: ",
                "--cap-add=PERFMON",
            ],
        ),
        (false, "4095", &["there is no CPU 4095"]),
        (true, "4095", &["there is no CPU 4095"]),
    ] {
        let ran = test.fresh("it-ran");
        let recording = test.record_command(&["touch", &ran.display().to_string()]).options(&["--cpu", cpu]);
        let recording =
            if is_refused { denied(recording, test) } else { recording.options(&["--backend", "ptrace"]) };
        let finished = recording.prepare().call.run()?;
        expect_eq("the status", finished.code(), 1)?;
        for part in says {
            expect_contains("stderr", &finished.stderr, part)?;
        }
        let errors = finished.stderr.lines().filter(|line| line.starts_with("error: ")).count();
        expect_eq("sentences", errors, 1)?;
        expect(!ran.exists(), "the command was started")?;
    }
    Ok(())
}

fn left_running(test: &Context<'_>) -> Verdict {
    for (script, runs_on) in
        [("sleep 1000 >/dev/null 2>&1 & echo $!", true), ("sleep 0.1 & wait; echo $$", false)]
    {
        let recorded = denied(test.record_command(&["sh", "-c", script]), test).run_well()?;
        let pid: u32 = recorded.finished.stdout_text().trim().parse()?;
        expect_eq("whether it runs on", is_alive(pid), runs_on)?;
        let stderr = &recorded.finished.stderr;
        let is_said = stderr.contains("are still running, and are no longer recorded");
        expect(is_said == runs_on, format_args!("it is said, or not: {stderr}"))?;
    }
    Ok(())
}

fn threads(test: &Context<'_>) -> Verdict {
    let recorded = record(test, &["threads", "2000"]).run_well()?;
    let profile = &recorded.profile;
    for name in ["worker-half", "worker-third"] {
        let weight: f64 = profile.threads_named(name).map(Thread::total).sum();
        expect_share(name, weight / profile.total(), recorded.true_share(name)?, profile.equal_count())?;
    }
    Ok(())
}

fn fork_tree(test: &Context<'_>) -> Verdict {
    let recorded = record(test, &["fork_tree", "2000"]).run_well()?;
    let profile = &recorded.profile;
    let all: f64 = recorded.truths.iter().map(|truth| truth.cpu).sum();
    expect_eq("processes that wrote their truth", recorded.truths.len(), 4)?;
    for truth in &recorded.truths {
        let own = profile.threads.iter().filter(|thread| thread.pid == truth.pid.to_string());
        let weight: f64 = own.map(Thread::total).sum();
        expect_share(&truth.program, weight / profile.total(), truth.cpu / all, profile.total())?;
        expect_named_in_fork_tree(profile, &truth.program)?;
    }
    Ok(())
}

fn weights(test: &Context<'_>) -> Verdict {
    for args in [&["shares", "3000"][..], &["threads", "2000"], &["churn", "3000"], &["ticks", "2000"]] {
        let recorded = record(test, args).run_well()?;
        let cpu = recorded.truth()?.cpu;
        expect_within(&format!("weight of {args:?}"), recorded.profile.total(), cpu * 1000.0, 0.02)?;
    }
    Ok(())
}

/// The share of the samples with whole stacks that contain a function. If a thread waits for a CPU at its
/// end, some of its time was not observed, and does not count.
pub(super) fn whole_share(profile: &Profile, function: &str) -> f64 {
    let whole = profile.share_of_stacks(|stack| {
        let names: Vec<&str> = stack.iter().map(|frame| frame.function.as_str()).collect();
        let root = names.first().is_some_and(|root| ["_start", "clone3"].contains(root));
        root && names.contains(&function)
    });
    whole / (1.0 - profile.total_share("[not sampled]"))
}

fn stacks(test: &Context<'_>) -> Verdict {
    for (workload, function) in [("shares", "middle"), ("shares-fp", "middle"), ("shares-static", "middle")] {
        let recorded = record(test, &[workload, "500"]).run_well()?;
        let whole = whole_share(&recorded.profile, function);
        expect_measured(
            whole > 0.97,
            format_args!("{workload}: {whole:.3} of the stacks are whole: {:?}", recorded.profile.roots()),
        )?;
    }
    // The recursion is deeper than the part of the stack that is copied first.
    let recorded = record(test, &["recursion", "300"]).run_well()?;
    let roots = recorded.profile.roots();
    let cut: f64 =
        roots.iter().filter(|(root, _)| root.contains("truncated")).map(|(_, weight)| weight).sum();
    expect_measured(cut < 0.02 * recorded.profile.total(), format_args!("cut stacks: {roots:?}"))
}

fn late_library(test: &Context<'_>) -> Verdict {
    let plugin = test.workload("libplugin.so").display().to_string();
    // A short run loads and unloads the library between two readings of the mappings.
    for ms in ["600", "60", "60", "60"] {
        let recorded = record(test, &["plugin_host", ms, &plugin]).run_well()?;
        let (found, expected) =
            (recorded.profile.total_share("plugin_inner"), recorded.true_share("plugin_inner")?);
        expect_share("plugin_inner", found, expected, recorded.profile.equal_count())?;
        let whole = whole_share(&recorded.profile, "plugin_inner");
        let roots = recorded.profile.roots();
        expect_measured(whole > 0.95, format_args!("{whole:.3} of the stacks are whole: {roots:?}"))?;
    }
    Ok(())
}

/// The milliseconds that threads have waited, according to the samples.
fn waited_ms(profile: &Profile) -> f64 {
    let threads = profile.json["threads"].as_array().into_iter().flatten();
    let columns = threads.filter_map(|thread| thread["samples"]["nyquistOffCpuWeight"].as_array());
    columns.flatten().filter_map(serde_json::Value::as_f64).sum()
}

fn idle_and_running(test: &Context<'_>) -> Verdict {
    let program = test.workload("shares").display().to_string();
    let script = format!("{program} 500; sleep 1");
    let recorded = denied(test.record_command(&["sh", "-c", &script]), test).run_well()?;
    let cpu = recorded.truth()?.cpu * 1000.0;
    // A waiting thread has no weight of CPU time.
    expect_within("running", recorded.profile.total(), cpu, 0.05)?;
    let waited = waited_ms(&recorded.profile);
    // The shell waits for both programs, and sleep waits itself. On a busy machine they also wait for the
    // CPU.
    let (expected, most) = (2.0 * 1000.0 + cpu, 3.0 * recorded.finished.took.as_secs_f64() * 1000.0);
    let is_due = (expected * 0.95..most).contains(&waited);
    expect_measured(is_due, format_args!("{waited} ms of waiting, not {expected}"))?;
    let sleeping = recorded.profile.threads.iter().find(|thread| thread.process == "sleep");
    let sleeps = sleeping.is_some_and(|thread| {
        thread.stacks().any(|(stack, _)| stack.iter().any(|frame| frame.function.contains("nanosleep")))
    });
    expect(sleeps, "sleep was not seen to wait in nanosleep")
}

/// Runs at a high rate, so that threads are often requested to stop just when they begin to wait.
fn expect_undisturbed(test: &Context<'_>, args: &[&str]) -> Verdict {
    for _ in 0..3 {
        let recorded = record(test, args).options(&["-r", "10000"]).run_well()?;
        let output = recorded.finished.stdout_text();
        expect_contains("what the program says", &output, " 0 interrupted, 0 early")?;
    }
    Ok(())
}

fn no_interrupted_calls(test: &Context<'_>) -> Verdict {
    expect_undisturbed(test, &["interrupts", "1500"])
}

fn ignored_signals(test: &Context<'_>) -> Verdict {
    expect_undisturbed(test, &["interrupts", "600", "signals"])
}

fn exit_statuses(test: &Context<'_>) -> Verdict {
    for code in [0, 1, 255] {
        let recorded = record(test, &["ending", "200", "exit", &code.to_string()]).run()?;
        expect_eq("the status", recorded.finished.code(), code)?;
    }
    for signal in [libc::SIGSEGV, libc::SIGKILL, libc::SIGTERM, libc::SIGABRT] {
        let recorded = record(test, &["ending", "200", "signal", &signal.to_string()]).run()?;
        expect_eq("the status", recorded.finished.code(), 128 + signal)?;
        expect_measured(
            recorded.profile.total_share("last_words") > 0.5,
            "what ran before the signal is missing",
        )?;
    }
    Ok(())
}

fn cannot_run(test: &Context<'_>) -> Verdict {
    let (missing, folder) = ("no-such-command", "");
    for (name, status) in [(missing, 127), (folder, 126)] {
        let command = &test.path(name).display().to_string();
        let finished = denied(test.record_command(&[command]), test).prepare().call.run()?;
        expect_eq("the status", finished.code(), status)?;
        expect_contains("stderr", &finished.stderr, command)?;
    }
    Ok(())
}

fn ctrl_c(test: &Context<'_>) -> Verdict {
    let (saved, ready) = (test.path("work-of-the-command"), test.path("ready"));
    let prepared = record(test, &["waits", "save", &saved.display().to_string()]).prepare();
    let call = prepared.call.env("WORKLOAD_READY", ready.display().to_string());
    let mut running = call.on_terminal().start()?;
    running.wait_for_file(&ready)?;
    running.press_ctrl_c()?;
    expect_eq("the status, the handler's own", running.wait()?.code(), 3)?;
    expect_eq("what the handler saved", fs::read_to_string(&saved)?, "saved\n".to_owned())?;
    expect_measured(
        Profile::read(&prepared.profile)?.share_of_taken("before_waiting") > 0.8,
        "before_waiting is missing",
    )
}

fn terminated(test: &Context<'_>) -> Verdict {
    let ready = test.path("ready");
    let prepared = record(test, &["waits", "default"]).prepare();
    let running = prepared.call.env("WORKLOAD_READY", ready.display().to_string()).start()?;
    running.wait_for_file(&ready)?;
    running.signal(libc::SIGTERM)?;
    expect_eq("the status", running.wait()?.code(), 128 + libc::SIGTERM)?;
    expect_measured(
        Profile::read(&prepared.profile)?.share_of_taken("before_waiting") > 0.8,
        "before_waiting is missing",
    )
}

/// The state of a process in its `stat` file. T and t mean stopped.
pub(super) fn state(pid: u32) -> char {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()).unwrap_or('?')
}

/// The children of all threads of a process, without those by which nyquist accesses its targets' files and memory.
pub(super) fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let parsed = |list: String| {
        list.split_ascii_whitespace().filter_map(|child| child.parse().ok()).collect::<Vec<_>>()
    };
    lists.flat_map(parsed).filter(|child| !is_delegate(pid, *child)).collect()
}

/// nyquist records no nyquist here. A delegate has the recorder's arguments until it gets a CPU and calls exec.
fn is_delegate(parent: u32, child: u32) -> bool {
    let is_nyquist = |pid: u32| {
        let program = fs::read_link(format!("/proc/{pid}/exe"));
        program.is_ok_and(|program| program.file_name() == Some("nyquist".as_ref()))
    };
    is_nyquist(parent) && is_nyquist(child)
}

pub(super) fn cpu_time(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
    text.split(' ').next().and_then(|time| time.parse().ok()).unwrap_or_default()
}

/// The CPU time of the thread that has used the least.
pub(super) fn least_cpu_time(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let times = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).map(cpu_time);
    times.min().unwrap_or_default()
}

/// Whether a program has stopped for longer than a sample takes. Its state says that it has stopped in both cases.
pub(super) fn has_stopped(pid: u32) -> bool {
    let before = cpu_time(pid);
    // Far longer than a sample takes.
    std::thread::sleep(std::time::Duration::from_millis(20));
    "Tt".contains(state(pid)) && cpu_time(pid) == before
}

/// The CPU time that a program may use while it stops. The kernel needs it to stop the program.
pub(super) const STOPPING_NS: u64 = 2_000_000;

fn job_control(test: &Context<'_>) -> Verdict {
    let ready = test.path("ready");
    let prepared = record(test, &["shares", "1500"]).prepare();
    let call = prepared.call.env("WORKLOAD_READY", ready.display().to_string());
    let running = call.start()?;
    running.wait_for_file(&ready)?;
    let program = *children(running.pid()).first().ok_or_else(|| Stop::Failed("no child".into()))?;
    for stop in [libc::SIGSTOP, libc::SIGTSTP] {
        sys::signal_process(program, stop)?;
        running.wait_until("the program to stop", || has_stopped(program))?;
        let before = cpu_time(program);
        // The program is to stay stopped for this time.
        std::thread::sleep(std::time::Duration::from_millis(100));
        expect("Tt".contains(state(program)), format_args!("it goes on: {}", state(program)))?;
        let used = cpu_time(program) - before;
        expect_measured(used < STOPPING_NS, format_args!("it used {used} ns of CPU time while stopped"))?;
        sys::signal_process(program, libc::SIGCONT)?;
        running.wait_until("the program to go on", || cpu_time(program) > before + STOPPING_NS)?;
    }
    let finished = running.wait()?.succeeded()?;
    let recorded = Recorded::read(finished, &prepared.profile, &prepared.truth)?;
    expect_shares(&recorded)
}

fn exec_chain(test: &Context<'_>) -> Verdict {
    let (step, last) = (test.workload("exec_step"), test.workload("shares"));
    let script = format!("exec {} 200 {} 200 {} 400", step.display(), step.display(), last.display());
    let recorded = denied(test.record_command(&["sh", "-c", &script]), test).run_well()?;
    let profile = &recorded.profile;
    // The clock of the last program has counted the CPU time of all programs.
    let used = recorded.truth_of("shares")?.cpu;
    let before = 2.0 * recorded.truth_of("exec_step")?.part("before_exec")? / used;
    expect_share("before_exec, both", profile.total_share("before_exec"), before, profile.equal_count())?;
    expect_within("all", profile.total(), used * 1000.0, 0.04)?;
    // A thread that is not the main one calls exec. Its time and the main thread's time belong to the
    // process.
    let recorded = record(test, &["thread_exec", "300", &last.display().to_string(), "300"]).run_well()?;
    let used = recorded.truth_of("shares")?.cpu;
    expect_within("with exec by another thread", recorded.profile.total(), used * 1000.0, 0.04)?;
    for function in ["before_exec", "alpha"] {
        expect_measured(recorded.profile.total_share(function) > 0.2, format_args!("{function} is missing"))?;
    }
    Ok(())
}

/// Each program maps its libraries after its mappings were read, and ends before they are read again.
fn short_programs(test: &Context<'_>) -> Verdict {
    const PROGRAMS: usize = 100;
    let step = test.workload("exec_step").display().to_string();
    let args = [&*step, "4"].repeat(PROGRAMS);
    let recorded = denied(test.record_command(&args), test).run_well()?;
    let profile = &recorded.profile;
    let (burned, under_main) = (
        profile.share_of_taken("before_exec"),
        profile.of_taken(profile.share_of_stacks(|stack| {
            stack.iter().any(|frame| frame.function == "before_exec")
                && stack.iter().any(|frame| frame.function.starts_with("__libc_start_call_main"))
        })),
    );
    expect_measured(
        burned > 0.3 && under_main > 0.9 * burned,
        format_args!("before_exec has {burned:.3}, and {under_main:.3} with the caller of main"),
    )
}

fn short_processes(test: &Context<'_>) -> Verdict {
    let script = "import subprocess, resource\n\
                  for i in range(150): subprocess.run(['/bin/true'])\n\
                  for i in range(50): subprocess.run(['/bin/true'], preexec_fn=lambda: None)\n\
                  own, all = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))\n\
                  print(sum(usage.ru_utime + usage.ru_stime for usage in (own, all)))";
    let recorded = denied(test.record_command(&["python3", "-c", script]), test).run_well()?;
    let used: f64 = recorded.finished.stdout_text().trim().parse()?;
    let found = recorded.profile.total() / 1000.0;
    // CPU time before the program's exec and after the end of a process is not the program's own.
    expect_within("CPU seconds of 200 short processes", found, used, 0.15)
}
