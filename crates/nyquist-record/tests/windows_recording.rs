//! Recordings of this program itself on Windows: shares, stacks, threads, children, exit codes, attaching. It has
//! no test harness, because its main thread is one of those that are recorded.

#[cfg(not(windows))]
fn main() {}

#[cfg(windows)]
fn main() {
    let argv: Vec<String> = std::env::args().collect();
    match argv.get(1).map(String::as_str) {
        Some("work") => work::run(argv.get(2..).unwrap_or_default()),
        _ => tests::run(),
    }
}

/// What is recorded: two functions with known shares.
#[cfg(windows)]
mod work {
    use std::hint::black_box;
    use std::process::{Command, exit};
    use std::thread;
    use std::time::Duration;

    /// The exit code of the program.
    pub(crate) const CODE: u32 = 300;

    /// Uses an amount of CPU time. Two copies of the loop may differ in speed by a half, because of where they lie in
    /// memory.
    #[inline(never)]
    fn burn(units: u64) -> u64 {
        let mut value = 1_u64;
        for _ in 0..units * 20_000 {
            value = black_box(value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
        value
    }

    #[inline(never)]
    fn seventy(rounds: u64) {
        black_box(burn(rounds * 7));
        black_box(());
    }

    #[inline(never)]
    fn thirty(rounds: u64) {
        black_box(burn(rounds * 3));
        black_box(());
    }

    #[inline(never)]
    fn both(times: u64) {
        for _ in 0..times {
            seventy(10);
            thirty(10);
        }
        black_box(());
    }

    #[inline(never)]
    fn on_a_thread(times: u64) {
        both(times);
        black_box(());
    }

    #[inline(never)]
    fn sleeper() {
        thread::sleep(Duration::from_secs(2));
        black_box(());
    }

    /// Works: `TIMES [thread] [sleep] [child] [forever]`.
    pub(crate) fn run(argv: &[String]) {
        let has = |requested: &str| argv.iter().any(|word| word == requested);
        let times: u64 = argv.first().and_then(|word| word.parse().ok()).unwrap_or(100);
        let thread = |name: &str, work: fn(u64)| {
            has(name).then(|| thread::Builder::new().name(name.into()).spawn(move || work(times)).unwrap())
        };
        let threads = [thread("thread", on_a_thread), thread("sleep", |_| sleeper())];
        let child = has("child").then(|| {
            let own = std::env::current_exe().unwrap();
            Command::new(own).args(["work", &argv[0]]).spawn().unwrap()
        });
        loop {
            both(times);
            if !has("forever") {
                break;
            }
        }
        threads.into_iter().flatten().for_each(|thread| thread.join().unwrap());
        if let Some(mut child) = child {
            child.wait().unwrap();
        }
        exit(CODE as i32);
    }
}

#[cfg(windows)]
mod tests {
    use std::ffi::OsString;
    use std::num::NonZeroUsize;
    use std::process::Command as Started;
    use std::time::{Duration, Instant};

    use nyquist_convert::event::{Event, EventKind, Pid, Timestamp};
    use nyquist_convert::{Converter, Options as Converted, Progress, Symbols, symbolicate};
    use nyquist_profile::{Meta, Profile, Thread};
    use nyquist_record::windows::backend::{Backend, Recording, RecordingSummary};
    use nyquist_record::windows::launch::{self, ExitStatus};
    use nyquist_record::windows::{
        self, Command, EndReason, OpenError, Options, RecordingTarget, SamplingMethod,
    };
    use nyquist_symbols::{Finder, KernelError};

    use super::work::CODE;

    const INTERVAL_NS: u64 = 1_000_000;

    pub(crate) fn run() {
        let tests: [(&str, fn()); 7] = [
            ("shares_and_stacks_are_those_of_the_program", shares_and_stacks),
            ("children_are_recorded", children_are_recorded),
            ("a_process_can_be_attached_to", attaching),
            ("the_command_is_ended_on_request", ending),
            ("what_cannot_be_recorded_says_why", refusals),
            ("the_kernels_events_are_recorded_or_refused", events),
            ("a_sleeping_thread_has_no_cpu_time", sleeping),
        ];
        let requested = std::env::args().nth(1);
        for (name, test) in
            tests.into_iter().filter(|(name, _)| requested.as_deref().is_none_or(|it| *name == it))
        {
            test();
            println!("test {name} ... ok");
        }
    }

    fn own_command(argv: &str) -> Command {
        let own = std::env::current_exe().unwrap().into_os_string();
        let argv = ["work"].into_iter().chain(argv.split(' ')).map(OsString::from);
        Command::from_words([own].into_iter().chain(argv)).unwrap()
    }

    struct TestRecording {
        profile: Profile,
        summary: RecordingSummary,
    }

    fn take(mut recording: Recording) -> TestRecording {
        let meta = Meta { interval: INTERVAL_NS, has_cpu_deltas: true, ..Meta::default() };
        let mut converter = Converter::new(Converted::new(windows::now(), meta));
        let mut events = Vec::new();
        for chunk in &mut recording {
            let complete_before = chunk.complete_before();
            assert_eq!(chunk.decode(&mut events), 0);
            for event in events.drain(..) {
                if std::env::var_os("PRINT_EVENTS").is_some() && !matches!(event.kind, EventKind::Sample(_)) {
                    println!("{event:?}");
                }
                converter.push(event);
            }
            converter.advance(complete_before);
        }
        let summary = recording.finish();
        if let Some(cpu_time_ns) = summary.total_cpu_time_ns {
            let kind = EventKind::TotalInAll { cpu_time_ns };
            converter.push(Event { time: Timestamp(0), cpu: None, kind });
        }
        let finished = converter.finish();
        let finder = Finder::default();
        let threads = NonZeroUsize::MIN;
        let symbols = Symbols { finder: &finder, kernel: |_| Err(KernelError::Empty), threads };
        let libs = finished.libs.sources();
        let profile = symbolicate(finished.profile, libs, symbols, &Progress::default()).profile;
        println!("late {}, truncated {}", finished.statistics.late, finished.statistics.truncated);
        print_summary(&summary, &profile);
        TestRecording { profile, summary }
    }

    fn print_summary(summary: &RecordingSummary, profile: &Profile) {
        let holds = summary.holds.unwrap_or_default();
        println!(
            "{:?}: {} suspensions, median {} us, 99th percentile {} us, CPU time {} ms",
            summary.reason,
            holds.count,
            holds.median_us,
            holds.percentile_99_us,
            summary.total_cpu_time_ns.unwrap_or_default() / 1_000_000
        );
        for thread in profile.threads() {
            let stacks = stacks(profile, thread);
            println!("  {} ({}): {} ms", thread.name, thread.tid, weight_of(&stacks, |_| true));
            let mut heaviest = stacks;
            heaviest.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
            heaviest.iter().take(5).for_each(|(weight, stack)| println!("    {weight} {}", stack.join(";")));
        }
    }

    fn record(argv: &str) -> (TestRecording, ExitStatus) {
        let child = launch::prepare(&own_command(argv)).unwrap();
        let backend = Backend::open(&RecordingTarget::Child(child.pid()), &Options::default()).unwrap();
        assert_eq!(backend.outcome().rate_hz, 1000);
        let recording = backend.record().unwrap();
        let running = child.start().unwrap();
        let recorded = take(recording);
        let ended = running.wait().unwrap();
        // Wine states times of another process here.
        println!("  the process has used {:?} in user code, {:?} in the kernel", ended.user, ended.system);
        (recorded, ended.status)
    }

    /// The CPU samples of a thread: weights, and the functions of stacks, outermost first.
    fn stacks(profile: &Profile, thread: &Thread) -> Vec<(u64, Vec<String>)> {
        let mut sums = std::collections::HashMap::new();
        for sample in (&thread.samples).into_iter().filter(|sample| !sample.off_cpu) {
            let frames = sample.stack.into_iter().flat_map(|stack| profile.stack_frames(stack));
            let mut names: Vec<_> = frames.map(|frame| profile.func_name(frame.func).to_owned()).collect();
            names.reverse();
            *sums.entry(names).or_insert(0) += sample.weight;
        }
        sums.into_iter().map(|(names, weight)| (weight, names)).collect()
    }

    fn weight_of(stacks: &[(u64, Vec<String>)], fits: impl Fn(&[String]) -> bool) -> u64 {
        stacks.iter().filter(|(_, names)| fits(names)).map(|(weight, _)| weight).sum()
    }

    fn thread<'a>(profile: &'a Profile, has: &str) -> &'a Thread {
        let is_it = |thread: &&Thread| {
            stacks(profile, thread).iter().any(|(_, names)| names.iter().any(|name| name.contains(has)))
        };
        profile.threads().iter().find(is_it).unwrap_or_else(|| panic!("no thread runs {has}"))
    }

