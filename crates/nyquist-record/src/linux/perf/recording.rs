//! A running recording: its chunks, its end, and its summary.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use nyquist_convert::StackCopyFeedback;
use nyquist_convert::event::{Event, EventKind, Timestamp};
use nyquist_convert::perf::PerfDecoder;
use nyquist_perf::file::WrittenEvent;

use super::active_outer_stacks::ActiveOuterStacks;
use super::drain::FilledBuffer;
use super::event_parameters::EventParameters;
use super::event_pause::EventPause;
use super::events::OpenedEvents;
use super::live_totals::LiveTotals;
use super::outer_stacks::OuterStacks as _;
use super::reader::ReaderEnd;
use crate::linux::cgroup::LeafGroup;
use crate::linux::kernel;
use crate::linux::pause::{PauseHandle, PausedBackend};
use crate::linux::stop::{EndReason, StopHandle};
use crate::pool::BufferWriter;
use crate::{Chunk, ChunkSource};

/// A running recording: an iterator over the recorded chunks. Dropping it ends it.
#[derive(Debug)]
pub struct PerfRecording {
    pub(crate) initial: Option<InitialState>,
    pub(crate) chunks: Receiver<Vec<FilledBuffer>>,
    /// Buffers that were received from the reader and not returned yet.
    pub(crate) received: VecDeque<FilledBuffer>,
    pub(crate) format: PerfDecoder,
    pub(crate) reader: Option<JoinHandle<ReaderEnd>>,
    pub(crate) end: Option<(EndReason, bool)>,
    pub(crate) stop: StopHandle,
    pub(crate) events: Arc<OpenedEvents>,
    pub(crate) pause: EventPause,
    pub(crate) parameters: EventParameters,
    /// Whether the counts of the events are the CPU time of the recorded processes.
    pub(crate) counts_time: bool,
    /// The command's own control group.
    pub(crate) leaf: Option<LeafGroup>,
    /// Finds the parts of stacks that their copies lack, until the reader has ended.
    pub(super) outer_stacks: Option<ActiveOuterStacks>,
    pub(crate) live_totals: LiveTotals,
    /// A chunk that others must precede.
    pub(crate) held: Option<Chunk>,
    /// The time before which records were announced as complete.
    pub(crate) announced: Timestamp,
    /// Set if a chunk comes at least this often, even without records.
    pub(crate) heartbeat: Option<Heartbeat>,
}

/// The way to know how far the reader has come while there are no records.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    every: Duration,
    /// The time before which the reader has sent all records, in ns. It is stored after they were sent.
    settled: Arc<AtomicU64>,
    /// How many chunks without records may follow each other, if not all.
    most: Option<u32>,
    /// How many have come since the last records.
    silent: u32,
}

impl Heartbeat {
    /// A chunk comes this often; if `is_lazy`, only for some time after the last records.
    pub(crate) fn new(every: Duration, is_lazy: bool, settled: Arc<AtomicU64>) -> Self {
        /// Long enough for what is done from time to time with what has come.
        const MAX_SILENT: u32 = 4;
        Self { every, settled, most: is_lazy.then_some(MAX_SILENT), silent: 0 }
    }

    /// How long to wait for records; `None` for ever.
    fn patience(&self) -> Option<Duration> {
        self.most.is_none_or(|most| self.silent < most).then_some(self.every)
    }
}

/// The state before the first record.
#[derive(Debug, Default)]
pub(crate) struct InitialState {
    pub(crate) time: Timestamp,
    /// The names and mappings of the processes that run already.
    pub(crate) processes: Vec<EventKind>,
    /// Whether the kernel's mappings are requested.
    pub(crate) kernel: bool,
}

impl InitialState {
    fn events(self) -> Vec<Event> {
        let kernel = if self.kernel { kernel::mappings() } else { Vec::new() };
        let kinds = kernel.into_iter().chain(self.processes);
        kinds.map(|kind| Event { time: self.time, cpu: None, kind }).collect()
    }
}

/// The summary of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerfSummary {
    /// Why it ended.
    pub reason: EndReason,
    /// The CPU time of all threads together, user and kernel, in nanoseconds, as counted by the events;
    /// `None` if they have counted other processes as well.
    pub total_cpu_time_ns: Option<u64>,
    /// Whether descendants lived on when the recording ended with the command or the attached processes.
    pub left_running: bool,
    /// How many times requested events have happened in all, by the kernel's count, for those whose records do not add
    /// up to that. By their indices in the list of requested events.
    pub event_counts: BTreeMap<usize, u64>,
}

impl Iterator for PerfRecording {
    type Item = Chunk;

