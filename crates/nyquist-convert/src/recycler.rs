//! Returns converted samples to the threads that have allocated them.
//!
//! The C library's allocator has a lock for the memory of each thread. If a thread frees memory that another
//! thread has allocated, both contend for that lock, and wake each other by system calls.

use std::sync::mpsc::{self, Receiver, Sender};

use crate::event::Sample;

/// How many samples are returned at once.
const AT_ONCE: usize = 256;

/// The sending end for converted samples.
#[derive(Debug)]
pub(crate) struct SampleRecycler {
    samples: Vec<Sample>,
    back: Sender<Vec<Sample>>,
}

/// The receiving end for converted samples.
#[derive(Debug)]
pub(crate) struct RecycledSamples(Receiver<Vec<Sample>>);

/// A channel that returns samples.
pub(crate) fn recycler() -> (SampleRecycler, RecycledSamples) {
    let (back, receiver) = mpsc::channel();
    (SampleRecycler { samples: Vec::new(), back }, RecycledSamples(receiver))
}

impl SampleRecycler {
    /// Returns a sample that is not needed any more to its thread.
    pub(crate) fn take(&mut self, sample: Sample) {
        self.samples.push(sample);
        if self.samples.len() >= AT_ONCE {
            // A thread that has ended needs no samples back.
            let _ = self.back.send(std::mem::take(&mut self.samples));
        }
    }
}

impl RecycledSamples {
    /// The samples that have come back so far.
    pub(crate) fn so_far(&self) -> Vec<Vec<Sample>> {
        self.0.try_iter().collect()
    }
}
