//! Becoming the tracer of a process. The sampling thread itself must do so, because the kernel binds the
//! tracee to it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::{fs, io};

use super::outcome::{Notice, OpenError, PtraceOutcome};
use super::recording::PtraceRecording;
use super::subject::TracedTarget;
use super::tracer::{TracePlan, Tracer, TracerResult};
use crate::Chunk;
use crate::linux::options::Options;
use crate::linux::stop::StopHandle;
use crate::linux::sys::poll;
use crate::linux::{cpus, limits};

/// At a higher rate than this, a running thread would be stopped for a third of its time.
const MAX_RATE_HZ: u32 = 10_000;

/// Information to be reported about a recording by ptrace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PtraceContext {
    /// Why perf was not used, and what would allow it.
    pub instead_of_perf: Option<String>,
    /// The program that loses the privileges that its file gives it.
    pub loses_privileges: Option<PathBuf>,
}

/// Traced processes, ready to be recorded. Dropping it detaches from them.
#[derive(Debug)]
pub struct Ptrace {
    outcome: PtraceOutcome,
    go: Sender<()>,
    recording: PtraceRecording,
}

impl Ptrace {
    /// Becomes the tracer of all processes of the target. They keep running meanwhile.
    pub fn open(target: TracedTarget, options: &Options, context: PtraceContext) -> Result<Self, OpenError> {
        if !options.cpus.is_empty() {
            return Err(OpenError::CpusRequested);
        }
        check_machine()?;
        // Each traced thread uses two descriptors while there are enough.
        limits::raise_descriptor_limit();
        let mut notices = Vec::new();
        let rate_hz = options.rate_hz.clamp(1, MAX_RATE_HZ);
        if options.rate_hz > rate_hz {
            notices.push(Notice::RateLowered { requested_hz: options.rate_hz, allowed_hz: rate_hz });
        }
        let stop = Arc::new(poll::event_counter().map_err(system("no event counter can be made"))?);
        let (chunk_sender, chunks) = channel();
        let waiting = Arc::default();
        let signal_stacks = Arc::default();
        let paused = Arc::new(AtomicBool::new(options.starts_paused));
        let plan = TracePlan {
            target,
            interval_ns: 1_000_000_000 / u64::from(rate_hz),
            duration: options.duration,
            cpus: cpus::online().map_or(1, |cpus| cpus.len()),
            most_copied: options.stack_bytes.map_or(usize::MAX, |bytes| bytes as usize),
            wait_reasons: options.wait_reasons,
            stop: Arc::clone(&stop),
            waiting: Arc::clone(&waiting),
            paused: Arc::clone(&paused),
            attaching: Arc::default(),
            signal_stacks: Arc::clone(&signal_stacks),
            loses_privileges: context.loses_privileges.clone(),
        };
        let (go, begin) = channel();
        let (tracer, left_out) = start(plan, chunk_sender, begin)?;
        notices.extend(left_out);
        let recording = PtraceRecording {
            chunks,
            waiting,
            tracer: Some(tracer),
            stop: StopHandle { counter: stop },
            paused,
            signal_stacks,
            end: None,
        };
        let PtraceContext { instead_of_perf, loses_privileges } = context;
        let loses_privileges = loses_privileges.map(|program| Notice::LosesPrivileges { program });
        let outcome = PtraceOutcome { rate_hz, instead_of_perf, loses_privileges, notices };
        Ok(Self { outcome, go, recording })
    }

    /// What is recorded, and how.
    pub fn outcome(&self) -> &PtraceOutcome {
        &self.outcome
    }

    /// Starts recording: an attached process at once, a child when it calls exec.
    pub fn record(self) -> PtraceRecording {
        // If the tracer has ended, the recording has ended too.
        let _ = self.go.send(());
        self.recording
    }
}

/// Starts the tracing thread, waits until it traces, and returns a notice of what it had to leave out.
fn start(
    plan: TracePlan,
    chunks: Sender<Chunk>,
    begin: Receiver<()>,
) -> Result<(JoinHandle<TracerResult>, Option<Notice>), OpenError> {
    let (sender, opened) = channel();
    let attaching = Arc::clone(&plan.attaching);
    let thread = std::thread::Builder::new().name("nyquist-tracer".into());
    let run = move || match Tracer::seize(plan, chunks) {
        Ok((mut tracer, left_out)) => {
            let _ = sender.send(Ok(left_out));
            // When the thread ends, the kernel detaches it from all that it traces.
            if tracer.wait_for(&begin) { tracer.run() } else { TracerResult::default() }
        }
        Err(error) => {
            let _ = sender.send(Err(error));
            TracerResult::default()
        }
    };
    let tracer = thread.spawn(run).map_err(system("no thread can be started"))?;
    attaching.wait(&opened)?.map(|left_out| (tracer, left_out))
}

/// Whether the kernel provides the required information about threads.
fn check_machine() -> Result<(), OpenError> {
    let lacks = |file: &str| fs::read(file).is_err();
    if lacks("/proc/self/schedstat") {
        return Err(OpenError::Lacking {
            what: "/proc/self/schedstat cannot be read: the kernel does not count the time of threads (CONFIG_SCHED_INFO), or /proc is not mounted",
        });
    }
    if lacks("/proc/self/syscall") {
        return Err(OpenError::Lacking { what: "/proc/self/syscall cannot be read" });
    }
    Ok(())
}

fn system(what: &'static str) -> impl Fn(io::Error) -> OpenError {
    move |source| OpenError::System { what, source }
}
