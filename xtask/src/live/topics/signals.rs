//! Ctrl-C and similar signals: the command receives the first one, and the profile is always saved.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::context::Context;
use super::expect::{Verdict, expect_eq, expect_measured};
use super::invocation::Running;
use super::profile::Profile;
use super::test::{SHARES, Test};

pub(super) const TESTS: &[Test] = &[
    Test::new("ctrl_c_lets_the_command_save_its_work", handler_saves).quick().in_pairs(SHARES),
    Test::new("ctrl_c_ends_a_command_that_does_not_care", default_action).quick().in_pairs(SHARES),
    Test::new("a_second_ctrl_c_kills_an_ignoring_command", ignored).in_pairs(SHARES),
    Test::new("sigterm_to_the_recorder_saves_the_profile", terminated).in_pairs(SHARES),
    Test::new("sigint_to_the_recorder_saves_the_profile", interrupted_alone).in_pairs(SHARES),
    Test::new("ctrl_c_during_symbolication_saves_the_profile", during_symbolication).in_pairs(SHARES),
    Test::new("a_background_child_does_not_keep_the_recorder", background_child).in_pairs(SHARES),
];

/// A recording of the waiting workload, which has begun to wait.
struct Waiting<'a> {
    running: Running<'a>,
    profile: std::path::PathBuf,
}

fn waiting<'a>(
    test: &'a Context<'a>,
    args: &[&str],
    on_terminal: bool,
) -> Result<Waiting<'a>, anyhow::Error> {
    let ready = test.fresh("ready");
    let args: Vec<&str> = ["waits"].iter().chain(args).copied().collect();
    let prepared = test.record(&args).prepare();
    let call = prepared.call.env("WORKLOAD_READY", ready.display().to_string());
    let running = if on_terminal { call.on_terminal() } else { call }.start()?;
    running.wait_for_file(&ready)?;
    Ok(Waiting { running, profile: prepared.profile })
}

fn expect_saved(profile: &std::path::Path) -> Verdict {
    let share = Profile::read(profile)?.total_share("before_waiting");
    expect_measured(share > 0.8, format_args!("before_waiting has a share of {share:.3}"))
}

fn handler_saves(test: &Context<'_>) -> Verdict {
    let saved = test.path("work-of-the-command");
    let mut waiting = waiting(test, &["save", &saved.display().to_string()], true)?;
    waiting.running.press_ctrl_c()?;
    let finished = waiting.running.wait()?;
    expect_eq("the status, the handler's own", finished.code(), 3)?;
    expect_eq("what the handler saved", fs::read_to_string(&saved)?, "saved\n".to_owned())?;
    expect_saved(&waiting.profile)
}

fn default_action(test: &Context<'_>) -> Verdict {
    let mut waiting = waiting(test, &["default"], true)?;
    waiting.running.press_ctrl_c()?;
    let finished = waiting.running.wait()?;
    expect_eq("the status", finished.code(), 128 + libc::SIGINT)?;
    expect_saved(&waiting.profile)
}

fn ignored(test: &Context<'_>) -> Verdict {
    let mut waiting = waiting(test, &["ignore"], true)?;
    waiting.running.press_ctrl_c()?;
    // The recorder must see a second signal. A terminal merges a signal with one that is still pending.
    let pid = waiting.running.pid();
    waiting.running.wait_until("the first SIGINT to be taken", || !is_pending(pid, libc::SIGINT))?;
    waiting.running.press_ctrl_c()?;
    let finished = waiting.running.wait()?;
    expect_eq("the status", finished.code(), 128 + libc::SIGKILL)?;
    expect_saved(&waiting.profile)
}

/// Whether a signal is pending for a process, from its status file.
pub(super) fn is_pending(pid: u32, signal: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let masks =
        status.lines().filter_map(|line| line.strip_prefix("ShdPnd:").or(line.strip_prefix("SigPnd:")));
    masks
        .filter_map(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .any(|mask| mask & (1 << (signal - 1)) != 0)
}

fn terminated(test: &Context<'_>) -> Verdict {
    let waiting = waiting(test, &["default"], false)?;
    waiting.running.signal(libc::SIGTERM)?;
    let finished = waiting.running.wait()?;
    expect_eq("the status", finished.code(), 128 + libc::SIGTERM)?;
    expect_saved(&waiting.profile)
}

/// Some wrappers send the signal only to the recorder, which passes it on.
fn interrupted_alone(test: &Context<'_>) -> Verdict {
    let waiting = waiting(test, &["default"], false)?;
    waiting.running.signal(libc::SIGINT)?;
    let finished = waiting.running.wait()?;
    expect_eq("the status", finished.code(), 128 + libc::SIGINT)?;
    expect_saved(&waiting.profile)
}

/// Looking up the compiler's names takes long. The profile is saved, whenever the signal comes after the
/// command's end.
fn during_symbolication(test: &Context<'_>) -> Verdict {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output()?;
    let rustc = format!("{}/bin/rustc", String::from_utf8(sysroot.stdout)?.trim());
    let source = crate::paths::root().join("workloads/inlines.rs").display().to_string();
    let output = test.path("compiled").display().to_string();
    let pid_file = test.path("pid-of-the-command");
    let script = format!("{rustc} --edition 2024 -O {source} -o {output}; echo $$ >{}", pid_file.display());
    let prepared = test.record_command(&["sh", "-c", &script]).prepare();
    let running = prepared.call.start()?;
    let pid = || fs::read_to_string(&pid_file).ok()?.trim().parse::<u32>().ok();
    running.wait_until("the command to end", || {
        pid().is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists())
    })?;
    running.signal(libc::SIGINT)?;
    let finished = running.wait()?;
    expect_eq("the status, the command's own", finished.code(), 0)?;
    let profile = Profile::read(&prepared.profile)?;
    expect_measured(profile.total() > 100.0, format_args!("only {} samples", profile.total()))
}

/// The recording ends with the command, although the command has left a process behind.
fn background_child(test: &Context<'_>) -> Verdict {
    let recorded = test.record_command(&["sh", "-c", "sleep 1000 >/dev/null 2>&1 & exit 7"]).run()?;
    expect_eq("the status", recorded.finished.code(), 7)?;
    let seconds = recorded.finished.took.as_secs_f64();
    expect_measured(seconds < 20.0, format_args!("it took {seconds:.1} s"))
}
