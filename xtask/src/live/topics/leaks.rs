//! The resources of a recorder while very many processes and threads come and go: descriptors, memory, ended
//! children. And the state of the programs after the recorder was killed.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq, expect_measured, need_root};
use super::group_folders::{leaves, own_group};
use super::invocation::{Invocation, Running};
use super::ptrace::children;
use super::recorded::Truth;
use super::running_targets::{end, is_alive, process_cpu_ms, working};
use super::test::Test;

/// Why some of these tests run alone.
const WHOLE: &str = "counts what recorders have left on the whole machine";

pub(super) const TESTS: &[Test] = &[
    Test::new("a_storm_of_processes_in_the_commands_group", |test| {
        launched(test, &[], &["storm", "vfork", STORM])
    })
    .exclusive(WHOLE),
    Test::new("a_storm_of_processes_by_a_plain_user", unprivileged).exclusive(WHOLE),
    Test::new("a_storm_of_processes_that_are_traced", |test| {
        launched(test, TRACED, &["storm", "vfork", STORM])
    })
    .exclusive(WHOLE),
    Test::new("a_storm_of_threads_in_the_commands_group", |test| launched(test, &[], &["churn", "1000"]))
        .exclusive(WHOLE),
    Test::new("a_storm_of_threads_that_are_traced", |test| launched(test, TRACED, &["churn", "300"]))
        .exclusive(WHOLE),
    Test::new("storms_below_attached_processes", attached).exclusive(WHOLE),
    Test::new("a_storm_below_a_traced_process", traced).exclusive(WHOLE),
    Test::new("storms_on_the_machine", |test| running(test, |_| vec!["-a".to_owned()])).exclusive(WHOLE),
    Test::new("storms_by_name", |test| running(test, |_| vec!["--name".to_owned(), "storm".to_owned()]))
        .exclusive(WHOLE),
    Test::new("storms_in_a_control_group", in_group).exclusive(WHOLE),
    Test::new("a_recorder_that_is_killed_harms_nobody", killed).exclusive(WHOLE),
    Test::new("a_command_survives_its_killed_tracer", killed_with_a_command).exclusive(WHOLE),
    Test::new("what_leaks_is_found", leaks_are_found).exclusive(WHOLE),
    Test::new("what_is_left_behind_is_found", leavings_are_found).exclusive(WHOLE),
];

/// The number of processes in a storm.
const STORM: &str = "2000";
/// The option that chooses ptrace.
const TRACED: &[&str] = &["--backend", "ptrace"];
/// The memory that the recorder may use for each process or thread, in kilobytes. It holds the name, the
/// mappings and the samples.
const KB_EACH: u64 = 4;

/// The resources of a process at one moment.
#[derive(Clone, Copy)]
struct ResourceUsage {
    /// The number of its descriptors, without one for each file on a disk. Events, pipes and the like count,
    /// and so does a second descriptor of the same file.
    descriptors: usize,
    /// Its private memory in kilobytes, without the kernel's rings.
    memory_kb: u64,
    /// Its children that have ended, and were not waited for.
    ended_children: usize,
}

impl ResourceUsage {
    fn by(pid: u32) -> Option<Self> {
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
        let all: Vec<_> = descriptors.filter_map(|entry| fs::metadata(entry.path()).ok()).collect();
        // The inode is compared, because the same path is another file for a process with another root.
        let files = all.iter().filter(|open| open.is_file()).map(|open| (open.dev(), open.ino()));
        let distinct = files.collect::<BTreeSet<_>>().len();
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let memory = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
        Some(Self {
            descriptors: all.len() - distinct,
            memory_kb: memory.trim().trim_end_matches(" kB").parse().ok()?,
            ended_children: children(pid).into_iter().filter(|child| has_ended(*child)).count(),
        })
    }
}

fn has_ended(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z'))
}

/// Observes a recorder's resources until a condition holds, and compares the later values with the earlier
/// ones.
fn watch(recorder: &Running<'_>, count: u64, mut is_over: impl FnMut() -> bool) -> Verdict {
    let mut looks = Vec::new();
    recorder.wait_until("the storm to be over", || {
        looks.extend(ResourceUsage::by(recorder.pid()));
        is_over()
    })?;
    expect(looks.len() > 20, format_args!("only {} looks", looks.len()))?;
    let (early, late) = looks.split_at(looks.len() / 2);
    let most = |looks: &[ResourceUsage], of: fn(&ResourceUsage) -> u64| {
        looks.iter().map(of).max().unwrap_or_default()
    };
    let grown = |of: fn(&ResourceUsage) -> u64| (most(early, of), most(late, of));
    let (before, after) = grown(|held| held.descriptors as u64);
    expect(after <= before + 4, format_args!("from {before} descriptors to {after}"))?;
    let (before, after) = grown(|held| held.memory_kb);
    let allowed = before + count * KB_EACH / 2 + 2048;
    // A reader that falls behind late also fills its pool late. A leak occurs the second time, too.
    expect_measured(after <= allowed, format_args!("from {before} kB of memory to {after}"))?;
    let ended = most(&looks, |held| held.ended_children as u64);
    expect(ended <= 1, format_args!("{ended} children were not waited for"))
}

