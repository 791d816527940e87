//! Job control on a terminal: for the recorder as a job of a shell, and for the jobs of a recorded shell.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq, expect_measured, expect_within};
use super::invocation::{Finished, Invocation, Running};
use super::profile::{Profile, Thread};
use super::ptrace::{STOPPING_NS, by_both, children, expect_shares, has_stopped, state};
use super::recorded::{Recorded, Recording};
use super::running_targets::process_cpu_ms;
use super::signals::is_pending;
use super::test::{SHARES, Test};

pub(super) const TESTS: &[Test] = &[
    Test::new("ctrl_z_stops_the_recording_and_fg_resumes_it", plain_command).in_pairs(SHARES),
    Test::new("a_command_handles_ctrl_z_before_it_stops", handling_command).in_pairs(SHARES),
    Test::new("ctrl_z_stops_only_the_recorder_where_ignored", ignoring_command).in_pairs(SHARES),
    Test::new("a_recorder_that_goes_on_at_once_does_not_stop", withdrawn),
    Test::new("a_recorded_shell_controls_its_jobs", recorded_shell)
        .exclusive("a shell may report the end of a job late where other programs are busy"),
    Test::new("ctrl_backslash_ends_only_the_command", quit).in_pairs(SHARES),
];

/// Ctrl-Z, as a terminal sends it.
const CTRL_Z: &str = "\x1a";
/// Ctrl-\, as a terminal sends it.
const CTRL_BACKSLASH: &str = "\x1c";
/// How long a shell may take to report the end of a job.
const MAX_REPORT_DELAY: Duration = Duration::from_secs(30);
/// A shell with job control and without configuration, so that it is the same on every machine.
const SHELL: [&str; 5] = ["bash", "--norc", "--noprofile", "--noediting", "-i"];

/// A shell on its own terminal.
struct Shell<'a> {
    running: Running<'a>,
    /// The length of the terminal's output at the last input.
    seen: usize,
}

impl<'a> Shell<'a> {
    fn start(call: Invocation<'a>) -> Result<Self, anyhow::Error> {
        Ok(Self { running: call.env("PS1", "$ ").on_terminal().start()?, seen: 0 })
    }

    fn say(&mut self, line: &str) -> Result<(), anyhow::Error> {
        self.seen = self.running.shown_so_far().len();
        self.running.type_line(line)
    }

    fn press(&mut self, keys: &str) -> Result<(), anyhow::Error> {
        self.seen = self.running.shown_so_far().len();
        self.running.press(keys)
    }

    /// The output since the last input.
    fn answer(&self) -> String {
        self.running.shown_so_far().split_off(self.seen)
    }

    fn wait_for(&self, text: &str) -> Verdict {
        let waited =
            self.running.wait_until(&format!("the shell to say {text:?}"), || self.answer().contains(text));
        waited.map_err(|error| Stop::Failed(format!("{error:#}; it says {:?}", self.running.shown_so_far())))
    }

    fn wait_until_stopped(&self, pid: u32) -> Result<(), anyhow::Error> {
        self.running.wait_until("the program to stop", || has_stopped(pid))
    }

    /// Waits until a process has used more CPU time.
    fn wait_until_working(&self, pid: u32) -> Result<(), anyhow::Error> {
        self.wait_until_worked(pid, 20.0)
    }

    /// Waits until a process has used this much more CPU time.
    fn wait_until_worked(&self, pid: u32, ms: f64) -> Result<(), anyhow::Error> {
        let before = process_cpu_ms(pid)?;
        let works = || process_cpu_ms(pid).is_ok_and(|now| now > before + ms);
        self.running.wait_until("the program to go on", works)
    }

    /// Ends the shell with this status.
    fn leave(mut self, status: u8) -> Result<Finished, anyhow::Error> {
        self.say(&format!("exit {status}"))?;
        self.running.wait()
    }
}

/// A recorder as the foreground job of a shell, and the recorded command.
struct Job<'a> {
    shell: Shell<'a>,
    recorder: u32,
    program: u32,
    profile: std::path::PathBuf,
    truth: std::path::PathBuf,
}

impl<'a> Job<'a> {
    /// Starts a recording in a shell, and waits until its command works.
    fn start(test: &'a Context<'a>, recording: &Recording<'a>) -> Result<Self, Stop> {
        let (ready, prepared) = (test.fresh("ready"), recording.prepare());
        let call = test.program(SHELL[0]).args(&SHELL[1..]);
        let call = call.env("WORKLOAD_READY", ready.display().to_string());
        let mut shell = Shell::start(call.env("WORKLOAD_TRUTH", prepared.truth.display().to_string()))?;
        shell.say(&prepared.call.line())?;
        shell.running.wait_for_file(&ready)?;
        let recorder = only_child(shell.running.pid())?;
        let program = only_child(recorder)?;
        Ok(Self { shell, recorder, program, profile: prepared.profile, truth: prepared.truth })
    }

