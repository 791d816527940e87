//! With fewer rights, a recording contains less, and messages say so. It is not refused.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
use std::sync::Arc;

use super::context::Context;
use super::expect::{
    Stop, Verdict, expect, expect_contains, expect_eq, expect_measured, expect_share, need_root, skip,
};
use super::invocation::PLAIN_USER;
use super::paranoid::Paranoid;
use super::profile::{Frame, Profile, Thread};
use super::recorded::Recorded;
use super::stacks::expect_kernel_frames;
use super::test::{SHARES, Test};
use crate::sys;

pub(super) const TESTS: &[Test] = &[
    Test::new("a_plain_user_at_paranoid_2_gets_user_stacks", plain_at_2).quick().in_pairs(SHARES),
    Test::new("unsampled_kernel_time_is_a_share_of_its_own", kernel_share_at_2).in_pairs(SHARES),
    Test::new("a_plain_user_at_paranoid_1_gets_kernel_frames", |test| plain_kernel(test, 1))
        .exclusive("sets kernel.perf_event_paranoid to 1"),
    Test::new("a_plain_user_at_minus_1_gets_kernel_frames", |test| plain_kernel(test, -1))
        .exclusive("sets kernel.perf_event_paranoid to -1"),
    Test::new("a_plain_user_of_everything_has_own_mappings", plain_system)
        .exclusive("sets kernel.perf_event_paranoid to -1"),
    Test::new("root_at_paranoid_2_gets_kernel_frames", root_at_2).in_pairs(SHARES),
    Test::new("root_without_capabilities_gets_user_stacks", no_capabilities).in_pairs(SHARES),
    Test::new("too_little_locked_memory_is_no_error", locked_memory)
        .exclusive("all recordings of a user share the memory that may be locked"),
    Test::new("a_setuid_programs_time_is_said_to_be_missing", setuid).in_pairs(SHARES),
    Test::new("under_sudo_the_command_runs_as_the_user", sudo).in_pairs(SHARES),
    Test::new("under_sudo_as_root_runs_as_root", sudo_as_root).in_pairs(SHARES),
];

/// Holds the setting together with other tests, or skips the test if it may not be set.
pub(super) fn at_paranoid(value: i32) -> Result<Arc<Paranoid>, Stop> {
    if !sys::is_root() {
        return skip(format_args!("needs root, to set perf_event_paranoid to {value}"));
    }
    Ok(Paranoid::share(value)?)
}

fn plain_at_2(test: &Context<'_>) -> Verdict {
    let _held = at_paranoid(2)?;
    let recorded = test.record(&["shares", "1500"]).by_plain_user().run_well()?;
    for function in ["alpha", "beta", "gamma_"] {
        let (found, expected) = (recorded.profile.total_share(function), recorded.true_share(function)?);
        expect_share(function, found, expected, recorded.profile.count())?;
    }
    let kernel = recorded.profile.share_with(is_kernel_code);
    expect_measured(kernel < 0.001, format_args!("{kernel:.3} of the samples have kernel addresses"))?;
    let both =
        ["user code at ", "samples kernel code and such processes, too", "(kernel.perf_event_paranoid is 2)"];
    expect_first_lines(&recorded, &both)
}

/// Whether a frame is kernel code, with or without a name. Time that could not be sampled does not count.
pub(super) fn is_kernel_code(frame: &Frame) -> bool {
    frame.category == "Kernel" && !frame.function.starts_with('[')
}

/// Checks that one line says what is sampled and what is not, and that one hint says how to sample more. No
/// warning may repeat this.
fn expect_first_lines(recorded: &Recorded, parts: &[&str]) -> Verdict {
    const SHORT: &str = ", but no thread or process that lives for less than a sampling interval";
    let stderr = &recorded.finished.stderr;
    let mut lines = stderr.lines();
    let (line, hint) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    expect(line.starts_with("Sampling ") && line.ends_with(SHORT), stderr)?;
    let is_one_hint = stderr.lines().filter(|line| line.starts_with("hint: ")).count() == 1;
    expect(
        is_one_hint && hint.starts_with("hint: sudo, or `sudo nyquist setup --capabilities` once,"),
        stderr,
    )?;
    let first_lines = format!("{line}\n{hint}");
    parts.iter().try_for_each(|part| expect_contains("what is said first", &first_lines, part))?;
    expect(!stderr.contains("warning: "), stderr)
}

