//! Opening the events of a recording and mapping their rings: with everything that the kernel grants, and
//! with less if necessary.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Instant;

use nyquist_convert::event::Pid;

use super::additional_events;
use super::attr::{
    CommonAttr, Reach, SamplingParameters, needs_separator, sampling, separator, sideband, totals,
};
use super::events::{OpenedEvents, Role, ThreadEvents};
use super::open_error::OpenError;
use super::outcome::AttachSummary;
use super::pace::wake_at;
use super::refusals::open_error;
use super::ring_source::RingSource;
use super::scope::RecordedScope;
use super::sideband_throttle::SidebandPair;

use crate::linux::pmu::CoreUnits;
use crate::linux::proc;
use crate::linux::recorded_event::RecordedEvent;
use crate::linux::ring_limits::{RingLimits, RingPlan, TOTALS_PAGES};
use crate::linux::sys::event::{self, Subject};
use crate::linux::sys::limits::page_size;
use crate::linux::sys::ring::Ring;
use crate::linux::{target_access, thread_events};
use crate::pool::Need;

/// Events and rings.
#[derive(Debug)]
pub(crate) struct OpenEvents {
    pub(crate) events: OpenedEvents,
    pub(crate) rings: Vec<RingSource>,
    /// The sideband events that can alternate.
    pub(crate) sidebands: Vec<SidebandPair>,
    /// What the kernel granted.
    pub(crate) common: CommonAttr,
    pub(crate) plan: RingPlan,
    /// What was attached to.
    pub(crate) attached: Option<AttachSummary>,
    /// Whether threads were found after events of others were open: they may have inherited these.
    pub(crate) late_threads: bool,
}

impl OpenEvents {
    /// Redirects the records of an event into the ring of another event.
    fn redirect(&self, event: &OwnedFd, ring: usize) -> io::Result<()> {
        let owner = self.rings.get(ring).and_then(|ring| ring.wakers.first());
        match owner.and_then(|owner| self.events.get(*owner)) {
            Some(owner) => event::set_output(event.as_fd(), owner.as_fd()),
            None => Ok(()),
        }
    }

    /// Lets an event whose records go into a ring wake the reader when the events before it have ended.
    fn add_waker(&mut self, event: usize, ring: usize) {
        if let Some(ring) = self.rings.get_mut(ring) {
            ring.wakers.push(event);
        }
    }
}

/// The fill level in bytes at which the reader of samples without stack copies is woken.
const WAKE_WITHOUT_COPIES: usize = 256 << 10;
/// The fill level in bytes at which the reader of additional events is woken.
const WAKE_ADDITIONAL: usize = 1 << 20;

/// Opens events with the features that the kernel grants.
pub(crate) struct EventOpener<'a> {
    scope: RecordedScope<'a>,
    /// The thread whose events own the rings, if threads are recorded.
    first: u32,
    common: CommonAttr,
    rate_hz: u32,
    cpus: &'a [u32],
    units: CoreUnits,
    /// The additional events.
    additional_events: &'a [RecordedEvent],
}

