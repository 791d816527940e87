//! Threads that others hold up: by signals, by frozen control groups, by quotas of CPU time.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::context::Context;
use super::control_groups::Group;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_measured, need_root, skip};
use super::invocation::Running;
use super::running_targets::{end, working};
use super::test::{SHARES, Test};
use super::waits::share;

pub(super) const TESTS: &[Test] = &[
    Test::new("a_stopped_thread_is_said_to_be_stopped", stopped).in_pairs(SHARES),
    Test::new("a_frozen_thread_is_said_to_be_frozen", frozen).in_pairs(SHARES),
    Test::new("a_frozen_group_of_version_1_is_said_to_be", frozen_in_version_1).in_pairs(SHARES),
    Test::new("a_used_up_quota_is_said_and_marked", quota).in_pairs(SHARES),
    Test::new("a_fifo_that_is_opened_has_its_path", fifo).in_pairs(SHARES),
];

/// Records what a running program waits for.
fn record(test: &Context<'_>, pid: u32, options: &[&str]) -> Result<(PathBuf, String), Stop> {
    let (pid, output) = (pid.to_string(), test.fresh("profile.json.gz"));
    let call = test.nyquist(&["record", "--off-cpu", "-s", "-d", "1", "-p", &pid]).args(options);
    let finished = call.args(&["-o"]).path(&output).run()?.succeeded()?;
    Ok((output, finished.stderr))
}

fn report(test: &Context<'_>, profile: &Path, options: &[&str]) -> Result<Value, Stop> {
    let call = test.nyquist(&["report", "--json", "--limit", "0"]).args(options).path(profile);
    Ok(serde_json::from_str(&call.run()?.succeeded()?.stdout_text())?)
}

/// Waits until the kernel says that a program sleeps, so that it is where it stays.
fn sleeper<'a>(test: &'a Context<'a>) -> Result<Running<'a>, Stop> {
    let target = test.program("sleep").args(&["1000"]).start()?;
    wait_for_state(&target, "S")?;
    Ok(target)
}

fn wait_for_state(target: &Running<'_>, states: &str) -> Verdict {
    let stat = format!("/proc/{}/stat", target.pid());
    let is_there = || {
        let text = fs::read_to_string(&stat).unwrap_or_default();
        text.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(|state| states.contains(state)))
    };
    target.wait_until(&format!("the state {states}"), is_there)?;
    Ok(())
}

/// Checks that all of a program's time has the name, and none that of a page.
fn expect_suspended(test: &Context<'_>, target: &Running<'_>, name: &str) -> Verdict {
    let (profile, _) = record(test, target.pid(), &[])?;
    let report = report(test, &profile, &["--off-cpu"])?;
    let (found, page) = (share(&report, name), share(&report, "[waiting: page]"));
    expect_measured(found > 0.95 && page == 0.0, format_args!("{found:.3} {name}, {page:.3} for a page"))
}

fn stopped(test: &Context<'_>) -> Verdict {
    let target = sleeper(test)?;
    target.signal(libc::SIGSTOP)?;
    wait_for_state(&target, "T")?;
    let verdict = expect_suspended(test, &target, "[stopped]");
    end(target)?;
    verdict
}

fn frozen(test: &Context<'_>) -> Verdict {
    need_root()?;
    let group = Group::create("frozen")?;
    let target = sleeper(test)?;
    group.admit(target.pid())?;
    let freeze = group.path().join("cgroup.freeze");
    if !freeze.exists() {
        end(target)?;
        return skip("this kernel freezes no groups of version 2");
    }
    fs::write(&freeze, "1")?;
    let events = group.path().join("cgroup.events");
    let is_frozen = || fs::read_to_string(&events).is_ok_and(|text| text.contains("frozen 1"));
    target.wait_until("the group to freeze", is_frozen)?;
    let verdict = expect_suspended(test, &target, "[frozen]");
    fs::write(&freeze, "0")?;
    end(target)?;
    verdict
}

/// A group of version 1 for a test, with one controller. It is removed at the end.
struct OldGroup(PathBuf);