    fn next(&mut self) -> Option<Chunk> {
        if let Some(initial) = self.initial.take() {
            return Some(Chunk::events(initial.events(), Timestamp(0)));
        }
        if let Some(held) = self.held.take() {
            self.announced = self.announced.max(held.complete_before());
            return Some(held);
        }
        if let Some(filled) = self.next_filled() {
            let bytes = filled.buffer.map_or_else(Bytes::new, BufferWriter::into_bytes);
            let records = Chunk::records(bytes, self.format.clone(), filled.complete_before);
            let mut earlier = self.take_outer_parts();
            earlier.extend(self.live_totals.take_due(&self.events));
            if earlier.is_empty() {
                self.announced = self.announced.max(records.complete_before());
                return Some(records);
            }
            self.held = Some(records);
            return Some(Chunk::events(earlier, self.announced));
        }
        let end = self.join()?;
        Some(Chunk::events(end.unreported, Timestamp(u64::MAX)))
    }
}

impl ChunkSource for PerfRecording {
    fn apply_feedback(&self, feedback: &StackCopyFeedback) {
        if let Some(stacks) = &self.outer_stacks {
            stacks.apply_feedback(feedback);
        }
    }
}

impl PerfRecording {
    /// A handle that ends the recording before the process ends.
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// A handle that pauses and resumes the recording.
    pub fn pause_handle(&self) -> PauseHandle {
        PauseHandle { backend: PausedBackend::Perf(self.pause.clone()) }
    }

    /// The events as a perf.data file describes them: sampling events come first.
    pub fn written_events(&self) -> io::Result<Vec<WrittenEvent>> {
        self.parameters.events(&self.events)
    }

    /// The kernel's ids of the events that count CPU time, and the CPU of each.
    pub fn counters(&self) -> Vec<(u64, u32)> {
        self.events.counters().iter().map(|counter| (counter.id, counter.cpu)).collect()
    }

    /// The next buffer that the reader has filled; `None` when it has ended.
    fn next_filled(&mut self) -> Option<FilledBuffer> {
        while self.received.is_empty() {
            let patience = self.heartbeat.as_ref().and_then(Heartbeat::patience);
            let Some(every) = patience else {
                self.received = self.chunks.recv().ok()?.into();
                break;
            };
            self.received = match self.chunks.recv_timeout(every) {
                Ok(filled) => filled.into(),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => self.silence()?,
            };
        }
        let filled = self.received.pop_front()?;
        if let Some(heartbeat) = &mut self.heartbeat {
            heartbeat.silent = if filled.buffer.is_some() { 0 } else { heartbeat.silent.saturating_add(1) };
        }
        Some(filled)
    }

    /// What the reader has sent by now, or how far it has come without records; `None` when it has ended.
    fn silence(&self) -> Option<VecDeque<FilledBuffer>> {
        // Read first: all older records have been sent then.
        let complete_before = Timestamp(self.heartbeat.as_ref()?.settled.load(Ordering::Acquire));
        match self.chunks.try_recv() {
            Ok(filled) => Some(filled.into()),
            Err(TryRecvError::Disconnected) => None,
            Err(TryRecvError::Empty) => {
                Some(VecDeque::from([FilledBuffer { buffer: None, complete_before }]))
            }
        }
    }

    /// The readings of stacks that are still useful: the samples that need them have not been returned yet.
    fn take_outer_parts(&self) -> Vec<Event> {
        self.outer_stacks.as_ref().map_or_else(Vec::new, |stacks| stacks.take_since(self.announced))
    }

    /// Ends the recording if it has not ended, and returns its summary. Chunks that were not taken are lost.
    /// If the events cannot be read any more, their sums are 0, because the recorded samples are worth more
    /// than the sums.
    pub fn finish(mut self) -> PerfSummary {
        self.join();
        let (reason, threads_live) = self.end.unwrap_or((EndReason::Stopped, false));
        let live = self.leaf.as_ref().map_or(threads_live && self.counts_time, LeafGroup::has_processes);
        let total_ns = self.events.total().unwrap_or_default();
        PerfSummary {
            reason,
            total_cpu_time_ns: self.counts_time.then_some(total_ns),
            left_running: live && reason == EndReason::Exited,
            event_counts: self.events.counts_at_end(),
        }
    }

    /// Ends the reader if it has not ended; `None` if it had been joined before.
    fn join(&mut self) -> Option<ReaderEnd> {
        let reader = self.reader.take()?;
        self.stop.stop();
        // The reader may wait for memory in chunks that will not be taken.
        self.received.clear();
        while self.chunks.recv().is_ok() {}
        let end = reader.join().ok()?;
        if let Some(stacks) = self.outer_stacks.take() {
            // It ends with the reader, which has sent its requests.
            stacks.join();
        }
        self.end = Some((end.reason, end.threads_live));
        Some(end)
    }
}

impl Drop for PerfRecording {
    fn drop(&mut self) {
        self.join();
    }
}
