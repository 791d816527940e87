//! Events of Windows to events of a profile, one after the other.

use super::held::{HeldEvent, HeldEvents, HeldKind, NamedStack};
use super::keyed_stacks::frames;
use super::survey::Survey;
use super::switches::Switches;
use super::tasks::{IDLE, SYSTEM, Task, Tasks};
use crate::event::{Event, EventKind, Pid, Tid, Timestamp};
use nyquist_etw::kernel::{
    ContextSwitch, Image, KernelEvent, ObjectChange, Process, ReadyThread, SampledProfile, Stack, StackKey,
    Thread, ThreadName, Volume, decode,
};
use nyquist_etw::{self as etw, Clock, PointerSize};
use nyquist_object::Avma;
use std::sync::Arc;

/// The interval of samples if a trace does not state it: Windows's own, in units of 100 nanoseconds.
const DEFAULT_INTERVAL: u32 = 10_000;

/// Converts the events of a trace or of a live session. Events are to come by their times, as far as possible.
#[derive(Debug)]
pub struct EtwEvents {
    clock: Clock,
    /// How long an event waits for its stack, in nanoseconds.
    patience_ns: u64,
    /// Whether context switches are requested.
    wants_switches: bool,
    survey: Survey,
    /// Whether the survey knows what was there when the trace began.
    is_surveyed: bool,
    interval_100ns: u32,
    tasks: Tasks,
    switches: Switches,
    held: HeldEvents,
    latest: Timestamp,
    damaged: u64,
}

/// How many events a conversion could not use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EtwCounts {
    /// Samples with at least one address of their stack.
    pub with_stack: u64,
    /// Samples of which only the instruction pointer is known.
    pub without_stack: u64,
    /// Samples whose process is not known.
    pub of_nobody: u64,
    /// Events whose payload is too short.
    pub damaged: u64,
}

impl EtwEvents {
    /// For a live session with this clock. Events wait this long for their stacks, in nanoseconds.
    pub fn live(clock: Clock, patience_ns: u64) -> Self {
        Self {
            clock,
            patience_ns,
            wants_switches: false,
            survey: Survey::default(),
            is_surveyed: false,
            interval_100ns: DEFAULT_INTERVAL,
            tasks: Tasks::default(),
            switches: Switches::default(),
            held: HeldEvents::default(),
            latest: Timestamp(0),
            damaged: 0,
        }
    }

    /// For a trace with this clock that was surveyed. The events of what was there when it began are appended to
    /// `out`, with the time of its first event.
    pub fn surveyed(clock: Clock, survey: Survey, out: &mut Vec<Event>) -> Self {
        /// A thread can wait in the kernel for long before its stack is walked.
        const PATIENCE_NS: u64 = 10_000_000_000;
        let mut events = Self { is_surveyed: true, survey, ..Self::live(clock, PATIENCE_NS) };
        if let Some(interval) = events.survey.interval {
            events.interval_100ns = interval.interval_100ns;
        }
        events.begin(out);
        events
    }

    /// Whether context switches become events, too. There are many of them.
    #[must_use]
    pub fn with_switches(self, wants_switches: bool) -> Self {
        Self { wants_switches, ..self }
    }

    /// Of a live session: the volumes of this machine, and its folder of Windows if that is known. Such a session
    /// does not state them.
    #[must_use]
    pub fn on_machine(
        mut self,
        volumes: impl IntoIterator<Item = Volume>,
        windows_folder: Option<&str>,
    ) -> Self {
        let known = &mut self.survey.images.volumes;
        volumes.into_iter().for_each(|volume| known.add(volume));
        if let Some(folder) = windows_folder {
            known.set_windows_folder(folder);
        }
        self
    }

    /// The time of the first sample, if the trace was surveyed.
    pub fn first_sample(&self) -> Option<Timestamp> {
        self.survey.first_sample.map(|time| self.time(time))
    }

    /// The interval of samples, in nanoseconds.
    pub fn interval_ns(&self) -> u64 {
        u64::from(self.interval_100ns) * 100
    }

