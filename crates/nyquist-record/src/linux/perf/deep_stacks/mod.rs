//! The outer parts of deep stacks, read from living processes by a separate thread, shortly after samples
//! whose copies were truncated. No thread is stopped for it, and none waits for it.
//!
//! The rest of the recording knows it by the traits of [`outer_stacks`](super::outer_stacks) alone.

mod duty_cycle;
mod observer;
mod pages;
mod read_request;
mod reader;
mod ring_scanner;
mod stack_bases;
mod thread;
mod truncated_stack;
mod used_part;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread::JoinHandle;

use nyquist_convert::StackCopyFeedback;
use nyquist_convert::event::{Event, Timestamp};
use nyquist_perf::RecordFormat;

use super::outer_stacks::{MemoryReading, OuterStacks};
use super::ring_source::RingSource;
use crate::pool::Need;
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
    type Observer = StackObserver;

    fn start(
        rings: &[RingSource],
        format: &RecordFormat,
        reading: MemoryReading,
    ) -> io::Result<(Self, StackObserver)> {
        let bases = Arc::new(StackBases::default());
        if reading == MemoryReading::None {
            let observer = StackObserver { bases: Arc::clone(&bases), reports: None };
            return Ok((Self { bases, reader: None }, observer));
        }
        let (reports, truncated) = sync_channel(MAX_TRUNCATED_SAMPLES);
        let (feedback, feedback_received) = channel();
        let (out, read) = channel();
        let scanner = RingScanner::new(
            rings.iter().filter(|ring| ring.need != Need::Occurrences),
            format,
            Arc::clone(&bases),
        );
        let live = LiveReader::new((truncated, feedback_received, out), scanner, Arc::clone(&bases), reading);
        let thread = std::thread::Builder::new().name("nyquist-stacks".into());
        let reader = ReaderThread { read, feedback, thread: thread.spawn(move || live.run())? };
        let observer = StackObserver { bases: Arc::clone(&bases), reports: Some(reports) };
        Ok((Self { bases, reader: Some(reader) }, observer))
    }

    fn take_since(&self, time: Timestamp) -> Vec<Event> {
        let read = self.reader.iter().flat_map(|reader| reader.read.try_iter());
        read.filter(|event| event.time >= time).collect()
    }

    fn apply_feedback(&self, feedback: &StackCopyFeedback) {
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
        if let Some(reader) = self.reader {
            // Nothing is lost if it has panicked, because its readings were sent.
            let _ = reader.thread.join();
        }
    }
}
