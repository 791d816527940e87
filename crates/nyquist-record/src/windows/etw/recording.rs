//! Opening and running a recording by events.

use std::io;
use std::os::windows::io::OwnedHandle;
use std::path::Path;
use std::sync::Arc;

use nyquist_convert::etw::EtwEvents;
use nyquist_convert::event::{Event, Pid, Timestamp};
use nyquist_etw::Clock;

use super::machine::WindowsMachine;
use super::session::KernelSession;
use crate::etw::{EtwPlan, EventDecoder, SessionResult, SessionSettings, StartedSession, rate_of};
use crate::recording_thread::RecordingThread;
use crate::windows::sys::process::Preference;
use crate::windows::sys::timer::Flag;
use crate::windows::sys::{clock, process, volumes};
use crate::windows::{OpenError, Options, RecordingTarget};

/// Nanoseconds in a second.
const NS_PER_SECOND: u64 = 1_000_000_000;

/// How long a sample waits for its stack, in nanoseconds. The user's part comes when the thread leaves the kernel.
const PATIENCE_NS: u64 = 2_000_000_000;

/// A session that runs, and whose events are not taken yet.
#[derive(Debug)]
pub(crate) struct EtwSession {
    ready: StartedSession<KernelSession, WindowsMachine>,
    waits: bool,
    /// Samples of each CPU per second.
    pub(crate) rate_hz: u32,
    /// The time between them in nanoseconds.
    pub(crate) interval_ns: u64,
}

/// A running recording.
pub(crate) type EtwRecording = RecordingThread<SessionResult>;

impl EtwSession {
    /// Starts a session for a target.
    pub(crate) fn open(
        target: &RecordingTarget,
        (options, waits): (&Options, bool),
        stop: Arc<Flag>,
    ) -> Result<Self, OpenError> {
        let named: Vec<u32> = target.named().iter().map(|pid| pid.0).collect();
        let handles = named.iter().map(|pid| Ok((*pid, open(*pid)?)));
        let handles = handles.collect::<Result<_, OpenError>>()?;
        let settings =
            SessionSettings { interval_ns: NS_PER_SECOND / u64::from(options.rate_hz.max(1)), waits };
        let plan = EtwPlan { named, duration: options.duration, settings };
        let machine = WindowsMachine { stop, named: handles };
        let by_suspending = *target != RecordingTarget::Machine;
        let ready = StartedSession::open(KernelSession::new(), machine, plan)
            .map_err(|denied| OpenError::Etw { denied, by_suspending })?;
        let interval_ns = ready.interval_ns().max(1);
        Ok(Self { ready, waits, rate_hz: rate_of(interval_ns), interval_ns })
    }

    /// Takes the events from now on.
    pub(crate) fn record(self) -> io::Result<EtwRecording> {
        let clock = Clock::performance_counter(clock::frequency());
        let folder = volumes::windows_folder();
        let events = EtwEvents::live(clock, PATIENCE_NS)
            .with_switches(self.waits)
            .on_machine(volumes::all(), folder.as_deref().and_then(Path::to_str));
        self.ready.record(KernelEvents(events), Preference::of_this_thread)
    }
}

/// Opens a process to know when it ends.
fn open(pid: u32) -> Result<OwnedHandle, OpenError> {
    let opened = process::open_to_ask(pid).ok().filter(|process| !process::has_ended(process));
    opened.ok_or(OpenError::NoSuchProcess { pid: Pid(pid) })
}

/// The decoder of the kernel's events.
#[derive(Debug)]
struct KernelEvents(EtwEvents);

impl EventDecoder for KernelEvents {
    fn push(&mut self, event: &nyquist_etw::Event<'_>, out: &mut Vec<Event>) {
        self.0.push(event, out);
    }

    fn complete_before(&self) -> Timestamp {
        self.0.complete_before()
    }

    fn finish(&mut self, out: &mut Vec<Event>) {
        self.0.finish(out);
    }
}