    /// Converts an event, and appends what it makes complete to `out`.
    pub fn push(&mut self, event: &etw::Event<'_>, out: &mut Vec<Event>) {
        let now = self.time(event.time);
        self.latest = self.latest.max(now);
        let too_old = Timestamp(self.latest.0.saturating_sub(self.patience_ns));
        self.held.release_before(too_old, out);
        match decode(event) {
            Ok(Some(decoded)) => self.decoded(decoded, event, now, out),
            Ok(None) => {}
            Err(_) => self.damaged += 1,
        }
    }

    /// The time before which all events were appended, as long as events come by their times.
    pub fn complete_before(&self) -> Timestamp {
        self.held.first().unwrap_or(self.latest)
    }

    /// Appends the events that still wait for their stacks.
    pub fn finish(&mut self, out: &mut Vec<Event>) {
        self.held.release_before(Timestamp(u64::MAX), out);
    }

    /// How many events could not be used.
    pub fn counts(&self) -> EtwCounts {
        EtwCounts {
            with_stack: self.held.with_stack,
            without_stack: self.held.without_stack,
            of_nobody: self.held.of_nobody,
            damaged: self.damaged,
        }
    }

    fn time(&self, time: u64) -> Timestamp {
        Timestamp(self.clock.nanoseconds(time))
    }

    /// What was there when the trace began.
    fn begin(&mut self, out: &mut Vec<Event>) {
        let at = self.survey.first_event.map_or(Timestamp(0), |time| self.time(time));
        for process in std::mem::take(&mut self.survey.processes) {
            out.push(named(at, (process.pid, process.pid), process.image_name, true));
        }
        for Thread { pid, tid, name, .. } in std::mem::take(&mut self.survey.threads) {
            self.add_thread((pid, tid, name), at, out);
        }
        for (image, pointer_size) in std::mem::take(&mut self.survey.mapped) {
            out.push(self.map(&image, pointer_size, at));
        }
        let made = self.survey.clr.mappings.values().flatten().cloned();
        out.extend(made.map(|mapping| Event { time: at, cpu: None, kind: EventKind::Map(mapping) }));
    }

    fn decoded(
        &mut self,
        decoded: KernelEvent<'_>,
        event: &etw::Event<'_>,
        now: Timestamp,
        out: &mut Vec<Event>,
    ) {
        match decoded {
            KernelEvent::Sample(sample) => self.sample(sample, event, now, out),
            KernelEvent::Interval(interval) => self.interval_100ns = interval.interval_100ns,
            KernelEvent::Stack(stack) => self.stack(stack, event, out),
            KernelEvent::StackKey(key) => self.stack_key(key, event, out),
            KernelEvent::Process(process) => self.process(process, now, out),
            KernelEvent::Thread(thread) => self.thread(thread, now, out),
            KernelEvent::ThreadName(ThreadName { tid, name, .. }) => {
                if let Some(task) = self.tasks.get(tid) {
                    out.push(named(now, (task.pid.0, task.tid.0), name, false));
                }
            }
            KernelEvent::ContextSwitch(switch) if self.wants_switches => {
                self.switch(switch, event, now, out);
            }
            KernelEvent::ReadyThread(ready) if self.wants_switches => self.ready(ready, event, now, out),
            KernelEvent::Image(image) => self.image(&image, event.pointer_size, now, out),
            KernelEvent::ImageId(id) if !self.is_surveyed => self.survey.images.add_id(&id),
            KernelEvent::PdbId(id) if !self.is_surveyed => self.survey.images.add_pdb(&id),
            KernelEvent::Volume(volume) if !self.is_surveyed => self.survey.images.volumes.add(volume),
            _ => {}
        }
    }