    /// Asserts the shares of the two functions, and that stacks reach a root. Under Wine, a suspension takes
    /// milliseconds, so a second has some dozen samples only, and recordings have to be long.
    fn assert_shares(profile: &Profile, thread: &Thread, roots: &[&str]) {
        let stacks = stacks(profile, thread);
        let all = weight_of(&stacks, |_| true) as f64;
        let share =
            |name: &str| weight_of(&stacks, |names| names.iter().any(|it| it.contains(name))) as f64 / all;
        let (seventy, thirty) = (share("seventy"), share("thirty"));
        println!("  {}: seventy {seventy:.3}, thirty {thirty:.3} of {all}", thread.name);
        assert!((seventy - 0.7).abs() < 0.08 && (thirty - 0.3).abs() < 0.08, "{seventy} {thirty}");
        let has = |names: &[String], root: &str| names.iter().any(|name| name.contains(root));
        let whole = weight_of(&stacks, |names| roots.iter().all(|root| has(names, root))) as f64 / all;
        assert!(whole > 0.9, "{whole} of the stacks have {roots:?}");
    }

    fn shares_and_stacks() {
        let (recorded, status) = record("400 thread");
        let profile = &recorded.profile;
        assert_eq!(status, ExitStatus::Code(CODE));
        assert_eq!(recorded.summary.reason, EndReason::Exited);
        assert_shares(profile, thread(profile, "work::run"), &["work::both", "work::run", "::main"]);
        assert_shares(profile, thread(profile, "on_a_thread"), &["on_a_thread", "thread_start"]);
        assert_eq!(thread(profile, "on_a_thread").name, "thread");
        assert_eq!(profile.processes().len(), 1);
        let counted = Duration::from_nanos(recorded.summary.total_cpu_time_ns.unwrap());
        let all: u64 = profile.threads().iter().map(|it| weight_of(&stacks(profile, it), |_| true)).sum();
        let ratio = all as f64 / 1000.0 / counted.as_secs_f64();
        assert!((0.9..1.1).contains(&ratio), "samples stand for {all} ms of {counted:?}");
    }

