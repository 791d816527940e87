//! `nyquist doctor` and `nyquist setup`: they find deficiencies of the machine, a program or a process. Only
//! confirmed changes are made.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq, expect_measured, need_root};
use super::invocation::{Finished, Invocation, Running};
use super::json_docs::Documents;
use super::paranoid::{self, Paranoid};
use super::permissions::{at_paranoid, is_kernel_code};
use super::recorded::Recorded;
use super::test::Test;

/// Why some of these tests run alone.
const SETTINGS: &str = "changes settings of the kernel, or compares them";

pub(super) const TESTS: &[Test] = &[
    Test::new("root_lacks_no_permission", root).quick(),
    Test::new("a_plain_user_hears_what_would_allow_more", plain_user).quick(),
    Test::new("at_paranoid_1_the_setting_is_fine", at_1).exclusive(SETTINGS),
    Test::new("a_refused_perf_event_open_is_found_out", refused),
    Test::new("a_programs_names_have_their_source", names).quick(),
    Test::new("frame_pointers_are_counted", frame_pointers),
    Test::new("a_debug_file_is_found_and_its_search_shown", debug_file),
    Test::new("a_running_process_is_looked_at", process).quick(),
    Test::new("a_process_in_another_root_has_its_own_files", own_root),
    Test::new("another_users_process_cannot_be_recorded", foreign),
    Test::new("what_is_not_there_is_an_error", missing),
    Test::new("doctors_json_is_documented", json),
    Test::new("setup_changes_nothing_without_leave", no_leave).quick().exclusive(SETTINGS),
    Test::new("setup_changes_the_settings_until_a_restart", set_up).quick().exclusive(SETTINGS),
    Test::new("setup_asks_on_a_terminal_and_obeys_the_answer", terminal).exclusive(SETTINGS),
    Test::new("setup_makes_the_settings_last", lasting).exclusive(SETTINGS),
    Test::new("setup_gives_capabilities_if_requested", capabilities).quick().exclusive(SETTINGS),
];

/// The output of a check that finds that recording is possible.
fn doctor(call: Invocation<'_>, options: &[&str]) -> Result<String, anyhow::Error> {
    Ok(call.args(options).run()?.succeeded()?.stdout_text())
}

fn of_file(test: &Context<'_>, path: &Path, options: &[&str]) -> Result<String, anyhow::Error> {
    doctor(test.nyquist(&["doctor"]).path(path), options)
}

fn root(test: &Context<'_>) -> Verdict {
    need_root()?;
    let output = doctor(test.nyquist(&["doctor"]), &[])?;
    for part in ["user and kernel code", "every process can be recorded", "ptrace: works"] {
        expect_contains("messages", &output, part)?;
    }
    expect(!output.contains("problem"), format_args!("root has a problem: {output}"))
}

fn plain_user(test: &Context<'_>) -> Verdict {
    let _held = at_paranoid(2)?;
    let output = doctor(test.nyquist(&["doctor"]).by_plain_user(), &[])?;
    for part in ["user code only", "neither root nor", "hint: sudo sysctl kernel.perf_event_paranoid=1"] {
        expect_contains("messages", &output, part)?;
    }
    Ok(())
}

fn at_1(test: &Context<'_>) -> Verdict {
    let _held = at_paranoid(1)?;
    let output = doctor(test.nyquist(&["doctor"]).by_plain_user(), &[])?;
    expect_contains("messages", &output, "ok       kernel.perf_event_paranoid is 1")?;
    expect_contains("messages", &output, "user and kernel code")
}

fn refused(test: &Context<'_>) -> Verdict {
    let filter = test.workload("deny_perf").display().to_string();
    let output = doctor(test.nyquist(&["doctor"]).under(&[&filter]), &[])?;
    for part in ["traces programs", "problem  perf: perf_event_open is refused", "--cap-add=PERFMON"] {
        expect_contains("messages", &output, part)?;
    }
    Ok(())
}

fn names(test: &Context<'_>) -> Verdict {
    let output = of_file(test, &test.workload("shares"), &[])?;
    expect_contains(
        "of the whole program",
        &output,
        "ok       names, lines and inlined calls from its debug info",
    )?;
    expect_contains("of the whole program", &output, "(.eh_frame of ")?;
    expect_contains("of its libraries", &output, "libc.so.6")?;
    let output = of_file(test, &test.workload("shares-stripped"), &[])?;
    expect_contains("of the stripped program", &output, "better   stripped: only exported functions")?;
    expect_contains("of the stripped program", &output, "hint: ")?;
    let output = of_file(test, &test.workload("shares-fp-no-cfi"), &[])?;
    expect_contains("of the one without unwind information", &output, "better   unwind information for ")?;
    let output = of_file(test, &test.workload("inlines-v0"), &[])?;
    expect_contains("of the Rust program", &output, "names, lines")
}

