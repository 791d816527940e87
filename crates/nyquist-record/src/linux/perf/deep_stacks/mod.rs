//! The outer parts of deep stacks, read from living processes: by a thread of its own, a little after the samples whose
//! copies do not reach that far. Nobody is stopped for it, and nobody waits for it.
//!
//! The rest of the recording starts it, tells it of copies, takes what was read as events, and passes on what came of the copies.

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
use crate::linux::pool::Need;
use reader::LiveReader;
use ring_scanner::RingScanner;
pub(super) use truncated_stack::TruncatedStackSender;

/// The most samples with truncated stacks that wait to be looked after.
const MOST_CUTS: usize = 1024;

/// The thread that reads the outer parts of stacks, and what it has read.
#[derive(Debug)]
pub(super) struct DeepStacks {
    read: Receiver<Event>,
    copies: Sender<StackCopyFeedback>,
    reader: JoinHandle<()>,
}

impl DeepStacks {
    /// Starts the thread. It ends when nobody has a sender any more.
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

    /// What was read and not taken yet, for samples from that time on. What is older is dropped.
    pub(super) fn take_since(&self, time: Timestamp) -> Vec<Event> {
        self.read.try_iter().filter(|event| event.time >= time).collect()
    }

    /// Passes on what came of the copies: which stacks are to be read, and which of their pages.
    pub(super) fn apply_feedback(&self, counts: &StackCopyFeedback) {
        let StackCopyFeedback { whole, cut, looked_at, gaps, .. } = counts;
        if !(whole.is_empty() && cut.is_empty() && looked_at.is_empty() && gaps.is_empty()) {
            // One that has ended reads nothing more anyway.
            let _ = self.copies.send(counts.clone());
        }
    }

    /// Waits until it ends.
    pub(super) fn join(self) {
        // Nothing is lost if it has panicked: what it had read was sent.
        let _ = self.reader.join();
    }
}
