//! Opening the events and mapping their rings: with all that the machine allows, and less where it must be.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use nyquist_convert::event::{Pid, Timestamp};
use nyquist_convert::perf::{CounterMeaning, PerfEvents, Period};
use nyquist_object::elf::Architecture;

use super::attr::{Features, Sampling, Trigger, clock, period_ns, sampling, sideband, totals};
use super::events::Events;
use super::outcome::{Hint, Notice, OpenError, Outcome};
use super::pool::{BUFFERS, Need, Pool};
use super::reader::{Reader, RingSource};
use super::recording::{Initial, Recording, StopHandle};
use super::skim::SampleLayout;
use super::totals::ThreadTotals;
use crate::linux::budget::{Allowance, RingPlan, TOTALS_PAGES};
use crate::linux::pmu::CoreUnits;
use crate::linux::sys::clock::monotonic_ns;
use crate::linux::sys::limits::page_size;
use crate::linux::sys::ring::Ring;
use crate::linux::sys::{event, poll};
use crate::linux::{cpus, kernel, limits, proc};

/// What to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A child that waits for leave to become the command: sampled from its exec on, with all its threads and
    /// children.
    Child(Pid),
    /// A process that runs: all its threads, and all threads and children that they start.
    Attach(Pid),
}

impl Target {
    pub(super) fn pid(self) -> Pid {
        let (Self::Child(pid) | Self::Attach(pid)) = self;
        pid
    }
}

/// Beyond this rate the clock's interrupts alone, some 12 µs each on a virtual machine, starve what is recorded.
const MAX_RATE_HZ: u32 = 20_000;

/// How to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Samples for every second of a thread's CPU time.
    pub rate_hz: u32,
    /// How long to record, where it should end before the process does.
    pub duration: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Self { rate_hz: 1000, duration: None }
    }
}

/// Opened events with their rings, ready to record.
#[derive(Debug)]
pub struct Perf {
    target: Target,
    options: Options,
    outcome: Outcome,
    features: Features,
    opened: Opened,
}

/// Events and rings.
#[derive(Debug)]
struct Opened {
    events: Events,
    rings: Vec<RingSource>,
}

impl Opened {
    /// Sends the records of an event into a ring that another one has.
    fn redirect(&self, event: &OwnedFd, ring: usize) -> io::Result<()> {
        let owner = self.rings.get(ring).and_then(|ring| ring.wakers.first());
        match owner.and_then(|owner| self.events.get(*owner)) {
            Some(owner) => event::set_output(event.as_fd(), owner.as_fd()),
            None => Ok(()),
        }
    }

    /// Lets an event whose records go into a ring wake the reader, when those before it have ended.
    fn add_waker(&mut self, event: usize, ring: usize) {
        if let Some(ring) = self.rings.get_mut(ring) {
            ring.wakers.push(event);
        }
    }
}

impl Perf {
    /// Opens the events for a process and maps their rings.
    ///
    /// A machine that allows less gives less, and [`Outcome::notices`] says what. Fails only where no event can
    /// be opened at all, or no ring mapped.
    pub fn open(target: Target, options: &Options) -> Result<Self, OpenError> {
        limits::raise_descriptor_limit();
        let cpus = cpus::online().map_err(system("the list of CPUs cannot be read"))?;
        let mut notices = Vec::new();
        let rate_hz = allowed_rate(options.rate_hz, &mut notices);
        let allowance = Allowance {
            cpus: cpus.len(),
            page: page_size(),
            bytes: (!limits::rings_are_unlimited())
                .then(|| limits::ring_bytes_without_privileges(cpus.len())),
            rate_hz,
        };
        let mut opener =
            Opener { target, features: Features::ALL, rate_hz, cpus: &cpus, units: CoreUnits::of_machine() };
        let features = opener.probe()?;
        let (opened, plan) = opener.open_all(&allowance)?;
        notice_rings(&allowance, plan, &mut notices);
        if features.kernel && kernel::addresses_are_hidden() {
            notices.push(Notice::KernelAddressesHidden);
        }
        if !features.kernel {
            notices
                .push(Notice::KernelNotPermitted { paranoid: limits::kernel_setting("perf_event_paranoid") });
        }
        let outcome = Outcome {
            trigger: features.trigger,
            rate_hz,
            kernel: features.kernel,
            exact_cpu_time: features.read,
            stack_bytes: plan.stack_bytes,
            cpus: cpus.len(),
            sample_ring_bytes: plan.sample_pages * allowance.page,
            sideband_ring_bytes: plan.sideband_pages.map(|pages| pages * allowance.page),
            notices,
        };
        Ok(Self { target, options: *options, outcome, features, opened })
    }