/// The same program is built with frame pointers and without them.
fn frame_pointers(test: &Context<'_>) -> Verdict {
    const LOSES: &str = "--call-graph fp loses callers of the others";
    let output = of_file(test, &test.workload("fixed_work-fp"), &[])?;
    expect_contains(
        "of the one that keeps them",
        &output,
        "ok       100 % of its functions keep frame pointers",
    )?;
    expect_contains("of the one that keeps them", &output, "--call-graph fp finds their callers")?;
    let output = of_file(test, &test.workload("fixed_work-cfi"), &[])?;
    expect_contains(
        "of the one that does not",
        &output,
        "ok       0 % of its functions keep frame pointers",
    )?;
    expect_contains("of the one that does not", &output, LOSES)?;
    expect_contains("of the one that does not", &output, "build with -fno-omit-frame-pointer")?;
    // If stacks depend on frame pointers, the first instructions of the functions are checked.
    let output = of_file(test, &test.workload("shares-fp-no-cfi"), &[])?;
    expect_contains(
        "without unwind information",
        &output,
        "ok       100 % of its functions keep frame pointers",
    )?;
    let output = of_file(test, &test.workload("shares-no-cfi"), &[])?;
    expect_contains("without either", &output, "better   0 % of its functions keep frame pointers")?;
    let json: Value = serde_json::from_str(&of_file(test, &test.workload("fixed_work-cfi"), &["--json"])?)?;
    let all = json["sections"].as_array().into_iter().flatten().filter_map(|it| it["findings"].as_array());
    let found = all.flatten().find(|finding| finding["topic"] == "frame_pointers").unwrap_or(&Value::Null);
    expect_eq("the level in JSON", found["level"].as_str(), Some("ok"))?;
    expect_contains("the text in JSON", found["text"].as_str().unwrap_or_default(), LOSES)?;
    expect_eq("hints in JSON", found["hints"].as_array().map(Vec::len), Some(1))
}

fn debug_file(test: &Context<'_>) -> Verdict {
    let program = test.workload("shares-build-id");
    let output = of_file(test, &program, &[])?;
    expect_contains("without the folder", &output, ".debug: no such file")?;
    let folder = program.parent().unwrap_or(&program).display().to_string();
    let output = of_file(test, &program, &["--symbol-dir", &folder, "-v"])?;
    expect_contains("with the folder", &output, "names, lines and inlined calls from ")?;
    expect_contains("with the folder", &output, ".debug: used")
}

/// Starts a program that runs until it is killed.
fn endless<'a>(
    test: &'a Context<'a>,
    adapt: impl FnOnce(Invocation<'a>) -> Invocation<'a>,
) -> Result<Running<'a>, anyhow::Error> {
    let ready = test.fresh("ready");
    let call = test.program(test.workload("endless")).args(&["2"]);
    let running = adapt(call.env("WORKLOAD_READY", ready.display().to_string())).start()?;
    running.wait_for_file(&ready)?;
    Ok(running)
}

fn end(target: Running<'_>) -> Verdict {
    target.signal(libc::SIGKILL)?;
    target.wait()?;
    Ok(())
}

fn process(test: &Context<'_>) -> Verdict {
    let target = endless(test, |call| call)?;
    let output = doctor(test.nyquist(&["doctor", &target.pid().to_string()]), &[])?;
    end(target)?;
    for part in ["(endless, ", "it can be attached to", "names, lines and inlined calls", "libc"] {
        expect_contains("messages", &output, part)?;
    }
    Ok(())
}

fn own_root(test: &Context<'_>) -> Verdict {
    need_root()?;
    let target = endless(test, |call| call.under(&["unshare", "--mount", "--"]))?;
    let output = doctor(test.nyquist(&["doctor", &target.pid().to_string()]), &[])?;
    end(target)?;
    expect_contains("messages", &output, "it has its own root folder")?;
    expect_contains("messages", &output, "names, lines and inlined calls")
}

fn foreign(test: &Context<'_>) -> Verdict {
    need_root()?;
    let target = endless(test, |call| call)?;
    let finished = test.nyquist(&["doctor", &target.pid().to_string()]).by_plain_user().run()?;
    end(target)?;
    expect_eq("the status", finished.status.code(), Some(1))?;
    expect_contains("messages", &finished.stdout_text(), "problem  it cannot be recorded")
}

fn missing(test: &Context<'_>) -> Verdict {
    let check = |args: &[&str], part: &str| -> Verdict {
        let finished = test.nyquist(&["doctor"]).args(args).run()?;
        expect_eq("the status", finished.status.code(), Some(1))?;
        expect_contains("stderr", &finished.stderr, part)
    };
    // Linux allows no higher process id (PID_MAX_LIMIT).
    check(&["4194305"], "there is no process 4194305")?;
    check(&["./no-such-file"], "no such file")?;
    check(&["/etc/passwd"], "not an object file")?;
    check(&["/"], "not a regular file")
}