impl<'a> EventOpener<'a> {
    /// Probes what the kernel grants on all CPUs: requests everything, and less after every refusal.
    pub(crate) fn probe(
        scope: RecordedScope<'a>,
        common: CommonAttr,
        cpus: &'a [u32],
        (rate_hz, additional_events): (u32, &'a [RecordedEvent]),
    ) -> Result<Self, OpenError> {
        let first = match scope {
            // A process can live on when its main thread has ended.
            RecordedScope::Running(_) => proc::live_thread(scope.pid()),
            RecordedScope::Thread(_, tid) => tid.0,
            _ => scope.pid().0,
        };
        let units = CoreUnits::of_machine();
        let mut opener = Self { scope, first, common, rate_hz, cpus, units, additional_events };
        loop {
            let Err(error) = cpus.iter().try_for_each(|cpu| opener.try_cpu(*cpu)) else {
                return Ok(opener);
            };
            let less = error.raw_os_error().and_then(|errno| opener.common.features.after(errno));
            opener.common.features = less.ok_or_else(|| open_error(error, scope))?;
        }
    }

    /// Opens a CPU's events and closes them again.
    fn try_cpu(&self, cpu: u32) -> io::Result<()> {
        let smallest = RingPlan { sample_pages: 8, sideband_pages: None, stack_bytes: 1024 };
        let subject = self.scope.first(self.first);
        self.open_sampler(subject, cpu, smallest)?;
        self.open_totals(subject, cpu)?;
        self.open_sideband(subject, cpu).map(drop)
    }

    /// Opens all events and maps all rings. Tries smaller rings while there is not enough memory.
    pub(crate) fn open_all(&self, limits: &RingLimits) -> Result<OpenEvents, OpenError> {
        let mut plan = limits.plan();
        loop {
            match self.open_with(plan, limits.bytes.is_none()) {
                Err(OpenError::Rings { source, cpus }) => match limits.smaller(plan) {
                    Some(smaller) => plan = smaller,
                    None => return Err(OpenError::Rings { source, cpus }),
                },
                result => return result,
            }
        }
    }

    /// `is_unlimited` is whether there is memory for all optional rings.
    fn open_with(&self, plan: RingPlan, is_unlimited: bool) -> Result<OpenEvents, OpenError> {
        let mut opened = OpenEvents {
            events: OpenedEvents::default(),
            rings: Vec::new(),
            sidebands: Vec::new(),
            common: self.common,
            plan,
            attached: None,
            late_threads: false,
        };
        if let Subject::Thread(tid) = self.scope.first(self.first) {
            self.open_separator(&mut opened, tid).map_err(|source| open_error(source, self.scope))?;
        }
        let mut rings = Vec::new();
        // Threads may have many events, which would take long to switch.
        let batches = is_unlimited && self.common.reach == Reach::Cpu;
        for cpu in self.cpus {
            rings.push(self.open_cpu(&mut opened, *cpu, plan, batches)?);
        }
        match self.scope {
            RecordedScope::Running(pids) => self.open_threads(&mut opened, pids, &rings)?,
            RecordedScope::Thread(pid, _) => self.open_other_sidebands(&mut opened, pid, &rings)?,
            _ => {}
        }
        Ok(opened)
    }

    /// Opens the first events on a CPU, and maps that CPU's rings.
    fn open_cpu(
        &self,
        opened: &mut OpenEvents,
        cpu: u32,
        plan: RingPlan,
        batches: bool,
    ) -> Result<CpuRings, OpenError> {
        let fail = |source| open_error(source, self.scope);
        let subject = self.scope.first(self.first);
        let sampling = self.open_sampler(subject, cpu, plan).map_err(fail)?;
        let totals = self.open_totals(subject, cpu).map_err(fail)?;
        let sideband = self.open_sideband(subject, cpu).map_err(fail)?;
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
        let added = opened.events.add_thread(sampling, totals, (self.first, cpu));
        let ThreadEvents { sampling, totals } = added.map_err(fail)?;
        let sideband = opened.events.add(sideband, Role::Sideband);
        // The sideband's rings come first, so that a mapping is sent before the samples in it.
        let sideband_at = sideband_ring.map(|ring| {
            opened.rings.push(RingSource { ring, need: Need::Sideband, wakers: vec![sideband] });
            opened.rings.len() - 1
        });
        if let Some(pages) = plan.sideband_pages.filter(|_| batches) {
            self.open_lazy_sideband(opened, (sideband, cpu), pages)?;
        }
        let need = if sideband_at.is_some() { Need::Samples } else { Need::Sideband };
        opened.rings.push(RingSource { ring: samples, need, wakers: vec![sampling] });
        let sample_at = opened.rings.len() - 1;
        opened.rings.push(RingSource { ring: totals_ring, need: Need::Sideband, wakers: vec![totals] });
        let totals_at = opened.rings.len() - 1;
        let additional_at = self.open_additional_events(opened, cpu, plan)?;
        let sideband_at = sideband_at.unwrap_or(sample_at);
        Ok(CpuRings { cpu, sample_at, totals_at, sideband_at, additional_at, plan })
    }

    /// Opens the additional events on a CPU. They share a separate ring, so that a burst of them takes
    /// no room from the samples. Returns the index of the ring, if there is one.
    fn open_additional_events(
        &self,
        opened: &mut OpenEvents,
        cpu: u32,
        plan: RingPlan,
    ) -> Result<Option<usize>, OpenError> {
        let subject = self.scope.first(self.first);
        let opening = self.additional_opening(cpu, plan);
        let mut ring_at = None;
        for (index, recorded) in self.additional_events.iter().enumerate() {
            if matches!(self.scope, RecordedScope::Child(_)) && recorded.event.is_probe() {
                return Err(OpenError::ProbeWithoutGroup { event: recorded.event.name.clone() });
            }
            let opened_events = opening.open(recorded, subject);
            if opened_events.is_err() && recorded.is_optional() {
                continue;
            }
            let events = opened_events.map_err(|error| match error {
                // This error is not about the event.
                OpenError::Event { source, .. }
                    if source.raw_os_error() == Some(libc::ESRCH)
                        || thread_events::withholding(&source).is_some() =>
                {
                    open_error(source, self.scope)
                }
                error => error,
            });
            for event in events? {
                let at = match ring_at {
                    Some(at) => {
                        opened.redirect(&event, at).map_err(|source| open_error(source, self.scope))?;
                        at
                    }
                    None => {
                        let no_ring = |source| OpenError::Rings { cpus: self.cpus.len(), source };
                        let ring = Ring::map(event.as_fd(), plan.sample_pages).map_err(no_ring)?;
                        let (need, wakers) = (Need::Occurrences, Vec::new());
                        opened.rings.push(RingSource { ring, need, wakers });
                        *ring_at.insert(opened.rings.len() - 1)
                    }
                };
                let counts = self.common.has_additional_event_counts();
                let is_running = matches!(self.scope, RecordedScope::Running(_) | RecordedScope::Thread(..));
                let of_thread = is_running && !recorded.event.is_probe();
                let added = opened.events.add_additional(
                    event,
                    (index, recorded),
                    (of_thread.then_some(self.first), counts),
                );
                opened.add_waker(added.map_err(|source| open_error(source, self.scope))?, at);
            }
        }
        Ok(ring_at)
    }

    fn additional_opening(&self, cpu: u32, plan: RingPlan) -> additional_events::OpenParameters {
        let wake_at = (plan.sample_pages * page_size() / 2).min(WAKE_ADDITIONAL) as u32;
        additional_events::OpenParameters { common: self.common, cpu, stack_bytes: plan.stack_bytes, wake_at }
    }

    /// Opens the event that replaces a CPU's sideband event during bursts, with a separate ring.
    fn open_lazy_sideband(
        &self,
        opened: &mut OpenEvents,
        (eager, cpu): (usize, u32),
        pages: usize,
    ) -> Result<(), OpenError> {
        let attr = sideband(self.common, (pages * page_size() / 4) as u32);
        let lazy = thread_events::open(attr, self.scope.first(self.first), cpu);
        let lazy = lazy.map_err(|source| open_error(source, self.scope))?;
        let no_ring = |source| OpenError::Rings { cpus: self.cpus.len(), source };
        let ring = Ring::map(lazy.as_fd(), pages).map_err(no_ring)?;
        let lazy = opened.events.add(lazy, Role::LazySideband);
        opened.rings.push(RingSource { ring, need: Need::Sideband, wakers: vec![lazy] });
        opened.sidebands.push(SidebandPair { eager, lazy });
        Ok(())
    }

    /// Opens the events of all other threads, including those of all descendants. Repeats this until it finds
    /// no new thread. Their records go into the existing rings.
    fn open_threads(
        &self,
        opened: &mut OpenEvents,
        pids: &[Pid],
        rings: &[CpuRings],
    ) -> Result<(), OpenError> {
        let began = Instant::now();
        let mut known = HashSet::from([self.first]);
        // The events of the first thread are open already.
        let mut rounds = 1;
        loop {
            if let Some(pid) = pids.iter().find(|pid| proc::has_ended(pid.0)) {
                return Err(OpenError::NoSuchProcess { pid: *pid });
            }
            let mut processes = proc::families(pids);
            // The kernel would wait for these, too, and with it all that is recorded.
            processes.retain(|pid| !target_access::withholds_itself(*pid));
            let threads = processes.iter().flat_map(|pid| proc::threads(Pid(*pid)).unwrap_or_default());
            let new: Vec<u32> = threads.filter(|tid| known.insert(*tid)).collect();
            if new.is_empty() {
                let (threads, processes) = (known.len(), processes.len());
                opened.attached = Some(AttachSummary { threads, processes, rounds, took: began.elapsed() });
                return Ok(());
            }
            for tid in new {
                match self.open_thread(opened, tid, rings) {
                    // A thread that has ended meanwhile need not be recorded.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    Err(error) if thread_events::withholding(&error).is_some() => {}
                    Err(error) => return Err(self.thread_error(error, opened)),
                    Ok(()) => opened.late_threads = true,
                }
            }
            rounds += 1;
        }
    }

    /// Opens the sideband events of the other threads of a process of which one thread is recorded: all share its
    /// mappings.
    fn open_other_sidebands(
        &self,
        opened: &mut OpenEvents,
        pid: Pid,
        rings: &[CpuRings],
    ) -> Result<(), OpenError> {
        let began = Instant::now();
        let others = proc::threads(pid).unwrap_or_default();
        for tid in others.into_iter().filter(|tid| *tid != self.first) {
            for ring in rings {
                match self.open_sideband(Subject::Thread(tid), ring.cpu) {
                    // A thread that has ended meanwhile maps nothing more.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => break,
                    Err(error) => return Err(self.thread_error(error, opened)),
                    Ok(sideband) => add_sideband(opened, sideband, ring.sideband_at),
                }
                .map_err(|source| self.thread_error(source, opened))?;
            }
        }
        let took = began.elapsed();
        opened.attached = Some(AttachSummary { threads: 1, processes: 1, rounds: 1, took });
        Ok(())
    }

    fn open_thread(&self, opened: &mut OpenEvents, tid: u32, rings: &[CpuRings]) -> io::Result<()> {
        let subject = Subject::Thread(tid);
        self.open_separator(opened, tid)?;
        for ring in rings {
            let sampling = self.open_sampler(subject, ring.cpu, ring.plan)?;
            opened.redirect(&sampling, ring.sample_at)?;
            let totals = self.open_totals(subject, ring.cpu)?;
            opened.redirect(&totals, ring.totals_at)?;
            let added = opened.events.add_thread(sampling, totals, (tid, ring.cpu))?;
            let ThreadEvents { sampling, totals } = added;
            opened.add_waker(sampling, ring.sample_at);
            opened.add_waker(totals, ring.totals_at);
            let sideband = self.open_sideband(subject, ring.cpu)?;
            add_sideband(opened, sideband, ring.sideband_at)?;
            self.open_additional_events_of_thread(opened, tid, ring)?;
        }
        Ok(())
    }

    /// Opens the additional events of another thread on a CPU. Probes exist for all threads already.
    fn open_additional_events_of_thread(
        &self,
        opened: &mut OpenEvents,
        tid: u32,
        ring: &CpuRings,
    ) -> io::Result<()> {
        let Some(at) = ring.additional_at else { return Ok(()) };
        let opening = self.additional_opening(ring.cpu, ring.plan);
        for (index, recorded) in
            self.additional_events.iter().enumerate().filter(|(_, it)| !it.event.is_probe())
        {
            if recorded.is_optional()
                && !opened.events.additional().iter().any(|additional| additional.event == index)
            {
                continue;
            }
            // The kernel does not refuse for another thread what it granted for the first one.
            let events = opening.open(recorded, Subject::Thread(tid)).map_err(OpenError::into_source)?;
            for event in events {
                opened.redirect(&event, at)?;
                let counts = self.common.has_additional_event_counts();
                let place = opened.events.add_additional(event, (index, recorded), (Some(tid), counts))?;
                opened.add_waker(place, at);
            }
        }
        Ok(())
    }

    /// The event that samples.
    fn open_sampler(&self, subject: Subject<'_>, cpu: u32, plan: RingPlan) -> io::Result<OwnedFd> {
        thread_events::open(self.sampling_attr(cpu, plan), subject, cpu)
    }

    /// Opens the event that separates a thread from its descendants, if that is needed. It comes before the
    /// events that these inherit.
    fn open_separator(&self, opened: &mut OpenEvents, tid: u32) -> io::Result<()> {
        if !needs_separator(self.common) {
            return Ok(());
        }
        let subject = Subject::Thread(tid);
        let event = thread_events::open_counter(separator(self.common), subject, None, None)?;
        opened.events.add(event, Role::Separator);
        Ok(())
    }

    fn sampling_attr(&self, cpu: u32, plan: RingPlan) -> event::perf_event_attr {
        let ring_bytes = plan.sample_pages * page_size();
        let wake_at = match plan.sideband_pages {
            None => 1,
            // Samples without a copy are small: half of a large ring would hold seconds of them.
            Some(_) if !self.common.call_graph.copies_stacks() => (ring_bytes / 2).min(WAKE_WITHOUT_COPIES),
            Some(_) => wake_at(ring_bytes, plan.stack_bytes, self.rate_hz),
        };
        sampling(
            self.common,
            SamplingParameters {
                rate_hz: self.rate_hz,
                stack_bytes: plan.stack_bytes,
                wake_at: wake_at as u32,
                unit: self.units.kind_of(cpu),
            },
        )
    }

    fn open_totals(&self, subject: Subject<'_>, cpu: u32) -> io::Result<OwnedFd> {
        let wake_at = TOTALS_PAGES * page_size() / 4;
        thread_events::open(totals(self.common, wake_at as u32), subject, cpu)
    }

    fn open_sideband(&self, subject: Subject<'_>, cpu: u32) -> io::Result<OwnedFd> {
        // Threads that begin later share the mappings of a thread that is recorded alone.
        let reach = match self.common.reach {
            Reach::OneThread => Reach::Thread { from_exec: false },
            reach => reach,
        };
        thread_events::open(sideband(CommonAttr { reach, ..self.common }, 1), subject, cpu)
    }

    fn thread_error(&self, source: io::Error, opened: &OpenEvents) -> OpenError {
        match source.raw_os_error() {
            Some(libc::EMFILE | libc::ENFILE) => OpenError::Descriptors { events: opened.events.len() },
            _ => open_error(source, self.scope),
        }
    }
}

/// Adds a sideband event whose records go into the ring of another.
fn add_sideband(opened: &mut OpenEvents, sideband: OwnedFd, ring: usize) -> io::Result<()> {
    opened.redirect(&sideband, ring)?;
    let sideband = opened.events.add(sideband, Role::Sideband);
    opened.add_waker(sideband, ring);
    Ok(())
}

/// The indices of a CPU's rings.
struct CpuRings {
    cpu: u32,
    sample_at: usize,
    totals_at: usize,
    sideband_at: usize,
    /// The ring of the additional events, if there are any.
    additional_at: Option<usize>,
    plan: RingPlan,
}