    fn sample(
        &mut self,
        sample: SampledProfile,
        event: &etw::Event<'_>,
        now: Timestamp,
        out: &mut Vec<Event>,
    ) {
        if sample.thread == IDLE {
            return;
        }
        let task = self.tasks.get(sample.thread).map(|task| (task.pid, task.tid));
        let kind = HeldKind::Sample {
            address: sample.address,
            pointer_size: event.pointer_size,
            period_ns: self.interval_ns() * u64::from(sample.count.max(1)),
        };
        self.held.add(event.time, sample.thread, HeldEvent::new(now, event.cpu, task, kind), out);
    }

    fn stack(&mut self, stack: Stack<'_>, event: &etw::Event<'_>, out: &mut Vec<Event>) {
        let Stack { event_time, process, thread, addresses } = stack;
        self.named_stack((event_time, process, thread), frames(&addresses), event.pointer_size, out);
    }

    fn stack_key(&mut self, key: StackKey, event: &etw::Event<'_>, out: &mut Vec<Event>) {
        let StackKey { event_time, process, thread, key, .. } = key;
        let Some(addresses) = self.survey.keyed.find(key, event.time).map(Arc::clone) else { return };
        self.named_stack((event_time, process, thread), addresses, event.pointer_size, out);
    }

    fn named_stack(
        &mut self,
        (time, process, thread): (u64, u32, u32),
        addresses: Arc<[Avma]>,
        pointer_size: PointerSize,
        out: &mut Vec<Event>,
    ) {
        if thread == IDLE || addresses.is_empty() {
            return;
        }
        let task = self.tasks.get(thread).map_or((Pid(process), Tid(thread)), |task| (task.pid, task.tid));
        let is_of_system = process == SYSTEM;
        let stack = NamedStack { time, thread, task, addresses, pointer_size, is_of_system };
        self.held.complete(&stack, out);
    }

    fn process(&mut self, process: Process, now: Timestamp, out: &mut Vec<Event>) {
        let Process { change, pid, parent, image_name, .. } = process;
        let is_there = change == ObjectChange::ThereAtStart && !self.is_surveyed;
        match change {
            ObjectChange::Start => {
                let kind = EventKind::Fork {
                    pid: Pid(pid),
                    tid: Tid(pid),
                    parent_pid: Pid(parent),
                    parent_tid: Tid(parent),
                };
                out.push(Event { time: now, cpu: None, kind });
                out.push(named(now, (pid, pid), image_name, true));
                // The new address space has nothing yet.
                let made = self.survey.clr.mappings.get(&pid).into_iter().flatten().cloned();
                out.extend(made.map(|mapping| Event { time: now, cpu: None, kind: EventKind::Map(mapping) }));
            }
            ObjectChange::End => {
                self.tasks.remove_process(pid);
                out.push(ended(now, (Pid(pid), Tid(pid))));
            }
            ObjectChange::ThereAtStart if is_there => out.push(named(now, (pid, pid), image_name, true)),
            ObjectChange::ThereAtStart | ObjectChange::ThereAtEnd => {}
        }
    }

    fn thread(&mut self, thread: Thread, now: Timestamp, out: &mut Vec<Event>) {
        let Thread { change, pid, tid, name } = thread;
        match change {
            ObjectChange::ThereAtStart if self.is_surveyed => {}
            ObjectChange::Start | ObjectChange::ThereAtStart => {
                if change == ObjectChange::Start {
                    self.switches.begin(tid);
                }
                self.add_thread((pid, tid, name), now, out);
            }
            ObjectChange::End => {
                self.held.release_thread(tid, out);
                self.switches.forget(tid);
                // The main thread's row ends with its process.
                if let Some(task) = self.tasks.remove(tid).filter(|task| !task.is_main()) {
                    out.push(ended(now, (task.pid, task.tid)));
                }
            }
            ObjectChange::ThereAtEnd => {}
        }
    }

    fn add_thread(&mut self, (pid, tid, name): (u32, u32, String), now: Timestamp, out: &mut Vec<Event>) {
        if tid == IDLE {
            return;
        }
        let task = self.tasks.add(pid, tid);
        if !task.is_main() {
            let Task { pid, tid } = task;
            let kind = EventKind::Fork { pid, tid, parent_pid: pid, parent_tid: Tid(pid.0) };
            out.push(Event { time: now, cpu: None, kind });
        }
        if !name.is_empty() {
            out.push(named(now, (task.pid.0, task.tid.0), name, false));
        }
    }

