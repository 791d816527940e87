//! Records a command, or a process with `-p PID`, and prints the number of events of each kind:
//! `raw [-r HZ] [-d SECONDS] (-p PID | COMMAND ARGS...)`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use nyquist_convert::event::{Event, EventKind, Pid, Timestamp, UserStack};
use nyquist_record::linux::perf::{Perf, PerfRecording};
use nyquist_record::linux::{Command, Options, RecordingTarget, launch};

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match run() {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("raw: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<u8, Failure> {
    let mut options = Options::default();
    let mut words = std::env::args_os().skip(1).peekable();
    let mut pid = None;
    while let Some(option) = words.next_if(|word| ["-r", "-d", "-p"].iter().any(|option| word == option)) {
        let value = words.next().and_then(|value| value.into_string().ok()).ok_or("a value is missing")?;
        match option.to_str() {
            Some("-r") => options.rate_hz = value.parse()?,
            Some("-d") => options.duration = Some(Duration::from_secs_f64(value.parse()?)),
            _ => pid = Some(Pid(value.parse()?)),
        }
    }
    match pid {
        Some(pid) => {
            let perf = Perf::open(RecordingTarget::Attach(vec![pid]), &options)?;
            consume(&perf.outcome().clone(), perf.record()?)?;
            Ok(0)
        }
        None => launched(words, &options),
    }
}

fn launched(words: impl Iterator<Item = OsString>, options: &Options) -> Result<u8, Failure> {
    let command = Command::from_words(words).ok_or("no command")?;
    let child = launch::prepare(&command)?;
    let perf = Perf::open(RecordingTarget::Child(child.pid()), options)?;
    let outcome = perf.outcome().clone();
    let recording = perf.record()?;
    let running = child.start()?;
    consume(&outcome, recording)?;
    let ended = running.wait()?;
    let rusage = (ended.user + ended.system).as_nanos() as f64;
    println!(
        "rusage: user {:?}, system {:?}: {:.0} periods",
        ended.user,
        ended.system,
        rusage * f64::from(outcome.rate_hz) / 1e9
    );
    Ok(ended.status.shell_code())
}

/// Statistics of the events.
#[derive(Default)]
struct Seen {
    kinds: BTreeMap<&'static str, u64>,
    kernel: u64,
    stack_bytes: u64,
    limited: u64,
    late: u64,
    complete_before: Timestamp,
    not_understood: u64,
    chunks: u64,
    cpu_time: BTreeMap<(u32, Option<u32>), u64>,
}

impl Seen {
    fn add(&mut self, event: &Event) {
        let name = match &event.kind {
            EventKind::Sample(sample) => {
                self.kernel += u64::from(sample.in_kernel);
                if let UserStack::Copied { stack, limited, .. } = &sample.user {
                    self.stack_bytes += stack.len() as u64;
                    self.limited += u64::from(*limited);
                }
                if let Some(time) = sample.cpu_time_ns {
                    self.cpu_time.insert((sample.tid.0, event.cpu), time);
                }
                "sample"
            }
            EventKind::Total { tid, cpu_time_ns, .. } => {
                self.cpu_time.insert((tid.0, event.cpu), *cpu_time_ns);
                "total"
            }
            EventKind::TotalInAll { .. } => "total in all",
            EventKind::SwitchOut(_) => "switch out",
            EventKind::SwitchStack(_) => "stack of a switch",
            EventKind::Wakeup(_) => "wakeup",
            EventKind::SwitchIn { .. } => "switch in",
            EventKind::Descheduled { .. } => "descheduled",
            EventKind::Waiting(_) => "waiting",
            EventKind::Occurrence(_) => "occurrence",
            EventKind::OccurrencesLost { .. } => "occurrences lost",
            EventKind::Marker(_) => "marker",
            EventKind::Counter(_) => "counter",
            EventKind::LiveStack(_) => "live stack",
            EventKind::Allocation(_) => "allocation",
            EventKind::Free(_) => "free",
            EventKind::HeapContents(_) => "contents of a heap",
            EventKind::MemoryDenied { .. } => "memory denied",
            EventKind::KernelCode { .. } | EventKind::KernelCodeGone { .. } => "code of the kernel",
            EventKind::Map(_) => "map",
            EventKind::Unmap { .. } => "unmap",
            EventKind::Fork { .. } => "fork",
            EventKind::Name { .. } => "name",
            EventKind::Exit { .. } => "exit",
            EventKind::Lost { .. } => "lost",
            EventKind::LostInAll { .. } => "lost in all",
            EventKind::Throttled => "throttled",
            EventKind::Unthrottled => "unthrottled",
            EventKind::Paused | EventKind::Resumed => "pause",
        };
        self.late += u64::from(event.time < self.complete_before);
        *self.kinds.entry(name).or_default() += 1;
    }
}

/// The CPU time of all threads of this process, in milliseconds (proc_pid_stat(5), in ticks of 10 ms).
fn own_cpu_ms() -> Result<u64, Failure> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let ticks = |at: usize| fields.get(at).and_then(|ticks| ticks.parse::<u64>().ok()).unwrap_or_default();
    Ok(10 * (ticks(11) + ticks(12)))
}

fn consume(
    outcome: &nyquist_record::linux::perf::PerfOutcome,
    mut recording: PerfRecording,
) -> Result<(), Failure> {
    println!("{outcome:?}");
    let mut seen = Seen::default();
    let print = std::env::var_os("RAW_EVENTS").is_some();
    let mut events = Vec::new();
    for chunk in &mut recording {
        let complete_before = chunk.complete_before();
        seen.chunks += 1;
        seen.not_understood += chunk.decode(&mut events);
        events.drain(..).for_each(|event| {
            if print && !matches!(event.kind, EventKind::Sample(_)) {
                println!("{event:?}");
            }
            seen.add(&event);
        });
        seen.complete_before = complete_before;
    }
    let summary = recording.finish();
    println!("the recorder's own CPU time: {} ms", own_cpu_ms()?);
    println!("{:?}", seen.kinds);
    println!(
        "in the kernel {}, stack bytes {}, limited {}, late {}, not understood {}, chunks {}",
        seen.kernel, seen.stack_bytes, seen.limited, seen.late, seen.not_understood, seen.chunks
    );
    println!("counted by thread and CPU: {} ns; {summary:?}", seen.cpu_time.values().sum::<u64>());
    Ok(())
}