fn json(test: &Context<'_>) -> Verdict {
    let text = of_file(test, &test.workload("shares"), &["--json"])?;
    let json: Value = serde_json::from_str(&text)?;
    Documents::read()?.hold(&["doctor"], &json)?;
    let kinds: Vec<_> =
        json["sections"].as_array().into_iter().flatten().filter_map(|it| it["kind"].as_str()).collect();
    expect_eq("the sections", kinds, vec!["machine", "program", "libraries", "symbols"])
}

fn no_leave(test: &Context<'_>) -> Verdict {
    let _held = at_paranoid(2)?;
    let shown = "kernel.perf_event_paranoid: 2 -> 1";
    let check = |finished: &Finished, status: i32, part: &str| -> Verdict {
        expect_eq("the status", finished.status.code(), Some(status))?;
        let messages = format!("{}{}", finished.stdout_text(), finished.stderr);
        expect_contains("messages", &messages, shown)?;
        expect_contains("messages", &messages, part)?;
        expect_eq("the setting", paranoid::read("perf_event_paranoid")?, "2".to_owned())
    };
    check(&test.nyquist(&["setup", "--dry-run", "--lasting"]).run()?, 0, "/etc/sysctl.d/60-nyquist.conf")?;
    check(&test.nyquist(&["setup", "--lasting"]).by_plain_user().run()?, 1, "setup --lasting")?;
    let refused = test.nyquist(&["setup", "--lasting", "-y"]).by_plain_user().run()?;
    check(&refused, 1, "These settings would be changed, for good:")?;
    check(&refused, 1, "60-nyquist.conf would be written:")?;
    check(&test.nyquist(&["setup"]).run()?, 1, "-y makes the changes without asking")?;
    expect(!Path::new(LASTING).exists(), "the lasting file was written")
}

/// The file with the lasting settings.
const LASTING: &str = "/etc/sysctl.d/60-nyquist.conf";

/// Sets the values that a machine is delivered with, all of which `setup` changes.
fn as_delivered() -> Result<Paranoid, Stop> {
    need_root()?;
    let mut held = Paranoid::hold(2)?;
    held.set("kptr_restrict", 1)?;
    held.set("perf_event_mlock_kb", 516)?;
    Ok(held)
}

/// Checks that the settings were changed as shown, and that the output says for how long.
fn expect_set_up(shown: &str, until: &str) -> Result<String, Stop> {
    expect_contains("what is shown", shown, &format!("These settings are changed, {until}:"))?;
    let buffers = shown.lines().find_map(|line| line.strip_prefix("  kernel.perf_event_mlock_kb: 516 -> "));
    let buffers = buffers.unwrap_or_default().to_owned();
    for (name, before, value) in [("perf_event_paranoid", 2, "1"), ("kptr_restrict", 1, "0")] {
        expect_contains("what is shown", shown, &format!("kernel.{name}: {before} -> {value}"))?;
        expect_eq(name, paranoid::read(name)?.as_str(), value)?;
    }
    expect_eq("perf_event_mlock_kb", paranoid::read("perf_event_mlock_kb")?.as_str(), &buffers)?;
    expect(buffers.parse().is_ok_and(|kb: u32| kb > 516), format_args!("no larger buffers: {shown}"))?;
    expect_contains("what is said in the end", shown, "\nDone.\n")?;
    Ok(buffers)
}

fn set_up(test: &Context<'_>) -> Verdict {
    let _held = as_delivered()?;
    let shown = test.nyquist(&["setup", "-y"]).run()?.succeeded()?.stdout_text();
    expect_set_up(&shown, "until the machine is started again")?;
    expect(!Path::new(LASTING).exists(), "they were made to last")?;
    let output = doctor(test.nyquist(&["doctor"]).by_plain_user(), &[])?;
    for part in [
        "user and kernel code",
        "ok       kernel functions have names",
        "ok       kernel.perf_event_mlock_kb",
    ] {
        expect_contains("what a plain user has by that", &output, part)?;
    }
    let again = test.nyquist(&["setup", "-y"]).run()?.succeeded()?.stdout_text();
    expect_contains("once more", &again, "Nothing to change")
}