/// Records a command that writes a file at its end.
fn launched(test: &Context<'_>, options: &[&str], args: &[&str]) -> Verdict {
    launched_by(test, options, args, |call| call)
}

fn launched_by<'a>(
    test: &'a Context<'a>,
    options: &[&str],
    args: &[&str],
    adapt: fn(Invocation<'a>) -> Invocation<'a>,
) -> Verdict {
    let prepared = test.record(args).options(options).with(adapt).prepare();
    let truth = prepared.truth;
    let recorder = prepared.call.start()?;
    // A thread needs as much memory as a process.
    let count = args[args.len() - 1].parse::<u64>()? * if args[0] == "churn" { 4 } else { 1 };
    // The file exists from the beginning. The command writes to it at its end.
    watch(&recorder, count, || fs::metadata(&truth).is_ok_and(|file| file.len() > 0))?;
    recorder.wait()?.succeeded()?;
    if crate::sys::is_root() && own_group().is_ok() {
        expect_eq("groups that are left", leaves()?, Vec::new())?;
    }
    Ok(())
}

fn unprivileged(test: &Context<'_>) -> Verdict {
    launched_by(test, &[], &["storm", "vfork", STORM], Invocation::by_plain_user)
}

/// Records two running storms, with options that depend on their process ids.
fn running(test: &Context<'_>, options: fn(&[u32]) -> Vec<String>) -> Verdict {
    need_root()?;
    let truths = [test.fresh("truth"), test.fresh("truth")];
    let storms = truths.each_ref().map(|truth| storm(test, truth));
    let [first, second] = storms;
    let storms = [first?, second?];
    let options = options(&storms.each_ref().map(Running::pid));
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let output = test.fresh("profile.json.gz");
    let recorder = test.nyquist(&["record", "-s", "-o"]).path(&output).args(&options).start()?;
    recorder.wait_until_recording()?;
    // With `-a`, all other processes of the machine are recorded, too.
    let count = 2 * STORM.parse::<u64>()? * if options == ["-a"] { 8 } else { 1 };
    watch(&recorder, count, || storms.iter().any(|storm| !is_alive(storm.pid())))?;
    for storm in storms {
        storm.wait()?.succeeded()?;
    }
    // A recorder that was attached to the processes has ended with them.
    let _ = recorder.signal(libc::SIGINT);
    recorder.wait()?.succeeded()?;
    for truth in truths {
        expect_eq("storms that ended as they should", Truth::read(&truth)?.len(), 1)?;
    }
    Ok(())
}

fn storm<'a>(test: &'a Context<'a>, truth: &Path) -> Result<Running<'a>, anyhow::Error> {
    let ready = test.fresh("ready");
    let call = test.program(test.workload("storm")).args(&["vfork", STORM]);
    let call = call.env("WORKLOAD_TRUTH", truth.display().to_string());
    let running = call.env("WORKLOAD_READY", ready.display().to_string()).start()?;
    running.wait_for_file(&ready)?;
    Ok(running)
}

fn attached(test: &Context<'_>) -> Verdict {
    running(test, |pids| vec!["-p".to_owned(), pids.iter().map(u32::to_string).collect::<Vec<_>>().join(",")])
}

fn traced(test: &Context<'_>) -> Verdict {
    let truth = test.fresh("truth");
    let storm = storm(test, &truth)?;
    let pid = storm.pid().to_string();
    let recorder = test.nyquist(&["record", "-s", "--backend", "ptrace", "-p", &pid]).start()?;
    recorder.wait_until_recording()?;
    watch(&recorder, STORM.parse()?, || !is_alive(storm.pid()))?;
    storm.wait()?.succeeded()?;
    recorder.wait()?.succeeded()?;
    Ok(())
}

fn in_group(test: &Context<'_>) -> Verdict {
    need_root()?;
    let group = own_group()?.join(format!("storms-{}", std::process::id()));
    fs::create_dir(&group)?;
    let truth = test.fresh("truth");
    let storm = storm(test, &truth)?;
    fs::write(group.join("cgroup.procs"), storm.pid().to_string())?;
    let path = group.display().to_string();
    let recorder = test.nyquist(&["record", "-s", "--cgroup", &path]).start()?;
    recorder.wait_until_recording()?;
    let watched = watch(&recorder, STORM.parse()?, || !is_alive(storm.pid()));
    storm.wait()?.succeeded()?;
    recorder.signal(libc::SIGINT)?;
    recorder.wait()?.succeeded()?;
    fs::remove_dir(&group)?;
    watched
}

