//! Programs of a user who serves their files, and sometimes does not. A recorder of root's must not wait for that user.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, need_root, skip};
use super::invocation::{Invocation, PLAIN_USER, Running};
use super::profile::{Profile, Thread};
use super::running_targets::{WORK, end, process_cpu_ms, working};
use super::test::{SHARES, Test};

pub(super) const TESTS: &[Test] = &[
    Test::new("files_of_a_users_own_file_system_give_names", served).in_pairs(SHARES),
    Test::new("files_that_are_withheld_end_no_recording", withheld_before).in_pairs(SHARES),
    Test::new("files_withheld_meanwhile_end_no_recording", withheld_meanwhile).in_pairs(SHARES),
    Test::new("memory_that_is_withheld_ends_no_recording", withheld_memory).in_pairs(SHARES),
    Test::new("withheld_arguments_end_no_recording", withheld_arguments)
        .exclusive("every program that lists processes waits for this one"),
    Test::new("an_exec_that_waits_stops_no_recording", withheld_exec)
        .exclusive("every program that lists processes waits for this one"),
    Test::new("an_exec_after_the_check_stops_no_recording", exec_after_check)
        .exclusive("every program that lists processes waits for this one"),
    Test::new("doctor_waits_for_no_withheld_file", doctor),
    Test::new("withheld_files_end_no_machine_recording", withheld_on_machine)
        .exclusive("records the whole machine"),
];

const BY_PTRACE: [&str; 6] = ["record", "-s", "-d", "1", "--backend", "ptrace"];

/// A program on a file system of a plain user.
struct Served<'a> {
    server: Running<'a>,
    pid: u32,
    /// As soon as it exists, nothing is served.
    withholds: PathBuf,
}

impl<'a> Served<'a> {
    /// Starts the program, and waits until it works.
    fn start(test: &'a Context<'a>, args: &[&str]) -> Result<Self, Stop> {
        need_root()?;
        let folder = test.fresh("own");
        fs::create_dir(&folder)?;
        chown(&folder, Some(PLAIN_USER), Some(PLAIN_USER))?;
        let (base, ready, withholds) = (folder.join("base"), folder.join("ready"), test.fresh("withholds"));
        fs::create_dir(&base)?;
        chown(&base, Some(PLAIN_USER), Some(PLAIN_USER))?;
        let call = test.program(test.workload("withholds")).path(&base).path(&withholds);
        let call = call.path(&test.workload(args[0])).args(&args[1..]);
        let call = call.env("WORKLOAD_READY", ready.display().to_string()).by_plain_user();
        let call = match device_for_users(test, &folder)? {
            Some(device) => call.env("WORKLOAD_FUSE", device.display().to_string()),
            None => call,
        };
        let server = call.start()?;
        if server.wait_for_file(&ready).is_err() {
            let finished = server.wait()?;
            return match finished.code() {
                77 => skip(format_args!("a user cannot serve files here: {}", finished.stderr.trim())),
                _ => Err(anyhow::anyhow!("the program does not run: {}", finished.summary()).into()),
            };
        }
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", server.pid()))?;
        let pid = children.trim().parse().map_err(|_| anyhow::anyhow!("no program in {children:?}"))?;
        Ok(Self { server, pid, withholds })
    }

    /// Withholds the files from now on.
    fn withhold(&self) -> Verdict {
        File::create(&self.withholds)?;
        Ok(())
    }

    /// Ends the file system, and with it all waiting.
    fn end(self) -> Verdict {
        end(self.server)
    }
}

/// A device of file systems that every user can open, if the machine's own is for root alone: udev opens it to all,
/// and containers have no udev.
fn device_for_users(test: &Context<'_>, folder: &Path) -> Result<Option<PathBuf>, Stop> {
    let Ok(own) = fs::metadata("/dev/fuse") else { return skip("there is no /dev/fuse") };
    if own.permissions().mode() & 0o006 == 0o006 {
        return Ok(None);
    }
    let device = folder.join("fuse");
    test.program("mknod").args(&["-m", "666"]).path(&device).args(&["c", "10", "229"]).run()?.succeeded()?;
    Ok(Some(device))
}

/// A recording that was ended by a signal.
struct Ended {
    profile: Profile,
    stderr: String,
}

/// Records with these options until each process has worked, calls `meanwhile`, and ends the recording by a signal.
fn record(
    test: &Context<'_>,
    options: &[&str],
    pids: &[u32],
    meanwhile: impl FnOnce() -> Verdict,
    signal: i32,
) -> Result<Ended, Stop> {
    let output = test.fresh("profile.json.gz");
    let recorder = test.nyquist(&["record", "-s", "-o"]).path(&output).args(options).start()?;
    until_worked(recorder, &output, pids, meanwhile, signal)
}