/// Nothing is changed before the answer, and only a clear yes allows the change.
fn terminal(test: &Context<'_>) -> Verdict {
    let _held = as_delivered()?;
    let settings = || -> Result<Vec<String>, anyhow::Error> {
        ["perf_event_paranoid", "kptr_restrict", "perf_event_mlock_kb"]
            .map(paranoid::read)
            .into_iter()
            .collect()
    };
    let delivered = ["2", "1", "516"].map(str::to_owned).to_vec();
    let question = "Make these changes? [y/N] ";
    let answered = |answer: &str| -> Result<String, Stop> {
        let mut setup = test.nyquist(&["setup"]).on_terminal().start()?;
        setup.wait_until("the question", || setup.shown_so_far().ends_with(question))?;
        expect_contains("the question", &setup.shown_so_far(), "kernel.perf_event_paranoid: 2 -> 1")?;
        expect_eq("the settings before the answer", settings()?, delivered.clone())?;
        setup.press(answer)?;
        Ok(setup.wait()?.succeeded()?.stderr.replace("\r\n", "\n"))
    };
    for no in ["n\n", "\n", "yours\n", "\x04"] {
        let shown = answered(no)?;
        expect(shown.ends_with("Nothing was changed.\n"), format_args!("after {no:?}: {shown}"))?;
        expect_eq(&format!("the settings after {no:?}"), settings()?, delivered.clone())?;
    }
    let shown = answered("y\n")?;
    expect_set_up(&shown, "until the machine is started again")?;
    expect(!Path::new(LASTING).exists(), "they were made to last")
}

/// The file is written to a separate file system, which exists only during the command.
fn lasting(test: &Context<'_>) -> Verdict {
    let _held = as_delivered()?;
    let script = format!("mount -t tmpfs none /etc/sysctl.d && \"$@\" && echo --- && cat {LASTING}");
    let call =
        test.nyquist(&["setup", "--lasting", "-y"]).under(&["unshare", "-m", "sh", "-c", &script, "sh"]);
    let output = call.run()?.succeeded()?.stdout_text();
    let Some((shown, file)) = output.split_once("---\n") else { return expect(false, output) };
    let buffers = expect_set_up(shown, "for good")?;
    expect_contains("what is shown", shown, &format!("  {LASTING} is written:\n"))?;
    let settings: Vec<_> = file.lines().filter(|line| !line.starts_with('#')).collect();
    let expected = format!("kernel.perf_event_mlock_kb = {buffers}");
    expect_eq(
        "the file",
        settings,
        vec!["kernel.perf_event_paranoid = 1", "kernel.kptr_restrict = 0", &expected],
    )?;
    for line in file.lines() {
        expect_contains("what is shown of the file", shown, &format!("      {line}\n"))?;
    }
    expect(!Path::new(LASTING).exists(), "the file was written outside")
}

/// A copy of the program under test, which will get capabilities.
fn copied(test: &Context<'_>) -> Result<PathBuf, anyhow::Error> {
    let copy = test.path("nyquist");
    fs::copy(test.nyquist_path(), &copy)?;
    Ok(copy)
}

fn capabilities(test: &Context<'_>) -> Verdict {
    let _held = at_paranoid(2)?;
    let copy = copied(test)?;
    let look = || doctor(test.program(&copy).args(&["doctor"]).by_plain_user(), &[]);
    let mut setup = test.program(&copy).args(&["setup", "--capabilities"]).on_terminal().start()?;
    setup.type_line("n")?;
    setup.wait()?.succeeded()?;
    expect_contains("after a no", &look()?, "neither root nor")?;
    test.program(&copy).args(&["setup", "--capabilities", "-y"]).run()?.succeeded()?;
    let output = look()?;
    expect_contains("after a yes", &output, "you have CAP_PERFMON, CAP_SYS_PTRACE, CAP_SYSLOG")?;
    expect_contains("after a yes", &output, "user and kernel code")?;
    records_kernel_code(test, &copy)
}

/// Checks that a plain user can record kernel code and short processes with this copy of the program.
fn records_kernel_code(test: &Context<'_>, program: &Path) -> Verdict {
    let (profile, truth) = (test.fresh("profile.json.gz"), test.fresh("truth.jsonl"));
    let call = test.program(program).args(&["record", "-s", "-o"]).path(&profile).args(&["--"]);
    let call = call.path(&test.workload("kernel_heavy")).args(&["800", "zero"]);
    let call = call.env("WORKLOAD_TRUTH", truth.display().to_string()).by_plain_user();
    let recorded = Recorded::read(call.run()?.succeeded()?, &profile, &truth)?;
    let stderr = &recorded.finished.stderr;
    expect_contains("stderr", stderr, "Sampling user and kernel code")?;
    expect(!stderr.contains("but no process") && !stderr.contains("have no names"), stderr)?;
    let truth = recorded.truth()?;
    let found = recorded.profile.share_with(is_kernel_code);
    let expected = truth.system / truth.cpu;
    expect_measured(found > expected - 0.08, format_args!("kernel share {found:.3}, accounted {expected:.3}"))
}