    /// What the machine allowed.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// Begins to record: an attached process at once, a child when it calls exec.
    pub fn record(self) -> Result<Recording, OpenError> {
        let totals = ThreadTotals::new(self.target, self.features.format());
        let stop = Arc::new(poll::event_counter().map_err(system("no event counter can be made"))?);
        let format = PerfEvents {
            format: self.features.format(),
            architecture: Architecture::X86_64,
            period: match self.features.trigger {
                Trigger::CpuClock => Period::Nanoseconds,
                Trigger::Cycles => Period::Each(period_ns(self.outcome.rate_hz)),
            },
            cpus: self.opened.events.cpus(),
            counters: CounterMeaning::CpuTime,
        };
        let (out, chunks) = sync_channel(BUFFERS);
        let events = Arc::new(self.opened.events);
        let reader = Reader {
            events: Arc::clone(&events),
            rings: self.opened.rings,
            pool: Pool::new(),
            out,
            layout: SampleLayout::new(&format.format),
            stop: Arc::clone(&stop),
            pid: self.target.pid().0,
            duration: self.options.duration,
            totals,
        };
        let thread = std::thread::Builder::new().name("nyquist-reader".into());
        let reader = thread.spawn(move || reader.run()).map_err(system("no thread can be started"))?;
        let mut recording = Recording {
            initial: Some(Initial { kernel: self.features.kernel, ..Initial::default() }),
            chunks,
            format,
            reader: Some(reader),
            reason: None,
            stop: StopHandle { counter: stop },
            events,
            counts_lost: self.features.lost,
        };
        // The rings are read before anything is written to them, and what `/proc` says is older than every
        // sample but looked at when nothing can be missed any more.
        let time = Timestamp(monotonic_ns());
        if let Target::Attach(pid) = self.target {
            recording.events.enable().map_err(|source| open_error(source, pid))?;
        }
        if let Some(initial) = &mut recording.initial {
            initial.time = time;
            if let Target::Attach(pid) = self.target {
                initial.process = proc::describe(pid);
            }
        }
        Ok(recording)
    }
}

/// The rate, as far as the kernel allows it.
fn allowed_rate(asked_hz: u32, notices: &mut Vec<Notice>) -> u32 {
    let kernels =
        limits::kernel_setting("perf_event_max_sample_rate").and_then(|most| u32::try_from(most).ok());
    let kernels = kernels.filter(|most| *most > 0);
    let allowed_hz = kernels.unwrap_or(MAX_RATE_HZ).min(MAX_RATE_HZ);
    if asked_hz > allowed_hz {
        let by_kernel = kernels == Some(allowed_hz);
        notices.push(Notice::RateLowered { asked_hz, allowed_hz, by_kernel });
    }
    asked_hz.clamp(1, allowed_hz)
}

fn notice_rings(allowance: &Allowance, plan: RingPlan, notices: &mut Vec<Notice>) {
    let wanted = allowance.plan();
    if plan.sample_pages < wanted.sample_pages {
        notices.push(Notice::SmallerRings {
            wanted: wanted.sample_pages * allowance.page,
            given: plan.sample_pages * allowance.page,
        });
    }
    if plan.sideband_pages.is_none() {
        notices.push(Notice::SharedRings);
    }
}

/// Opens events with the features that the kernel grants.
struct Opener<'a> {
    target: Target,
    features: Features,
    rate_hz: u32,
    cpus: &'a [u32],
    units: CoreUnits,
}