fn until_worked(
    recorder: Running<'_>,
    output: &Path,
    pids: &[u32],
    meanwhile: impl FnOnce() -> Verdict,
    signal: i32,
) -> Result<Ended, Stop> {
    let used = || pids.iter().map(|pid| process_cpu_ms(*pid)).collect::<Result<Vec<f64>, _>>();
    recorder.wait_until_recording()?;
    let begun = used()?;
    recorder.wait_until("the processes to work", || {
        used().is_ok_and(|now| now.iter().zip(&begun).all(|(now, begun)| now - begun > WORK))
    })?;
    meanwhile()?;
    recorder.signal(signal)?;
    let finished = recorder.wait()?.succeeded()?;
    Ok(Ended { profile: Profile::read(output)?, stderr: finished.stderr })
}

/// The share of a process's time that a function has.
fn share_in(profile: &Profile, pid: u32, function: &str) -> f64 {
    let of_process = |thread: &&Thread| thread.pid == pid.to_string();
    let (mut all, mut with) = (0.0, 0.0);
    for (stack, weight) in profile.threads.iter().filter(of_process).flat_map(Thread::stacks) {
        all += weight;
        with += if stack.iter().any(|frame| frame.function == function) { weight } else { 0.0 };
    }
    if all > 0.0 { with / all } else { 0.0 }
}

fn expect_named(profile: &Profile, pid: u32) -> Verdict {
    let share = share_in(profile, pid, "main_loop");
    expect(share > 0.5, format_args!("main_loop has {share:.3} of the time of process {pid}"))
}

/// The process has its time, and the user is told why it has no names.
fn expect_withheld(ended: &Ended, pid: u32) -> Verdict {
    let time: f64 =
        ended.profile.threads.iter().filter(|it| it.pid == pid.to_string()).map(Thread::total).sum();
    expect(time > WORK / 2.0, format_args!("process {pid} has {time} ms"))?;
    expect_contains("stderr", &ended.stderr, "gives no access to its files or memory")
}

/// Rootless containers have such file systems.
fn served(test: &Context<'_>) -> Verdict {
    let served = Served::start(test, &["endless", "1"])?;
    let pid = served.pid.to_string();
    let ended = record(test, &["-p", &pid], &[served.pid], || Ok(()), libc::SIGINT)?;
    expect_named(&ended.profile, served.pid)?;
    served.end()
}

fn withheld_before(test: &Context<'_>) -> Verdict {
    let served = Served::start(test, &["endless", "1"])?;
    let other = working(test, &["endless", "1"])?;
    served.withhold()?;
    let pids = format!("{},{}", served.pid, other.pid());
    let ended = record(test, &["-p", &pids], &[served.pid, other.pid()], || Ok(()), libc::SIGINT)?;
    expect_withheld(&ended, served.pid)?;
    expect_named(&ended.profile, other.pid())?;
    served.end()?;
    end(other)
}

/// The names are looked up when nothing is served any more.
fn withheld_meanwhile(test: &Context<'_>) -> Verdict {
    let served = Served::start(test, &["endless", "1"])?;
    let other = working(test, &["endless", "1"])?;
    let pids = format!("{},{}", served.pid, other.pid());
    let both = [served.pid, other.pid()];
    let ended = record(test, &["-p", &pids], &both, || served.withhold(), libc::SIGTERM)?;
    let time: f64 = ended.profile.threads.iter().map(Thread::total).sum();
    expect(time > WORK, format_args!("the profile has {time} ms"))?;
    expect_named(&ended.profile, other.pid())?;
    served.end()?;
    end(other)
}

/// The stacks of threads that wait are read from their processes.
fn withheld_memory(test: &Context<'_>) -> Verdict {
    let served = Served::start(test, &["withheld_memory", "@"])?;
    served.withhold()?;
    let pid = served.pid.to_string();
    let ended = record(test, &["--off-cpu", "-p", &pid], &[served.pid], || Ok(()), libc::SIGHUP)?;
    expect_withheld(&ended, served.pid)?;
    served.end()
}

fn withheld_arguments(test: &Context<'_>) -> Verdict {
    let served = Served::start(test, &["withheld_memory", "@", "arguments"])?;
    served.withhold()?;
    let pid = served.pid.to_string();
    let options = ["--include-args=3", "-p", &pid];
    let ended = record(test, &options, &[served.pid], || Ok(()), libc::SIGINT)?;
    expect_withheld(&ended, served.pid)?;
    served.end()
}

fn withheld_exec(test: &Context<'_>) -> Verdict {
    let served = Served::start(test, &["withheld_exec", "@"])?;
    let other = working(test, &["endless", "1"])?;
    let verdict = records_beside_exec(test, &served, &other);
    // Also what follows a failure looks at all processes.
    served.end()?;
    verdict?;
    end(other)
}