fn kernel_share_at_2(test: &Context<'_>) -> Verdict {
    let _held = at_paranoid(2)?;
    for what in ["zero", "getpid"] {
        let recorded = test.record(&["kernel_heavy", "1500", what]).by_plain_user().run_well()?;
        let truth = recorded.truth()?;
        let expected = truth.system / truth.cpu;
        let found = recorded.profile.total_share("[kernel: not permitted]");
        // The truth is accounted in ticks of 4 ms. There are 375 of them, and four deviations are allowed.
        let allowed = 4.0 * (expected * (1.0 - expected) / 375.0_f64).sqrt() + 0.03;
        expect_measured(
            (found - expected).abs() < allowed,
            format_args!("{what}: found {found:.3}, accounted {expected:.3}"),
        )?;
        let broken = super::rules::broken(&recorded.profile.json);
        expect(broken.is_empty(), broken.join("; "))?;
        // The profile must contain all CPU time.
        let all = recorded.profile.total() / 1000.0 / truth.cpu;
        expect_measured(
            (0.93..1.05).contains(&all),
            format_args!("{what}: the profile has {all:.3} of the CPU time"),
        )?;
    }
    Ok(())
}

fn setuid(test: &Context<'_>) -> Verdict {
    let _held = at_paranoid(2)?;
    let program = test.path("setuid-shares");
    fs::copy(test.workload("shares"), &program)?;
    fs::set_permissions(&program, PermissionsExt::from_mode(0o4755))?;
    // The shell is recorded, and the program is not. The shell also works, so that it certainly has samples.
    let work = "n=0; while [ $n -lt 200000 ]; do n=$((n+1)); done";
    let script = format!("{work}; {} 1000; true", program.display());
    let recorded = test.record_command(&["sh", "-c", &script]).by_plain_user().run()?;
    let stderr = &recorded.finished.stderr;
    expect_contains("stderr", stderr, "s more of CPU time is not in the profile")?;
    let missing = stderr.lines().find_map(|line| line.split_once(" s more of CPU time")?.0.parse().ok());
    let (missing, used): (f64, f64) = (missing.unwrap_or_default(), recorded.truth()?.cpu);
    // The kernel's account of the shell and the program begins earlier than their own, because it includes
    // fork and loading.
    expect_measured(
        (used - 0.02..used + 0.05).contains(&missing),
        format_args!("{missing} s are said to be missing, and the program has used {used:.3} s"),
    )?;
    let sampled = recorded.profile.total_share("alpha");
    expect(sampled == 0.0, format_args!("alpha has a share of {sampled:.3}"))?;
    let as_root = test.record_command(&["sh", "-c", &script]).run()?;
    expect(!as_root.finished.stderr.contains("is not in the profile"), &as_root.finished.stderr)
}

/// Only the shortest processes may be missing, and perhaps the names of kernel functions.
fn expect_first_lines_at_1(recorded: &Recorded) -> Verdict {
    if kernel_addresses_shown()? {
        expect_first_lines(recorded, &["user and kernel code at ", "once, samples such processes, too"])
    } else {
        expect_contains("stderr", &recorded.finished.stderr, "once, samples such processes, too")
    }
}

fn plain_kernel(test: &Context<'_>, paranoid: i32) -> Verdict {
    let _held = at_paranoid(paranoid)?;
    let recorded = test.record(&["kernel_heavy", "800", "zero"]).by_plain_user().run_well()?;
    expect_first_lines_at_1(&recorded)?;
    let in_kernel = recorded.profile.share_with(|frame| frame.category == "Kernel");
    let truth = recorded.truth()?;
    let expected = truth.system / truth.cpu;
    expect_measured(
        in_kernel > expected - 0.08,
        format_args!("kernel share {in_kernel:.3}, accounted {expected:.3}"),
    )?;
    let hidden = recorded.profile.total_share("[kernel: not permitted]");
    expect_measured(hidden < 0.02, format_args!("{hidden:.3} of the samples are said to be hidden"))?;
    if kernel_addresses_shown()? { expect_kernel_frames(&recorded) } else { Ok(()) }
}

