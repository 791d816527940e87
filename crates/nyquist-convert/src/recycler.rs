//! Samples that were converted, on their way back to the threads that have made them.
//!
//! The C library's allocator has a lock for the memory of each thread. If one thread frees memory that
//! another one has allocated, they wait for each other at that lock, and are woken by system calls.

use std::sync::mpsc::{self, Receiver, Sender};

use crate::event::Sample;

/// How many samples go back at once.
const AT_ONCE: usize = 256;

/// Where converted samples go.
#[derive(Debug)]
pub(crate) struct SampleRecycler {
    samples: Vec<Sample>,
    back: Sender<Vec<Sample>>,
}

/// Where they come back.
#[derive(Debug)]
pub(crate) struct RecycledSamples(Receiver<Vec<Sample>>);

/// A way back for samples.
pub(crate) fn recycler() -> (SampleRecycler, RecycledSamples) {
    let (back, receiver) = mpsc::channel();
    (SampleRecycler { samples: Vec::new(), back }, RecycledSamples(receiver))
}

impl SampleRecycler {
    /// Takes a sample that is not needed any more.
    pub(crate) fn take(&mut self, sample: Sample) {
        self.samples.push(sample);
        if self.samples.len() >= AT_ONCE {
            // A thread that has ended needs nothing back.
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
