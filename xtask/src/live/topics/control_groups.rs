//! `--cgroup PATH`: nested groups, groups that are made later, groups of a plain user, and paths without a
//! group.

use std::fs;
use std::path::{Path, PathBuf};

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_measured, expect_within, need_root};
use super::group_folders::own_group;
use super::invocation::{Invocation, PLAIN_USER, Running};
use super::permissions::at_paranoid;
use super::profile::{Profile, Thread};
use super::recorded::Truth;
use super::running_targets::{
    OfRunning, WORK, end, expect_due, process_cpu_ms, record_working, weight_of, working,
};
use super::targets::{expect_not_started, expect_refused};
use super::test::{SHARES, Test};

pub(super) const TESTS: &[Test] = &[
    Test::new("groups_below_it_are_recorded", nested).in_pairs(SHARES),
    Test::new("groups_that_are_born_later_are_recorded", born_later).in_pairs(SHARES),
    Test::new("a_plain_users_group_is_recorded_or_refused", delegated)
        .exclusive("sets kernel.perf_event_paranoid to 0"),
    Test::new("what_is_no_group_is_said", no_group),
];

/// A control group for a test, beside those of recorders. It is removed at the end, with the groups below it.
pub(super) struct Group(PathBuf);

impl Group {
    pub(super) fn create(name: &str) -> Result<Self, Stop> {
        let folder = own_group()?.join(format!("tests-{name}-{}", std::process::id()));
        fs::create_dir(&folder)?;
        Ok(Self(folder))
    }

    pub(super) fn below(&self, name: &str) -> Result<Self, Stop> {
        let folder = self.0.join(name);
        fs::create_dir(&folder)?;
        Ok(Self(folder))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn admit(&self, pid: u32) -> Result<(), Stop> {
        Ok(fs::write(self.processes(), pid.to_string())?)
    }

    fn processes(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }
}

impl Drop for Group {
    /// Moves processes that a failed test has left in the group to its parent, because they would keep it
    /// from being removed.
    fn drop(&mut self) {
        let list = fs::read_to_string(self.processes()).unwrap_or_default();
        for pid in list.lines() {
            drop(fs::write(self.0.with_file_name("cgroup.procs"), pid));
        }
        drop(fs::remove_dir(&self.0));
    }
}

/// Processes up to two levels below the group are recorded. A process in the parent group is not.
fn nested(test: &Context<'_>) -> Verdict {
    need_root()?;
    let above = Group::create("nested")?;
    let group = above.below("recorded")?;
    let below = group.below("one")?;
    let innermost = below.below("two")?;
    let targets = [&above, &group, &below, &innermost].map(|group| {
        let target = working(test, &["endless", "1"])?;
        group.admit(target.pid()).map(|()| target)
    });
    let [outside, targets @ ..] = targets;
    let (outside, targets) = (outside?, targets.into_iter().collect::<Result<Vec<_>, _>>()?);
    let pids: Vec<_> = targets.iter().map(Running::pid).collect();
    let path = group.path().display().to_string();
    let OfRunning { profile, used } = record_working(test, &["--cgroup", &path], &pids)?;
    for (level, (pid, used)) in pids.into_iter().zip(used).enumerate() {
        expect_due(&format!("the process {level} levels down"), weight_of(&profile, pid), used)?;
    }
    expect(weight_of(&profile, outside.pid()) < 1.0, "a process outside of the group is in it")?;
    targets.into_iter().chain([outside]).try_for_each(end)
}

/// The process and its group are created after the recording has begun, so the recording begins with an empty
/// group.
fn born_later(test: &Context<'_>) -> Verdict {
    need_root()?;
    let group = Group::create("later")?;
    let (output, truth) = (test.fresh("profile.json.gz"), test.fresh("truth"));
    let call = test.nyquist(&["record", "-s", "--cgroup"]).path(group.path()).args(&["-o"]).path(&output);
    let recorder = call.start()?;
    recorder.wait_until_recording()?;
    let below = group.below("one")?;
    let innermost = below.below("two")?;
    let script = format!(
        "echo $$ > {}; exec {} 500",
        innermost.processes().display(),
        test.workload("shares").display()
    );
    let call = test.program("sh").args(&["-c", &script]);
    call.env("WORKLOAD_TRUTH", truth.display().to_string()).run()?.succeeded()?;
    recorder.signal(libc::SIGINT)?;
    recorder.wait()?.succeeded()?;
    let profile = Profile::read(&output)?;
    let used = Truth::read(&truth)?.first().map_or(0.0, |truth| truth.cpu) * 1000.0;
    expect_within("its samples", profile.total(), used, 0.05)?;
    let named = profile.threads.iter().filter(|thread| thread.process == "shares");
    let named: f64 = named.map(Thread::total).sum();
    expect_within("those of the program by its name", named, used, 0.05)?;
    let share = profile.total_share("alpha");
    expect_measured(share > 0.3, format_args!("alpha has a share of {share:.3}"))
}

/// If a group belongs to the user, the user may still not observe its processes, unless everybody may sample
/// whole CPUs.
fn delegated(test: &Context<'_>) -> Verdict {
    let held = at_paranoid(2)?;
    let group = Group::create("delegated")?;
    for path in [group.path(), &group.processes()] {
        std::os::unix::fs::chown(path, Some(PLAIN_USER), Some(PLAIN_USER))?;
    }
    let path = group.path().display().to_string();
    let options = ["--cgroup", path.as_str(), "-d", "1"];
    let says = ["not permitted", "hint: root can", "CAP_PERFMON"];
    expect_refused(test, test.nyquist(&["record"]).args(&options).by_plain_user(), &says)?;
    expect_not_started(test, &options, Invocation::by_plain_user, &says)?;
    drop(held);
    let _held = at_paranoid(0)?;
    let ready = test.fresh("ready");
    let call = test.program(test.workload("endless")).args(&["1"]).by_plain_user();
    let target = call.env("WORKLOAD_READY", ready.display().to_string()).start()?;
    target.wait_for_file(&ready)?;
    group.admit(target.pid())?;
    let output = test.fresh("profile.json.gz");
    let before = process_cpu_ms(target.pid())?;
    let call = test.nyquist(&["record", "-s", "-o"]).path(&output).args(&options[..2]).by_plain_user();
    let recorder = call.start()?;
    recorder.wait_until_recording()?;
    let begun = process_cpu_ms(target.pid())?;
    let has_worked = || process_cpu_ms(target.pid()).is_ok_and(|now| now > begun + WORK);
    recorder.wait_until("the process to work", has_worked)?;
    recorder.signal(libc::SIGINT)?;
    recorder.wait()?.succeeded()?;
    let used = process_cpu_ms(target.pid())? - before;
    let profile = Profile::read(&output)?;
    expect_due("the process of the group", weight_of(&profile, target.pid()), used)?;
    let share = profile.total_share("main_loop");
    expect_measured(share > 0.9, format_args!("main_loop has a share of {share:.3}"))?;
    end(target)
}

/// The user may name any folder or file.
fn no_group(test: &Context<'_>) -> Verdict {
    need_root()?;
    let own = own_group()?;
    let file = test.path("file");
    fs::write(&file, "text")?;
    for path in [test.path(""), file, own.join("cgroup.procs"), own.join("no-such-group")] {
        let path = path.display().to_string();
        let says = [&format!("error: there is no control group {path}"), "hint: `cat /proc/PID/cgroup`"];
        let options = ["--cgroup", path.as_str(), "-d", "1"];
        expect_refused(test, test.nyquist(&["record"]).args(&options), &says)?;
        expect_not_started(test, &options, |call| call, &says)?;
    }
    Ok(())
}
