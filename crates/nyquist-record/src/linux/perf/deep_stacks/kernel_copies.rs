//! The outer parts of stacks that the kernel copies at the moment of each sample, by a small program on the sampling
//! events. Needs CAP_BPF and CAP_PERFMON.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use bytes::Bytes;
use nyquist_convert::StackCopyFeedback;
use nyquist_convert::event::{Event, EventKind, LiveStack, Pid, Tid, Timestamp};
use nyquist_object::Avma;

use super::pages::{PAGE, PageStore};
use super::stack_program::{FAR, HEADER, MAX_COPY, NOTHING, ProgramMaps, assemble};
use crate::linux::limits::has_capability;
use crate::linux::namespaces;
use crate::linux::sys::bpf::{self, MapKind};
use crate::linux::sys::bpf_ring::BpfRing;
use crate::linux::sys::poll::{WakeUps, event_counter, signal};
use crate::linux::sys::process::Preference;
use crate::linux::target_access;

const CAP_BPF: u32 = 39;
/// The size of the ring. The kernel clears it before anything is recorded, which takes 1 ms.
const RING_BYTES: u32 = 8 << 20;
/// The most threads whose stacks' ends are known.
const MAX_ENDS: u32 = 4096;
/// The most threads of which something is known.
const MAX_THREADS: usize = 512;
/// The most bytes of the last copies of threads. They are kept because pages that have not changed share their memory.
const MAX_LAST_BYTES: usize = 64 << 20;
/// The most bytes of pages that wait to be taken.
const MAX_WAITING_BYTES: usize = 64 << 20;
/// How much earlier than the copy its sample may say that it is. The kernel takes the time of the one before or after
/// that of the other, and a hypervisor may pause the CPU between the two.
const BEFORE_SAMPLE_NS: u64 = 500_000;
/// The most that the kernel copies by itself, from the stack pointer on.
const MAX_KERNEL_COPY: u64 = 64 << 10;
/// How far beyond the outermost word that walks have read the end of a stack is.
const BEYOND_BASE: u64 = 512;

/// The maps of a program that is attached.
#[derive(Debug)]
pub(crate) struct StackProgram {
    ring: BpfRing,
    ends: OwnedFd,
    signal_stacks: OwnedFd,
}

/// Takes the copies of a program out of its ring.
#[derive(Debug)]
pub(super) struct KernelCopies {
    state: Arc<Mutex<State>>,
    stop: OwnedFd,
    thread: JoinHandle<()>,
}

#[derive(Debug)]
struct State {
    ring: BpfRing,
    ends: OwnedFd,
    signal_stacks: OwnedFd,
    threads: HashMap<u32, CopiedThread>,
    pages: PageStore,
    /// What was taken out of the ring before it was asked for, and the size of its pages that have changed.
    waiting: Vec<Event>,
    waiting_bytes: usize,
    /// The size of the last copies of all threads.
    last_bytes: usize,
}

/// What is known of a thread.
#[derive(Debug, Default)]
struct CopiedThread {
    last: Option<Arc<LiveStack>>,
    /// What the program knows of the end of its stack; `None` before its first copy.
    end: Option<u64>,
}

impl StackProgram {
    /// Attaches the program to these events, whose samples have stack copies of this size. Fails if the machine does
    /// not allow it.
    pub(super) fn attach(events: &[&OwnedFd], stack_bytes: u32) -> io::Result<Self> {
        // The program knows threads by the machine's numbers.
        if !has_capability(CAP_BPF) || !namespaces::is_first_of_processes() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let ring = BpfRing::new(RING_BYTES)?;
        let ends = bpf::create_map(MapKind::LruHash, 4, 8, MAX_ENDS)?;
        let signal_stacks = bpf::create_map(MapKind::LruHash, 4, 24, MAX_ENDS)?;
        let maps =
            ProgramMaps { ring: ring.as_fd(), ends: ends.as_fd(), signal_stacks: signal_stacks.as_fd() };
        let program = bpf::load(&assemble(maps, stack_bytes, RING_BYTES))?;
        for event in events {
            bpf::attach(event.as_fd(), program.as_fd())?;
        }
        Ok(Self { ring, ends, signal_stacks })
    }
}

impl KernelCopies {
    /// Starts to take the copies that a program makes.
    pub(super) fn start(StackProgram { ring, ends, signal_stacks }: StackProgram) -> io::Result<Self> {
        let stop = event_counter()?;
        let wake_ups = WakeUps::new(ring.as_fd(), stop.as_fd())?;
        let (threads, pages, waiting) = (HashMap::new(), PageStore::new(), Vec::new());
        let state =
            State { ring, ends, signal_stacks, threads, pages, waiting, waiting_bytes: 0, last_bytes: 0 };
        let state = Arc::new(Mutex::new(state));
        let taker = Arc::clone(&state);
        let thread = std::thread::Builder::new().name("nyquist-copies".into());
        let thread = thread.spawn(move || {
            let _preference = Preference::at_once();
            while wake_ups.wait() {
                lock(&taker).take();
            }
        })?;
        Ok(Self { state, stop, thread })
    }

    /// The copies since the last call, as events for samples from a time on.
    pub(super) fn take_since(&self, time: Timestamp) -> Vec<Event> {
        let mut state = lock(&self.state);
        state.take();
        state.waiting_bytes = 0;
        let mut events = std::mem::take(&mut state.waiting);
        for event in &mut events {
            event.time = event.time.max(time);
        }
        events
    }