    fn children_are_recorded() {
        let (recorded, status) = record("400 child");
        assert_eq!(status, ExitStatus::Code(CODE));
        let profile = &recorded.profile;
        assert_eq!(profile.processes().len(), 2, "{:?}", profile.processes());
        for thread in profile.threads().iter().filter(|thread| thread.is_main) {
            assert!(thread.name.starts_with("windows_recording"), "{}", thread.name);
            assert_shares(profile, thread, &["work::both", "work::run", "::main"]);
        }
    }

    fn attaching() {
        let command = own_command("20 thread forever");
        let mut started = Started::new(&command.program).args(&command.args).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(300));
        let options = Options { duration: Some(Duration::from_secs(8)), ..Options::default() };
        let pid = Pid(started.id());
        let backend = Backend::open(&RecordingTarget::Attach(vec![pid]), &options).unwrap();
        let recorded = take(backend.record().unwrap());
        assert!(started.try_wait().unwrap().is_none(), "it lives on");
        assert!(windows::processes_named(|name| name.starts_with("windows_recording")).contains(&pid));
        started.kill().unwrap();
        started.wait().unwrap();
        assert!(windows::process_has_ended(pid.0));
        assert_eq!(recorded.summary.reason, EndReason::Duration);
        let profile = &recorded.profile;
        assert_shares(profile, thread(profile, "work::run"), &["work::both", "work::run", "::main"]);
        let used = recorded.summary.total_cpu_time_ns.unwrap();
        assert!((1_600_000_000..17_000_000_000).contains(&used), "{used}");
    }

    fn ending() {
        let child = launch::prepare(&own_command("20 forever")).unwrap();
        let backend = Backend::open(&RecordingTarget::Child(child.pid()), &Options::default()).unwrap();
        let recording = backend.record().unwrap();
        let running = child.start().unwrap();
        let (stop, signaller) = (recording.stop_handle(), running.signaller());
        let ender = std::thread::spawn(move || {
            // The recording is stopped at some time, from another thread.
            std::thread::sleep(Duration::from_millis(300));
            stop.stop();
        });
        let recorded = take(recording);
        ender.join().unwrap();
        assert_eq!(recorded.summary.reason, EndReason::Stopped);
        signaller.send(windows::signals::EndSignal::Interrupt.number()).unwrap();
        assert_eq!(running.wait().unwrap().status.shell_code(), 0xc000_013a);
        signaller.send(windows::signals::KILL).unwrap();
        let never_started = launch::prepare(&own_command("20 forever")).unwrap();
        let pid = never_started.pid();
        drop(never_started);
        let late = Instant::now() + Duration::from_secs(10);
        while !windows::process_has_ended(pid.0) {
            assert!(Instant::now() < late, "it has not ended");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn refusals() {
        let open = |pid| Backend::open(&RecordingTarget::Attach(vec![Pid(pid)]), &Options::default());
        let error = open(0x7fff_fff0).unwrap_err();
        assert_eq!(error.no_such_process(), Some(Pid(0x7fff_fff0)));
        let error = open(std::process::id()).unwrap_err();
        assert!(matches!(error, OpenError::Itself { .. }), "{error}");
        let command = Command::from_words(["no-such-program".into()]).unwrap();
        let error = launch::prepare(&command).unwrap_err();
        assert_eq!(error.exit_code(), 127, "{error}");
    }

    fn events() {
        let child = launch::prepare(&own_command("300")).unwrap();
        let options = Options { method: SamplingMethod::Etw { waits: false }, ..Options::default() };
        match Backend::open(&RecordingTarget::Child(child.pid()), &options) {
            Ok(backend) => {
                let recording = backend.record().unwrap();
                child.start().unwrap();
                assert_eq!(take(recording).profile.processes().len(), 1);
            }
            Err(error) => {
                println!("  {error}");
                assert!(matches!(error, OpenError::Etw { .. }), "{error}");
                assert!(error.advice().iter().any(|hint| hint.contains("--backend suspend")));
            }
        }
    }

    fn sleeping() {
        let (recorded, _) = record("20 sleep");
        let profile = &recorded.profile;
        let sleeper = profile.threads().iter().find(|thread| thread.name == "sleep").unwrap();
        let used = weight_of(&stacks(profile, sleeper), |_| true);
        assert!(used < 60, "it has {used} ms of CPU time");
        let waited: u64 =
            (&sleeper.samples).into_iter().filter(|it| it.off_cpu).map(|sample| sample.weight).sum();
        assert!((1500..2500).contains(&waited), "it has waited {waited} ms");
    }
}