fn records_beside_exec(test: &Context<'_>, served: &Served<'_>, other: &Running<'_>) -> Verdict {
    served.withhold()?;
    crate::sys::signal_process(served.pid, libc::SIGUSR1)?;
    // It only works before, so it sleeps for the file system.
    let status = format!("/proc/{}/status", served.pid);
    let waits = || fs::read_to_string(&status).is_ok_and(|text| text.contains("State:\tS"));
    other.wait_until("exec to wait", waits)?;
    let both = format!("{},{}", served.pid, other.pid());
    let name = ["--name", "endless"];
    for options in [&["-a", "--off-cpu"][..], &["--off-cpu", "-p", &both], &name] {
        let ended = record(test, options, &[other.pid()], || Ok(()), libc::SIGINT)?;
        expect_named(&ended.profile, other.pid())?;
    }
    let commands =
        [&["record", "-s", "-d", "1"][..], &BY_PTRACE, &["stat", "-d", "1"], &["top", "-b", "-n", "1"]];
    for command in commands {
        let refused = test.nyquist(command).args(&["-p", &served.pid.to_string()]).run()?;
        expect_contains("stderr", &refused.stderr, "it calls exec, which waits for a file system")?;
        expect(refused.code() == 1, format_args!("the status is {}", refused.code()))?;
    }
    let looked = test.nyquist(&["doctor", &served.pid.to_string()]).run()?;
    expect_contains("findings", &looked.stdout_text(), "it calls exec, which waits for a file system")?;
    expect_contains("findings", &looked.stdout_text(), "gives no access to its files or memory")
}

/// The files of rootless containers are found, and nothing is waited for.
fn doctor(test: &Context<'_>) -> Verdict {
    let served = Served::start(test, &["endless", "1"])?;
    let pid = served.pid.to_string();
    let looked = test.nyquist(&["doctor", &pid]).run()?.succeeded()?.stdout_text();
    expect_contains("findings", &looked, "names, lines and inlined calls from its debug info")?;
    served.withhold()?;
    let looked = test.nyquist(&["doctor", &pid]).run()?.succeeded()?.stdout_text();
    served.end()?;
    expect_contains("findings", &looked, "gives no access to its files or memory")?;
    expect_contains("findings", &looked, "or withheld")
}

/// The process answers when it is asked, and then calls exec.
fn exec_after_check(test: &Context<'_>) -> Verdict {
    let other = working(test, &["endless", "1"])?;
    for is_first in [true, false] {
        let served = Served::start(test, &["withheld_exec", "@"])?;
        let verdict = records_the_other(test, &served, &other, is_first);
        // Also what follows a failure looks at all processes.
        served.end()?;
        verdict?;
    }
    for command in [&["record", "-s", "-d", "1"][..], &BY_PTRACE, &["stat", "-d", "1"]] {
        let served = Served::start(test, &["withheld_exec", "@"])?;
        let pid = served.pid.to_string();
        let refused = between(test.nyquist(command).args(&["-p", &pid]), test, &served).run();
        served.end()?;
        let refused = refused?;
        expect_contains("stderr", &refused.stderr, "it calls exec, which waits for a file system")?;
        expect(refused.code() == 1, format_args!("the status is {}", refused.code()))?;
    }
    end(other)
}

/// Lets the process begin its exec when its events are opened.
fn between<'a>(call: Invocation<'a>, test: &Context<'_>, served: &Served<'_>) -> Invocation<'a> {
    call.env("LD_PRELOAD", test.workload("libexec_between.so").display().to_string())
        .env("WORKLOAD_EXEC_OF", served.pid.to_string())
        .env("WORKLOAD_WITHHOLDS", served.withholds.display().to_string())
}

fn records_the_other(
    test: &Context<'_>,
    served: &Served<'_>,
    other: &Running<'_>,
    is_first: bool,
) -> Verdict {
    let pids = if is_first { [served.pid, other.pid()] } else { [other.pid(), served.pid] };
    let pids = format!("{},{}", pids[0], pids[1]);
    let output = test.fresh("profile.json.gz");
    let call = test.nyquist(&["record", "-s", "-o"]).path(&output).args(&["-p", &pids]);
    let ended =
        until_worked(between(call, test, served).start()?, &output, &[other.pid()], || Ok(()), libc::SIGINT)?;
    expect_contains("stderr", &ended.stderr, "gives no access to its files or memory")?;
    expect_named(&ended.profile, other.pid())
}

fn withheld_on_machine(test: &Context<'_>) -> Verdict {
    let served = Served::start(test, &["endless", "1"])?;
    let other = working(test, &["endless", "1"])?;
    served.withhold()?;
    let both = [served.pid, other.pid()];
    let ended = record(test, &["-a"], &both, || Ok(()), libc::SIGINT)?;
    expect_withheld(&ended, served.pid)?;
    expect_named(&ended.profile, other.pid())?;
    served.end()?;
    end(other)
}