    fn press_ctrl_z(&mut self) -> Verdict {
        self.shell.press(CTRL_Z)?;
        self.shell.wait_for("Stopped")
    }

    /// Resumes the job in the foreground, and waits until it has ended with this status.
    fn bring_back(&mut self, status: u8) -> Verdict {
        self.shell.say("fg; echo ended=$?")?;
        self.shell.wait_for(&format!("ended={status}\r\n"))
    }

    /// Stops the job, and waits until the recorder and the program have stopped.
    fn stop(&mut self) -> Verdict {
        self.press_ctrl_z()?;
        self.shell.wait_until_stopped(self.program)?;
        expect_stopped(&[self.recorder, self.program])
    }

    /// Ends the shell and reads the recording. Checks that it contains all CPU time of the program.
    fn recorded(self, how: &str) -> Result<Recorded, Stop> {
        let finished = self.shell.leave(0)?.succeeded()?;
        let recorded = Recorded::read(finished, &self.profile, &self.truth)?;
        expect_within(how, recorded.profile.total(), recorded.truth()?.cpu * 1000.0, 0.05)?;
        Ok(recorded)
    }
}

fn only_child(pid: u32) -> Result<u32, Stop> {
    match children(pid)[..] {
        [child] => Ok(child),
        ref others => Err(Stop::Failed(format!("the children of {pid} are {others:?}"))),
    }
}

/// Checks that processes have stopped, and that they stay stopped.
fn expect_stopped(pids: &[u32]) -> Verdict {
    let used = || pids.iter().map(|pid| process_cpu_ms(*pid)).sum::<Result<f64, _>>();
    let before = used()?;
    // They are to stay stopped for this time.
    thread::sleep(Duration::from_millis(100));
    let states: String = pids.iter().map(|pid| state(*pid)).collect();
    expect(states.chars().all(|state| "Tt".contains(state)), format_args!("their states are {states}"))?;
    let used = used()? - before;
    let is_little = used * 1e6 < STOPPING_NS as f64;
    expect_measured(is_little, format_args!("they used {used} ms of CPU time while stopped"))
}

fn plain_command(test: &Context<'_>) -> Verdict {
    for (how, recording) in by_both(test, || test.record(&["shares", "1500"])) {
        let mut job = Job::start(test, &recording)?;
        // Stopping works the second time, too.
        for _ in 0..2 {
            job.stop()?;
            job.shell.say("jobs")?;
            job.shell.wait_for("Stopped")?;
            job.shell.say("fg")?;
            job.shell.wait_until_working(job.program)?;
        }
        job.press_ctrl_z()?;
        job.bring_back(0)?;
        expect_shares(&job.recorded(how)?)?;
    }
    Ok(())
}

/// The command has no handler for the signal, which ends it. The recording is still saved.
fn quit(test: &Context<'_>) -> Verdict {
    for (how, recording) in by_both(test, || test.record(&["endless", "1"])) {
        let mut job = Job::start(test, &recording)?;
        // After a stop that took long on a busy machine, ptrace takes no sample for up to 40 ms.
        job.shell.wait_until_worked(job.program, 300.0)?;
        job.shell.press(CTRL_BACKSLASH)?;
        job.shell.wait_for("Saved")?;
        let profile = Profile::read(&job.profile)?;
        let share = profile.total_share("main");
        expect_measured(share > 0.5, format_args!("{how}: the program has a share of {share:.3}"))?;
        expect_contains(how, &job.shell.answer(), "was ended by signal 3 (SIGQUIT)")?;
        job.shell.leave(0)?;
    }
    Ok(())
}

fn handling_command(test: &Context<'_>) -> Verdict {
    for (how, recording) in by_both(test, || test.record(&["tidies_up", "1500"])) {
        let mut job = Job::start(test, &recording)?;
        // Which process gets the signal first is random.
        for _ in 0..8 {
            job.stop()?;
            let shown = job.shell.answer();
            let is_in_order = shown.contains("tidied up") && !shown.contains("goes on");
            expect(is_in_order, format_args!("{how}: stopped, it has said {shown:?}"))?;
            job.shell.say("fg")?;
            job.shell.wait_for("goes on")?;
            job.shell.wait_until_working(job.program)?;
        }
        job.press_ctrl_z()?;
        job.bring_back(5)?;
        let found = job.recorded(how)?.profile.total_share("work_around_stops");
        expect_measured(found > 0.9, format_args!("{how}: {found:.3} of the time is in its work"))?;
    }
    Ok(())
}

/// The shell gets its terminal back, and the command continues to work.
fn ignoring_command(test: &Context<'_>) -> Verdict {
    let script = format!("'trap \"\" TSTP; exec {} 2500'", test.workload("shares").display());
    for (how, recording) in by_both(test, || test.record_command(&["bash", "-c", &script])) {
        let mut job = Job::start(test, &recording)?;
        job.press_ctrl_z()?;
        expect_stopped(&[job.recorder])?;
        job.shell.wait_until_working(job.program)?;
        job.bring_back(0)?;
        job.recorded(how)?;
    }
    Ok(())
}