/// A command that nyquist launches has separate clocks if it cannot have a control group. The mappings of the
/// user's running processes are known.
fn plain_system(test: &Context<'_>) -> Verdict {
    let _held = at_paranoid(-1)?;
    let launched = test.record(&["shares", "500"]).by_plain_user().options(&["-v"]).run_well()?;
    expect(!launched.finished.stderr.contains("whole CPUs are sampled"), &launched.finished.stderr)?;
    let command = test.workload("shares").display().to_string();
    let own = test.program(&command).args(&["60000"]).by_plain_user().start()?;
    let output = test.fresh("profile.json.gz");
    let call = test.nyquist(&["record", "-s", "-a", "-d", "2", "-o"]).path(&output).by_plain_user();
    call.run()?.succeeded()?;
    own.signal(libc::SIGKILL)?;
    own.wait()?;
    let profile = Profile::read(&output)?;
    let cut = |process: &str| {
        let threads = profile.threads.iter().filter(|thread| thread.process == process);
        let (mut all, mut cut) = (0.0, 0.0);
        for (stack, weight) in threads.flat_map(Thread::stacks) {
            all += weight;
            let root = stack.first().map_or("", |frame| frame.function.as_str());
            cut += if root == "(truncated: the process's mappings are not known)" { weight } else { 0.0 };
        }
        cut / f64::max(all, 1.0)
    };
    expect_eq("own stacks that are marked", cut("shares"), 0.0)
}

/// With kptr_restrict 0 and paranoid 1 or lower, /proc/kallsyms shows addresses to all users.
fn kernel_addresses_shown() -> Result<bool, anyhow::Error> {
    Ok(fs::read_to_string("/proc/sys/kernel/kptr_restrict")?.trim() == "0")
}

fn root_at_2(test: &Context<'_>) -> Verdict {
    let _held = at_paranoid(2)?;
    let recorded = test.record(&["kernel_heavy", "600", "zero"]).run_well()?;
    let stderr = &recorded.finished.stderr;
    expect(!stderr.contains("hint: ") && !stderr.contains("but no process"), stderr)?;
    expect_kernel_frames(&recorded)
}

/// uid 0 with the bounding set of a container has no more privileges than a plain user.
fn no_capabilities(test: &Context<'_>) -> Verdict {
    let _held = at_paranoid(2)?;
    let drop = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"];
    let recorded = test.record(&["shares", "800"]).with(|call| call.under(&drop)).run_well()?;
    expect_contains("stderr", &recorded.finished.stderr, "hint: root lacks CAP_PERFMON here")?;
    let expected = recorded.true_share("alpha")?;
    expect_share("alpha", recorded.profile.total_share("alpha"), expected, recorded.profile.count())
}

fn locked_memory(test: &Context<'_>) -> Verdict {
    let _held = at_paranoid(2)?;
    let limit = ["prlimit", "--memlock=0:0"];
    let recorded =
        test.record(&["shares", "800"]).by_plain_user().with(|call| call.under(&limit)).run_well()?;
    let expected = recorded.true_share("alpha")?;
    expect_share("alpha", recorded.profile.total_share("alpha"), expected, recorded.profile.count())?;
    // Other recordings use the same per-user budget of memory. So there may be fewer samples, but some.
    expect_measured(
        recorded.profile.count() > 400.0,
        format_args!("only {} samples", recorded.profile.count()),
    )
}

/// The environment that sudo sets: the user is root, and the variables name the user who ran sudo.
fn under_sudo(test: &Context<'_>, options: &[&str]) -> Result<(Recorded, String), Stop> {
    need_root()?;
    let script = format!("echo $(id -u) $USER; exec {} 200", test.workload("shares").display());
    let id = PLAIN_USER.to_string();
    let recording = test.record_command(&["sh", "-c", &script]).options(options).with(move |call| {
        let call = call.env("SUDO_UID", id.clone()).env("SUDO_GID", id.clone());
        call.env("SUDO_USER", "nobody").env("USER", "root")
    });
    let recorded = recording.run_well()?;
    let user = recorded.finished.stdout_text().trim().to_owned();
    Ok((recorded, user))
}

fn sudo(test: &Context<'_>) -> Verdict {
    let (recorded, user) = under_sudo(test, &[])?;
    expect_eq("the command's user", user, format!("{PLAIN_USER} nobody"))?;
    let file = fs::metadata(&recorded.path)?;
    expect_eq("the profile's user and group", (file.uid(), file.gid()), (PLAIN_USER, PLAIN_USER))?;
    expect_eq("the profile's mode", file.mode() & 0o7777, 0o600)?;
    expect_measured(recorded.profile.total_share("alpha") > 0.3, "alpha is missing")
}

fn sudo_as_root(test: &Context<'_>) -> Verdict {
    let (recorded, user) = under_sudo(test, &["--as-root"])?;
    expect_eq("the command's user", user, "0 root".to_owned())?;
    expect_measured(recorded.profile.total_share("alpha") > 0.3, "alpha is missing")
}
