//! Converts events whose stacks were walked, in order, on any free thread.
//!
//! No thread is reserved for the converter. It would compete with the reading thread for a CPU, and all other
//! threads wait for the reading thread.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::conversion_result::ConversionResult;
use crate::converter::Converter;
use crate::unwind::ahead::batch::Step;

/// How many batches may wait. It is enough for the batches of a large round of a recording with stack copies.
/// If far fewer batches could wait, threads would sleep while others work.
const MAX_QUEUED_BATCHES: usize = 16;

/// A converter, and the batches that wait for it. A thread's panic is reported when the thread is joined, and
/// not here.
#[derive(Debug)]
pub(super) struct Converting {
    converter: Mutex<Converter>,
    waiting: Mutex<WaitingBatches>,
}

/// The batches that wait for the converter.
#[derive(Debug, Default)]
struct WaitingBatches {
    /// The number of the first batch.
    first: usize,
    /// Batches that are not ready are `None`.
    batches: VecDeque<Option<Vec<Step>>>,
}

impl WaitingBatches {
    /// Removes the batch whose turn it is, if it is ready.
    fn take_next(&mut self) -> Option<Vec<Step>> {
        let steps = self.batches.front_mut()?.take()?;
        self.batches.pop_front();
        self.first += 1;
        Some(steps)
    }
}

impl Converting {
    /// A queue without batches.
    pub(super) fn new(converter: Converter) -> Self {
        Self { converter: Mutex::new(converter), waiting: Mutex::default() }
    }

    /// The number of the next batch. All batches after it wait for it.
    pub(super) fn next_place(&self) -> usize {
        let mut waiting = self.waiting();
        waiting.batches.push_back(None);
        waiting.first + waiting.batches.len() - 1
    }

    /// Adds the batch with a number. If many batches wait, this thread converts one first.
    pub(super) fn put(&self, place: usize, steps: Vec<Step>) {
        let are_many = {
            let mut waiting = self.waiting();
            let index = place - waiting.first;
            if let Some(batch) = waiting.batches.get_mut(index) {
                *batch = Some(steps);
            }
            waiting.batches.len() > MAX_QUEUED_BATCHES
        };
        if are_many && let Ok(mut converter) = self.converter.lock() {
            self.convert_one(&mut converter);
        }
    }

    /// Converts the batch whose turn it is. Returns whether a batch was ready and no other thread was
    /// converting.
    pub(super) fn convert_next(&self) -> bool {
        self.converter.try_lock().is_ok_and(|mut converter| self.convert_one(&mut converter))
    }

    fn convert_one(&self, converter: &mut Converter) -> bool {
        let next = self.waiting().take_next();
        let is_some = next.is_some();
        for step in next.unwrap_or_default() {
            match step {
                Step::Push(event) => converter.push(event),
                Step::Advance(complete_before) => converter.advance(complete_before),
                Step::Note(mapping) => converter.prepare_mapping(&mapping),
            }
        }
        is_some
    }

    /// The profile of all batches.
    pub(super) fn finish(self) -> ConversionResult {
        while self.convert_next() {}
        self.converter.into_inner().unwrap_or_else(PoisonError::into_inner).finish()
    }

    fn waiting(&self) -> MutexGuard<'_, WaitingBatches> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use nyquist_profile::Meta;

    use super::*;
    use crate::event::{Event, EventKind, Pid, Sample, Timestamp, UserStack};
    use crate::options::Options;

    fn converting() -> Converting {
        let options = Options::new(Timestamp(0), Meta::default());
        Converting::new(Converter::new(options))
    }

    /// A sample at a time, before which all older events have been pushed.
    fn batch(time: u64) -> Vec<Step> {
        let kind = EventKind::Sample(Sample::in_user_code(Pid(1), UserStack::None));
        let event = Event { time: Timestamp(time), cpu: None, kind };
        vec![Step::Push(event), Step::Advance(Timestamp(time + 1))]
    }

    fn times(finished: &ConversionResult) -> Vec<u64> {
        assert_eq!(finished.statistics.late, 0);
        finished.profile.threads()[0].samples.iter().map(|sample| sample.time).collect()
    }

    #[test]
    fn batches_are_converted_in_their_order() {
        let converting = converting();
        let places = [0; 4].map(|_| converting.next_place());
        for place in [2, 0, 3, 1] {
            converting.put(places[place], batch(place as u64));
            while converting.convert_next() {}
        }
        assert_eq!(times(&converting.finish()), [0, 1, 2, 3]);
    }

    #[test]
    fn batches_wait_in_bounds_and_all_are_converted() {
        let converting = converting();
        for time in 0..100 {
            let place = converting.next_place();
            converting.put(place, batch(time));
            assert!(converting.waiting().batches.len() <= MAX_QUEUED_BATCHES);
        }
        assert_eq!(times(&converting.finish()), (0..100).collect::<Vec<u64>>());
    }
}