    fn image(&mut self, image: &Image, pointer_size: PointerSize, now: Timestamp, out: &mut Vec<Event>) {
        if !self.is_surveyed {
            self.survey.images.volumes.note_image(&image.path);
        }
        match image.change {
            ObjectChange::ThereAtStart if self.is_surveyed => {}
            ObjectChange::Start | ObjectChange::ThereAtStart => out.push(self.map(image, pointer_size, now)),
            // The end of a process ends its mappings; the kernel's drivers stay known.
            ObjectChange::End | ObjectChange::ThereAtEnd => self.unmap(image, pointer_size, now, out),
        }
    }

    fn map(&self, image: &Image, pointer_size: PointerSize, time: Timestamp) -> Event {
        Event { time, cpu: None, kind: EventKind::Map(self.survey.images.mapping(image, pointer_size)) }
    }

    fn unmap(&self, image: &Image, pointer_size: PointerSize, time: Timestamp, out: &mut Vec<Event>) {
        let mapping = self.survey.images.mapping(image, pointer_size);
        if let (ObjectChange::End, Some(pid)) = (image.change, mapping.pid) {
            let kind = EventKind::Unmap { pid, start: Avma(image.base), len: mapping.len };
            out.push(Event { time, cpu: None, kind });
        }
    }

    /// A CPU changes from one thread to another. The stack of this event is that of the thread that comes, and so
    /// it shows where that one has waited.
    fn switch(
        &mut self,
        switch: ContextSwitch,
        event: &etw::Event<'_>,
        time: Timestamp,
        out: &mut Vec<Event>,
    ) {
        let reason = self.switches.switch(&switch, event.cpu);
        let known = |tid: u32| self.tasks.get(tid).filter(|_| tid != IDLE);
        if let Some(Task { pid, tid }) = known(switch.old_thread) {
            let preempted = switch.old_state.can_run();
            let kind = EventKind::Descheduled { pid, tid, preempted };
            out.push(Event { time, cpu: Some(event.cpu.into()), kind });
        }
        if let Some(Task { pid, tid }) = known(switch.new_thread) {
            let held = HeldEvent::new(time, event.cpu, Some((pid, tid)), HeldKind::SwitchIn { reason });
            self.held.add(event.time, switch.new_thread, held, out);
        }
    }

    /// A thread is made ready to run by the one that its CPU runs.
    fn ready(&mut self, ready: ReadyThread, event: &etw::Event<'_>, time: Timestamp, out: &mut Vec<Event>) {
        let Some(woken) = self.tasks.get(ready.thread).map(|task| task.tid) else { return };
        // The header of such an event has no thread, or states one that means nothing.
        let running = self.switches.running(event.cpu).or(event.thread);
        let Some(thread) = running else { return };
        let in_interrupt = ready.in_deferred_call || thread == IDLE;
        let idle = Task { pid: Pid(IDLE), tid: Tid(IDLE) };
        let Some(task) = self.tasks.get(thread).or(Some(idle).filter(|_| in_interrupt)) else { return };
        let kind = HeldKind::Wakeup { woken, in_interrupt };
        let held = HeldEvent::new(time, event.cpu, Some((task.pid, task.tid)), kind);
        if in_interrupt || !self.is_surveyed {
            // An interrupt has no caller, and live sessions walk no stacks of these events.
            held.append(out);
        } else {
            self.held.add(event.time, thread, held, out);
        }
    }
}

fn named(time: Timestamp, (pid, tid): (u32, u32), name: String, exec: bool) -> Event {
    Event { time, cpu: None, kind: EventKind::Name { pid: Pid(pid), tid: Tid(tid), name, exec } }
}

fn ended(time: Timestamp, (pid, tid): (Pid, Tid)) -> Event {
    Event { time, cpu: None, kind: EventKind::Exit { pid, tid } }
}