impl OldGroup {
    fn create(controller: &str, file: &str) -> Result<Self, Stop> {
        let hierarchy = Path::new("/sys/fs/cgroup").join(controller);
        let folder = hierarchy.join(format!("tests-{controller}-{}", std::process::id()));
        if !hierarchy.join("cgroup.procs").exists() || fs::create_dir(&folder).is_err() {
            return skip(format!("no control groups of version 1 with {controller} can be made"));
        }
        let group = Self(folder);
        if group.0.join(file).exists() { Ok(group) } else { skip(format!("{controller} has no {file}")) }
    }

    fn write(&self, file: &str, text: &str) -> Result<(), Stop> {
        Ok(fs::write(self.0.join(file), text)?)
    }
}

impl Drop for OldGroup {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join("freezer.state"), "THAWED");
        let list = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
        for pid in list.lines() {
            let _ = fs::write(self.0.join("../cgroup.procs"), pid);
        }
        let _ = fs::remove_dir(&self.0);
    }
}

fn frozen_in_version_1(test: &Context<'_>) -> Verdict {
    need_root()?;
    let group = OldGroup::create("freezer", "freezer.state")?;
    let target = sleeper(test)?;
    group.write("cgroup.procs", &target.pid().to_string())?;
    group.write("freezer.state", "FROZEN")?;
    let state = group.0.join("freezer.state");
    let is_frozen = || fs::read_to_string(&state).is_ok_and(|text| text.trim_end() == "FROZEN");
    target.wait_until("the group to freeze", is_frozen)?;
    let verdict = expect_suspended(test, &target, "[frozen]");
    group.write("freezer.state", "THAWED")?;
    end(target)?;
    verdict
}

/// Sets a fifth of a CPU as the quota of a new group.
fn limited_group() -> Result<(Option<Group>, Option<OldGroup>, PathBuf), Stop> {
    if let Ok(group) = OldGroup::create("cpu", "cpu.cfs_quota_us") {
        group.write("cpu.cfs_period_us", "100000")?;
        group.write("cpu.cfs_quota_us", "20000")?;
        let processes = group.0.join("cgroup.procs");
        return Ok((None, Some(group), processes));
    }
    let group = Group::create("quota")?;
    if fs::write(group.path().join("cpu.max"), "20000 100000").is_err() {
        return skip("no control group with a quota of CPU time can be made");
    }
    let processes = group.path().join("cgroup.procs");
    Ok((Some(group), None, processes))
}

fn quota(test: &Context<'_>) -> Verdict {
    need_root()?;
    let (_new, _old, processes) = limited_group()?;
    let target = working(test, &["endless"])?;
    fs::write(&processes, target.pid().to_string())?;
    let recorded = record(test, target.pid(), &[]);
    end(target)?;
    let (profile, printed) = recorded?;
    expect_contains("the summary", &printed, "(0.20 CPUs) used up its CPU quota")?;
    expect_contains("the summary", &printed, "(an estimate)")?;
    let markers = report(test, &profile, &["--markers"])?;
    let rows = markers["markers"].as_array().into_iter().flatten();
    let marked = rows.filter(|row| row["kind"] == "CpuQuota").filter_map(|row| row["total_ns"].as_f64());
    let marked = marked.sum::<f64>() / 1e9;
    expect_measured(marked > 0.5, format_args!("{marked:.3} of a second is marked"))
}

/// Nobody opens the other end.
fn fifo(test: &Context<'_>) -> Verdict {
    let path = test.fresh("fifo");
    test.program("mkfifo").path(&path).run()?.succeeded()?;
    let target = test.program("cat").path(&path).start()?;
    wait_for_state(&target, "S")?;
    let recorded = record(test, target.pid(), &[]);
    end(target)?;
    let waits = report(test, &recorded?.0, &["--waits"])?;
    let wait = &waits["waits"][0];
    let (reason, object) = (wait["reason"].as_str(), wait["object"].as_str());
    let holds = reason == Some("pipe") && object == path.to_str();
    expect(holds, format_args!("{reason:?} {object:?}"))
}