    /// Tells the program where stacks end, and which are deep.
    pub(super) fn apply_feedback(&self, feedback: &StackCopyFeedback) {
        lock(&self.state).apply_feedback(feedback);
    }

    /// Ends the thread that keeps the ring from being full.
    pub(super) fn join(self) {
        signal(self.stop.as_fd());
        // If it has panicked, what it has taken is lost.
        let _ = self.thread.join();
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// Takes what is in the ring, as long as there is memory for it.
    fn take(&mut self) {
        let Self { ring, ends, threads, pages, waiting, waiting_bytes, last_bytes, .. } = self;
        ring.take(|record| {
            if *waiting_bytes > MAX_WAITING_BYTES {
                return false;
            }
            let Some((header, copy)) = record.split_first_chunk::<{ HEADER as usize }>() else { return true };
            let header = Header::parse(header);
            if threads.len() >= MAX_THREADS && !threads.contains_key(&header.tid) {
                threads.clear();
                *last_bytes = 0;
            }
            if *last_bytes > MAX_LAST_BYTES {
                for thread in threads.values_mut() {
                    thread.last = None;
                }
                *last_bytes = 0;
            }
            let thread = threads.entry(header.tid).or_default();
            if thread.end.is_none() && !header.is_interrupted() {
                thread.set_end(header.tid, header.end_of_memory(), ends);
            }
            let copied =
                copy.get(..header.len as usize).unwrap_or_default().as_chunks::<{ PAGE as usize }>().0;
            let last = thread.last.as_deref().filter(|last| last.pid.0 == header.pid);
            let (pages, changed) = pages.shared(header.start, copied, last);
            *waiting_bytes += changed * PAGE as usize;
            let live = Arc::new(header.reading(pages));
            let before = thread.last.replace(Arc::clone(&live));
            *last_bytes += live.pages.len() * PAGE as usize;
            *last_bytes -= before.map_or(0, |before| before.pages.len() * PAGE as usize);
            let time = Timestamp(header.time.saturating_sub(BEFORE_SAMPLE_NS));
            waiting.push(Event { time, cpu: None, kind: EventKind::LiveStack(live) });
            true
        });
    }

    /// Tells the program where stacks end, and which are deep.
    fn apply_feedback(&mut self, feedback: &StackCopyFeedback) {
        for ((_, tid), stack) in &feedback.signal_stacks {
            // If that fails, the stacks stay truncated.
            let stack = [stack.start, stack.end, stack.pointer_at].map(|address| address.0);
            let _ = bpf::set(self.signal_stacks.as_fd(), tid.0, stack);
        }
        for (tid, base) in &feedback.bases {
            let Some(thread) = self.threads.get_mut(&tid.0) else { continue };
            if let Some(base) = base {
                thread.set_end(tid.0, base.0.saturating_add(8 + BEYOND_BASE), &self.ends);
            } else if thread.end != Some(FAR) {
                // The next copy finds it again.
                thread.end = None;
                let _ = bpf::remove(self.ends.as_fd(), tid.0);
            }
        }
        for tid in &feedback.truncated {
            let thread = self.threads.get_mut(&tid.0).filter(|thread| thread.end == Some(NOTHING));
            if let Some(thread) = thread {
                thread.set_end(tid.0, FAR, &self.ends);
            }
        }
    }
}

impl CopiedThread {
    /// Tells the program where a stack ends. If that fails, the program guesses it.
    fn set_end(&mut self, tid: u32, end: u64, ends: &OwnedFd) {
        self.end = Some(end);
        let _ = bpf::set(ends.as_fd(), tid, [end]);
    }
}

/// What precedes a copy.
struct Header {
    time: u64,
    pid: u32,
    tid: u32,
    stack_pointer: u64,
    start: u64,
    len: u64,
}

impl Header {
    fn parse(bytes: &[u8; HEADER as usize]) -> Self {
        let [time, id, stack_pointer, start, len] = std::array::from_fn(|at| {
            bytes.as_chunks::<8>().0.get(at).map_or(0, |word| u64::from_ne_bytes(*word))
        });
        Self { time, pid: (id >> 32) as u32, tid: id as u32, stack_pointer, start, len }
    }

    /// Whether the copy is of another stack, which a signal handler has interrupted. Otherwise it begins where the
    /// kernel's own copy ends.
    fn is_interrupted(&self) -> bool {
        self.start.wrapping_sub(self.stack_pointer) > MAX_KERNEL_COPY
    }

    /// The end of the memory that the stack is in, if that is not too far away to be the end of the stack.
    fn end_of_memory(&self) -> u64 {
        let memory = target_access::writable_memory_at(self.pid, self.stack_pointer);
        let end = memory.map_or(NOTHING, |memory| memory.end);
        if end.saturating_sub(self.start) <= MAX_COPY as u64 { end } else { NOTHING }
    }

    fn reading(&self, pages: Vec<Bytes>) -> LiveStack {
        LiveStack {
            pid: Pid(self.pid),
            tid: Tid(self.tid),
            read_at: Timestamp(self.time),
            start: Avma(self.start),
            pages,
            stack_pointer: Some(Avma(self.stack_pointer)),
        }
    }
}
