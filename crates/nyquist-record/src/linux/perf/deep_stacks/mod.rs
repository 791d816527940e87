//! The outer parts of deep stacks, read from living processes by a separate thread, shortly after samples
//! whose copies were truncated. No thread is stopped for it, and none waits for it.
//!
//! The rest of the recording knows it by the traits of [`outer_stacks`](super::outer_stacks) alone.

mod assembler;
mod duty_cycle;
mod kernel_copies;
mod observer;
mod pages;
mod read_request;
mod reader;
mod ring_scanner;
mod stack_bases;
mod stack_program;
mod thread;
mod truncated_stack;
mod used_part;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread::JoinHandle;

use nyquist_convert::StackCopyFeedback;
use nyquist_convert::event::{Event, Timestamp};

use nyquist_perf::RecordFormat;

use super::outer_stacks::{MemoryReading, OuterStacks};
use super::ring_source::RingSource;
use crate::pool::Need;
use kernel_copies::{KernelCopies, StackProgram};
use observer::StackObserver;
use reader::LiveReader;
use ring_scanner::RingScanner;
use stack_bases::StackBases;

/// The most samples with truncated stacks that may wait to be processed.
const MAX_TRUNCATED_SAMPLES: usize = 1024;

/// What is known of the bases of stacks, and the thread that reads the outer parts of stacks.
#[derive(Debug)]
pub(super) struct DeepStacks {
    bases: Arc<StackBases>,
    /// `None` if the kernel does not copy them.
    kernel_copies: Option<KernelCopies>,
    /// `None` if living processes are not read.
    reader: Option<ReaderThread>,
}

/// The thread that reads the outer parts of stacks, and what it has read. It ends when the observer is gone.
#[derive(Debug)]
struct ReaderThread {
    read: Receiver<Event>,
    feedback: Sender<StackCopyFeedback>,
    thread: JoinHandle<()>,
}

impl OuterStacks for DeepStacks {
    type Program = StackProgram;
    type Observer = StackObserver;

    fn attach(events: &[&OwnedFd], stack_bytes: u32) -> Option<StackProgram> {
        // The parts are read from outside if the kernel refuses.
        StackProgram::attach(events, stack_bytes).ok()
    }

    fn start(
        (rings, format): (&[RingSource], &RecordFormat),
        program: Option<StackProgram>,
        reading: MemoryReading,
    ) -> io::Result<(Self, StackObserver)> {
        let bases = Arc::new(StackBases::default());
        if reading == MemoryReading::None {
            let observer = StackObserver { bases: Arc::clone(&bases), reports: None, by_kernel: false };
            return Ok((Self { bases, kernel_copies: None, reader: None }, observer));
        }
        let kernel_copies = program.map(KernelCopies::start).transpose()?;
        let by_kernel = kernel_copies.is_some();
        let (reports, truncated) = sync_channel(MAX_TRUNCATED_SAMPLES);
        let (feedback, feedback_received) = channel();
        let (out, read) = channel();
        let scanner = RingScanner::new(
            rings.iter().filter(|ring| ring.need != Need::Occurrences),
            format,
            (Arc::clone(&bases), by_kernel),
        );
        let live = LiveReader::new((truncated, feedback_received, out), scanner, Arc::clone(&bases), reading);
        let thread = std::thread::Builder::new().name("nyquist-stacks".into());
        let reader = ReaderThread { read, feedback, thread: thread.spawn(move || live.run())? };
        let observer = StackObserver { bases: Arc::clone(&bases), reports: Some(reports), by_kernel };
        Ok((Self { bases, kernel_copies, reader: Some(reader) }, observer))
    }

    fn take_since(&self, time: Timestamp) -> Vec<Event> {
        let read = self.reader.iter().flat_map(|reader| reader.read.try_iter());
        let mut events: Vec<_> = read.filter(|event| event.time >= time).collect();
        if let Some(copies) = &self.kernel_copies {
            events.extend(copies.take_since(time));
        }
        events
    }

    fn apply_feedback(&self, feedback: &StackCopyFeedback) {
        if let Some(copies) = &self.kernel_copies {
            copies.apply_feedback(feedback);
        }
        for (tid, base) in &feedback.bases {
            self.bases.set(tid.0, base.map(|base| base.0));
        }
        for tid in &feedback.truncated {
            self.bases.note_ended_early(tid.0);
        }
        if let Some(reader) = self.reader.as_ref().filter(|_| feedback.concerns_readings()) {
            // A reader that has ended reads nothing more anyway.
            let _ = reader.feedback.send(feedback.clone());
        }
    }

    fn join(self) {
        if let Some(copies) = self.kernel_copies {
            copies.join();
        }
        if let Some(reader) = self.reader {
            // Nothing is lost if it has panicked, because its readings were sent.
            let _ = reader.thread.join();
        }
    }
}