/// The kernel treats every process so: `SIGCONT` cancels stop signals that have not taken effect yet.
fn withdrawn(test: &Context<'_>) -> Verdict {
    for (how, recording) in by_both(test, || test.record(&["shares", "2500"])) {
        let ready = test.fresh("ready");
        let prepared = recording.prepare();
        let running = prepared.call.env("WORKLOAD_READY", ready.display().to_string()).start()?;
        running.wait_for_file(&ready)?;
        let pid = running.pid();
        running.signal(libc::SIGTSTP)?;
        running.wait_until("SIGTSTP to be taken", || !is_pending(pid, libc::SIGTSTP))?;
        running.signal(libc::SIGCONT)?;
        // A recorder that stopped later would never end.
        running.wait_until("its end", || state(pid) == 'Z').with_context(|| how)?;
        running.wait()?.succeeded()?;
    }
    Ok(())
}

fn recorded_shell(test: &Context<'_>) -> Verdict {
    for (how, recording) in by_both(test, || test.record_command(&SHELL)) {
        let (ready, over, prepared) = (test.fresh("ready"), test.fresh("over"), recording.prepare());
        let call = prepared.call.env("WORKLOAD_READY", ready.display().to_string());
        let mut shell = Shell::start(call)?;
        let program = test.workload("endless");
        shell.say(&format!("{} 1 {}", program.display(), over.display()))?;
        shell.running.wait_for_file(&ready)?;
        let pid = test.process_of(&program).ok_or_else(|| Stop::Failed("the job is not there".into()))?;
        control(&mut shell, pid)?;
        let used = process_cpu_ms(pid)?;
        fs::write(&over, "")?;
        shell.wait_for("ended=0\r\n")?;
        read_in_background(&mut shell)?;
        expect_eq(&format!("{how}: the status"), shell.leave(7)?.code(), 7)?;
        let profile = Profile::read(&prepared.profile)?;
        let own = profile.threads.iter().filter(|thread| thread.process == "endless");
        let weight: f64 = own.map(Thread::total).sum();
        // After its CPU time was read last, it has worked for one more turn of its loop.
        let due = used * 0.95..used * 1.05 + 100.0;
        expect_measured(
            due.contains(&weight),
            format_args!("{how}: {weight} samples of the job, not {due:?}"),
        )?;
    }
    Ok(())
}

/// Stops and continues a foreground job in every possible way. At the end, the job is in the foreground.
fn control(shell: &mut Shell<'_>, pid: u32) -> Verdict {
    shell.press(CTRL_Z)?;
    shell.wait_for("Stopped")?;
    expect_stopped(&[pid])?;
    shell.say("jobs")?;
    shell.wait_for("Stopped")?;
    shell.say("bg")?;
    shell.wait_until_working(pid)?;
    shell.say("jobs")?;
    shell.wait_for("Running")?;
    shell.say("kill -STOP %1")?;
    shell.wait_until_stopped(pid)?;
    shell.say("jobs -l")?;
    shell.wait_for("Stopped (signal)")?;
    shell.say("fg; echo ended=$?")?;
    Ok(shell.wait_until_working(pid)?)
}

/// A background job that reads from the terminal is stopped by the kernel.
fn read_in_background(shell: &mut Shell<'_>) -> Verdict {
    shell.say("cat & echo job=$!.")?;
    shell.running.wait_until("the number of the job", || number_in(&shell.answer()).is_some())?;
    let pid = number_in(&shell.answer()).unwrap_or_default();
    shell.wait_until_stopped(pid)?;
    shell.say("jobs -l")?;
    shell.wait_for("Stopped (tty input)")?;
    shell.say("kill -KILL %1")?;
    let queried_at = shell.seen;
    shell.running.wait_until("the job to be killed", || matches!(state(pid), 'Z' | '?'))?;
    // A shell that waits for input reports the end of a job only with the next line. On a busy machine, bash may miss
    // the signal of the end while it handles that of the stop. Then it takes the end with that of its next child.
    let end = Instant::now() + MAX_REPORT_DELAY;
    while Instant::now() < end {
        shell.say("/bin/true; jobs; echo queried=$?.")?;
        shell.wait_for("queried=0.")?;
        if shell.running.shown_so_far().get(queried_at..).is_some_and(|shown| shown.contains("Killed")) {
            return Ok(());
        }
        // The shell is queried again until it has reported the end.
        thread::sleep(Duration::from_millis(10));
    }
    expect(false, format_args!("the shell never says that it was killed: {:?}", shell.answer()))
}

fn number_in(shown: &str) -> Option<u32> {
    shown.split("job=").find_map(|rest| rest.split_once('.')?.0.parse().ok())
}
