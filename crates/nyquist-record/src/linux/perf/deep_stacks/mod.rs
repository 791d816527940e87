//! The outer parts of deep stacks, read from living processes by a separate thread, shortly after samples
//! whose copies were truncated. No thread is stopped for it, and none waits for it.
//!
//! The rest of the recording starts it, reports truncated copies to it, takes its readings as events, and
//! passes on the unwinder's feedback.

mod duty_cycle;
mod hot_pages;
mod pages;
mod reader;
mod ring_scanner;
mod thread;
mod truncated_stack;
mod wanted;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread::JoinHandle;

use nyquist_convert::StackCopyFeedback;
use nyquist_convert::event::{Event, Timestamp};
use nyquist_perf::RecordFormat;

use super::ring_source::RingSource;
use super::stack_bases::StackBases;
use crate::pool::Need;
use reader::LiveReader;
use ring_scanner::RingScanner;
pub(super) use truncated_stack::TruncatedStackSender;

/// The most samples with truncated stacks that may wait to be processed.
const MOST_CUTS: usize = 1024;

/// The thread that reads the outer parts of stacks, and what it has read.
#[derive(Debug)]
pub(super) struct DeepStacks {
    read: Receiver<Event>,
    copies: Sender<StackCopyFeedback>,
    reader: JoinHandle<()>,
}

impl DeepStacks {
    /// Starts the thread. It ends when all senders are gone.
    pub(super) fn start(
        rings: &[RingSource],
        format: &RecordFormat,
        roots: &Arc<StackBases>,
    ) -> io::Result<(Self, TruncatedStackSender)> {
        let (tell, cuts) = sync_channel(MOST_CUTS);
        let (copies, copies_heard) = channel();
        let (out, read) = channel();
        let peeks = RingScanner::new(
            rings.iter().filter(|ring| ring.need != Need::Occurrences),
            format,
            Arc::clone(roots),
        );
        let live = LiveReader::new(cuts, copies_heard, out, peeks, Arc::clone(roots));
        let thread = std::thread::Builder::new().name("nyquist-stacks".into());
        let reader = thread.spawn(move || live.run())?;
        Ok((Self { read, copies, reader }, TruncatedStackSender { out: tell }))
    }

    /// The readings not taken yet, for samples from that time on. Older ones are dropped.
    pub(super) fn take_since(&self, time: Timestamp) -> Vec<Event> {
        self.read.try_iter().filter(|event| event.time >= time).collect()
    }

    /// Passes on the feedback on the copies: which stacks to read, and which of their pages.
    pub(super) fn apply_feedback(&self, counts: &StackCopyFeedback) {
        let StackCopyFeedback { whole, cut, looked_at, gaps, .. } = counts;
        if !(whole.is_empty() && cut.is_empty() && looked_at.is_empty() && gaps.is_empty()) {
            // A reader that has ended reads nothing more anyway.
            let _ = self.copies.send(counts.clone());
        }
    }

    /// Waits until it ends.
    pub(super) fn join(self) {
        // Nothing is lost if it has panicked, because its readings were sent.
        let _ = self.reader.join();
    }
}