/// When a recorder is killed, the recorded programs go on and are not traced, whatever the recorder was
/// doing.
fn killed(test: &Context<'_>) -> Verdict {
    for options in [&[][..], TRACED] {
        let target = working(test, &["endless", "2"])?;
        let pid = target.pid().to_string();
        let call = test.nyquist(&["record", "-s", "-p", &pid, "-o"]).path(&test.fresh("lost.json.gz"));
        let recorder = call.args(options).start()?;
        recorder.wait_until_recording()?;
        let begun = process_cpu_ms(target.pid())?;
        recorder
            .wait_until("some work", || process_cpu_ms(target.pid()).is_ok_and(|now| now > begun + 100.0))?;
        end(recorder)?;
        expect_goes_on(&target)?;
        end(target)?;
    }
    Ok(())
}

/// The same for a command that the recorder has launched. It has no other tracer, so the kernel must release
/// it.
fn killed_with_a_command(test: &Context<'_>) -> Verdict {
    let (ready, over) = (test.fresh("ready"), test.fresh("over"));
    let prepared = test.record(&["endless", "1", &over.display().to_string()]).options(TRACED).prepare();
    let recorder = prepared.call.env("WORKLOAD_READY", ready.display().to_string()).start()?;
    recorder.wait_for_file(&ready)?;
    let program = test.workload("endless");
    let Some(pid) = test.process_of(&program) else { return expect(false, "the command does not run") };
    let used = || process_cpu_ms(pid).unwrap_or_default();
    let begun = used();
    recorder.wait_until("some work", || used() > begun + 100.0)?;
    end(recorder)?;
    // `wait_until` needs a running program, and any program will do.
    let other = working(test, &["endless", "1"])?;
    let killed_at = used();
    other.wait_until("the command to go on", || used() > killed_at + 20.0)?;
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    fs::write(&over, "")?;
    end(other)?;
    expect(status.contains("TracerPid:\t0\n"), "it is still traced")
}

fn expect_goes_on(target: &Running<'_>) -> Verdict {
    let status = fs::read_to_string(format!("/proc/{}/status", target.pid()))?;
    expect(status.contains("TracerPid:\t0\n"), "it is still traced")?;
    for task in fs::read_dir(format!("/proc/{}/task", target.pid()))? {
        let path = task?.path().join("schedstat");
        let used = || -> Option<u64> { fs::read_to_string(&path).ok()?.split(' ').next()?.parse().ok() };
        let before = used();
        target.wait_until("each thread to go on", || used() > before)?;
    }
    Ok(())
}

/// Programs that leak in different ways, in sixty steps, and the message about each leak.
const LEAKING: [(&str, Option<&str>); 4] = [
    ("None", None),
    ("kept.append(os.open('/dev/null', os.O_RDONLY))", Some("descriptors")),
    ("kept.append(bytearray(os.urandom(1 << 16) * 4))", Some("kB of memory")),
    ("os.fork() or os._exit(0)", Some("children were not waited for")),
];

/// Runs the checks of the tests above on programs that do leak. A check that finds nothing there would find
/// nothing in a recorder.
fn leaks_are_found(test: &Context<'_>) -> Verdict {
    for (step, found) in LEAKING {
        let (begun, done) = (test.fresh("begun"), test.fresh("done"));
        let script = format!(
            "import os, sys, time\nkept = []\nopen(sys.argv[1], 'w').close()\nfor _ in range(60):\n    {step}\n    \
             time.sleep(0.01)\nopen(sys.argv[2], 'w').close()\ntime.sleep(1000)"
        );
        let program = test.program("python3").args(&["-c", &script]).path(&begun).path(&done).start()?;
        // Memory that the program needs to start is no leak, however long the start takes.
        program.wait_for_file(&begun)?;
        let verdict = watch(&program, 0, || done.exists());
        end(program)?;
        match (verdict, found) {
            (Err(Stop::Failed(printed) | Stop::Off(printed)), Some(found)) => {
                expect_contains(step, &printed, found)?;
            }
            (verdict, None) => verdict?,
            (_, Some(found)) => return expect(false, format_args!("{step}: nothing is said of {found}")),
        }
    }
    Ok(())
}

/// The same for a program that is still traced, and for a control group that was not removed.
fn leavings_are_found(test: &Context<'_>) -> Verdict {
    let target = working(test, &["endless", "2"])?;
    let pid = target.pid().to_string();
    let call = test.nyquist(&["record", "-s", "-p", &pid, "-o"]).path(&test.fresh("profile.json.gz"));
    let recorder = call.args(TRACED).start()?;
    recorder.wait_until_recording()?;
    let verdict = expect_goes_on(&target);
    recorder.signal(libc::SIGINT)?;
    let recorder_pid = recorder.pid();
    recorder.wait()?.succeeded()?;
    expect(matches!(verdict, Err(Stop::Failed(_))), "that it is traced was not found")?;
    expect_goes_on(&target)?;
    end(target)?;
    if crate::sys::is_root()
        && let Ok(own) = own_group()
    {
        let group = own.join(format!("nyquist-{recorder_pid}-left"));
        fs::create_dir(&group)?;
        let found = leaves();
        // The next recorder would also remove it.
        drop(fs::remove_dir(&group));
        expect(found?.contains(&group), "a group that is left was not found")?;
    }
    Ok(())
}