impl Opener<'_> {
    /// Finds out what the kernel grants on all CPUs, by asking for all of it and for less after every refusal.
    fn probe(&mut self) -> Result<Features, OpenError> {
        let tid = self.target.pid().0;
        loop {
            let Err(error) = self.cpus.iter().try_for_each(|cpu| self.try_cpu(tid, *cpu)) else {
                return Ok(self.features);
            };
            let less = error.raw_os_error().and_then(|errno| self.features.after(errno));
            self.features = less.ok_or_else(|| open_error(error, self.target.pid()))?;
        }
    }

    /// Opens a CPU's events and closes them again.
    fn try_cpu(&self, tid: u32, cpu: u32) -> io::Result<()> {
        let smallest = RingPlan { sample_pages: 8, sideband_pages: None, stack_bytes: 1024 };
        let sampling = self.open_sampling(tid, cpu, smallest)?;
        self.open_clock(tid, cpu, &sampling)?;
        self.open_totals(tid, cpu)?;
        self.open_sideband(tid, cpu).map(drop)
    }

    /// Opens all events and maps all rings, smaller ones for as long as there is no memory for them.
    fn open_all(&self, allowance: &Allowance) -> Result<(Opened, RingPlan), OpenError> {
        let mut plan = allowance.plan();
        loop {
            match self.open_with(plan) {
                Err(OpenError::Rings { source, cpus }) => match allowance.smaller(plan) {
                    Some(smaller) => plan = smaller,
                    None => return Err(OpenError::Rings { source, cpus }),
                },
                result => return result.map(|opened| (opened, plan)),
            }
        }
    }

    fn open_with(&self, plan: RingPlan) -> Result<Opened, OpenError> {
        let pid = self.target.pid();
        let mut opened = Opened { events: Events::new(self.features.clock_beside()), rings: Vec::new() };
        let mut rings = Vec::new();
        for cpu in self.cpus {
            rings.push(self.open_cpu(&mut opened, pid, *cpu, plan)?);
        }
        if let Target::Attach(pid) = self.target {
            self.open_threads(&mut opened, pid, &rings)?;
        }
        Ok(opened)
    }

    /// Opens the events of the main thread on a CPU, and maps that CPU's rings.
    fn open_cpu(
        &self,
        opened: &mut Opened,
        pid: Pid,
        cpu: u32,
        plan: RingPlan,
    ) -> Result<CpuRings, OpenError> {
        let fail = |source| open_error(source, pid);
        let sampling = self.open_sampling(pid.0, cpu, plan).map_err(fail)?;
        let clock = self.open_clock(pid.0, cpu, &sampling).map_err(fail)?;
        let totals = self.open_totals(pid.0, cpu).map_err(fail)?;
        let sideband = self.open_sideband(pid.0, cpu).map_err(fail)?;
        let no_ring = |source| OpenError::Rings { cpus: self.cpus.len(), source };
        let samples = Ring::map(sampling.as_fd(), plan.sample_pages).map_err(no_ring)?;
        let totals_ring = Ring::map(totals.as_fd(), TOTALS_PAGES).map_err(no_ring)?;
        let sideband_ring = plan
            .sideband_pages
            .map(|pages| Ring::map(sideband.as_fd(), pages).map_err(no_ring))
            .transpose()?;
        if sideband_ring.is_none() {
            event::set_output(sideband.as_fd(), sampling.as_fd()).map_err(fail)?;
        }
        if let Some(clock) = &clock {
            event::set_output(clock.as_fd(), sampling.as_fd()).map_err(fail)?;
        }
        let added = opened.events.add_thread(sampling, clock, totals, (pid.0, cpu));
        let (sampling, totals) = added.map_err(fail)?;
        let sideband = opened.events.add(sideband);
        // The sideband's rings come first, so that a mapping is handed out before the samples in it.
        let sideband_at = sideband_ring.map(|ring| {
            opened.rings.push(RingSource { ring, need: Need::Sideband, wakers: vec![sideband] });
            opened.rings.len() - 1
        });
        let need = if sideband_at.is_some() { Need::Samples } else { Need::Sideband };
        opened.rings.push(RingSource { ring: samples, need, wakers: vec![sampling] });
        let sample_at = opened.rings.len() - 1;
        opened.rings.push(RingSource { ring: totals_ring, need: Need::Sideband, wakers: vec![totals] });
        let totals_at = opened.rings.len() - 1;
        Ok(CpuRings { cpu, sample_at, totals_at, sideband_at: sideband_at.unwrap_or(sample_at), plan })
    }

    /// Opens the events of all other threads, and of those that are born meanwhile, until a look at the threads
    /// finds no new one. Their records go into the rings that are there.
    fn open_threads(&self, opened: &mut Opened, pid: Pid, rings: &[CpuRings]) -> Result<(), OpenError> {
        let mut known = vec![pid.0];
        loop {
            let threads = proc::threads(pid).map_err(|_| OpenError::NoSuchProcess { pid })?;
            let new: Vec<u32> = threads.into_iter().filter(|tid| !known.contains(tid)).collect();
            if new.is_empty() {
                return Ok(());
            }
            for tid in new {
                known.push(tid);
                match self.open_thread(opened, tid, rings) {
                    // A thread that has ended meanwhile is none to record.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    Err(error) => return Err(thread_error(error, pid, opened)),
                    Ok(()) => {}
                }
            }
        }
    }

    fn open_thread(&self, opened: &mut Opened, tid: u32, rings: &[CpuRings]) -> io::Result<()> {
        for ring in rings {
            let sampling = self.open_sampling(tid, ring.cpu, ring.plan)?;
            let clock = self.open_clock(tid, ring.cpu, &sampling)?;
            opened.redirect(&sampling, ring.sample_at)?;
            if let Some(clock) = &clock {
                opened.redirect(clock, ring.sample_at)?;
            }
            let totals = self.open_totals(tid, ring.cpu)?;
            opened.redirect(&totals, ring.totals_at)?;
            let (sampling, totals) = opened.events.add_thread(sampling, clock, totals, (tid, ring.cpu))?;
            opened.add_waker(sampling, ring.sample_at);
            opened.add_waker(totals, ring.totals_at);
            let sideband = self.open_sideband(tid, ring.cpu)?;
            opened.redirect(&sideband, ring.sideband_at)?;
            let sideband = opened.events.add(sideband);
            opened.add_waker(sideband, ring.sideband_at);
        }
        Ok(())
    }

    fn open_sampling(&self, tid: u32, cpu: u32, plan: RingPlan) -> io::Result<OwnedFd> {
        let wake_at = if plan.sideband_pages.is_some() { plan.sample_pages * page_size() / 4 } else { 1 };
        let attr = sampling(
            self.features,
            Sampling {
                rate_hz: self.rate_hz,
                stack_bytes: plan.stack_bytes,
                wake_at: wake_at as u32,
                unit: self.units.kind_of(cpu),
                from_exec: self.begins_at_exec(),
            },
        );
        event::open(attr, tid, cpu, None)
    }

    /// The clock beside an event that counts something else.
    fn open_clock(&self, tid: u32, cpu: u32, leader: &OwnedFd) -> io::Result<Option<OwnedFd>> {
        if !self.features.clock_beside() {
            return Ok(None);
        }
        event::open(clock(self.features), tid, cpu, Some(leader.as_fd())).map(Some)
    }

    fn open_totals(&self, tid: u32, cpu: u32) -> io::Result<OwnedFd> {
        let wake_at = TOTALS_PAGES * page_size() / 4;
        event::open(totals(self.features, self.begins_at_exec(), wake_at as u32), tid, cpu, None)
    }

    fn open_sideband(&self, tid: u32, cpu: u32) -> io::Result<OwnedFd> {
        event::open(sideband(self.features, self.begins_at_exec()), tid, cpu, None)
    }

    fn begins_at_exec(&self) -> bool {
        matches!(self.target, Target::Child(_))
    }
}

/// The places of a CPU's rings.
struct CpuRings {
    cpu: u32,
    sample_at: usize,
    totals_at: usize,
    sideband_at: usize,
    plan: RingPlan,
}

fn system(what: &'static str) -> impl Fn(io::Error) -> OpenError {
    move |source| OpenError::System { what, source }
}

fn thread_error(source: io::Error, pid: Pid, opened: &Opened) -> OpenError {
    match source.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => OpenError::Descriptors { events: opened.events.len() },
        _ => open_error(source, pid),
    }
}

/// What the kernel's refusal to open an event for a process means.
fn open_error(source: io::Error, pid: Pid) -> OpenError {
    match source.raw_os_error() {
        Some(libc::ESRCH) => OpenError::NoSuchProcess { pid },
        Some(libc::EMFILE | libc::ENFILE) => OpenError::Descriptors { events: 0 },
        Some(libc::EACCES | libc::EPERM) if own_events_are_allowed() => OpenError::AnotherUsers { pid },
        _ => {
            let hint = Hint::for_error(&source);
            OpenError::Refused { source, hint }
        }
    }
}

/// Whether this thread may at least count its own clock.
fn own_events_are_allowed() -> bool {
    let features =
        Features { trigger: Trigger::CpuClock, kernel: false, read: false, lost: false, build_id: false };
    event::open(sideband(features, false), 0, 0, None).is_ok()
}
