//! The record that ends a batch: how far the recording has come.

use crate::batch::Batch;
use crate::fields::{Fields, put_number};
use crate::kind::Kind;
use crate::lasting_wait::LastingWait;

/// How far a recording has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Up to which time it is complete, in ns since the profile's zero.
    pub end: u64,
    /// Samples that were converted.
    pub samples: u64,
    /// Records that the kernel has dropped.
    pub lost: u64,
    /// How often the kernel paused sampling.
    pub throttled: u64,
    /// Samples whose stack does not reach its root.
    pub truncated: u64,
    /// Samples whose stack was completed from the running program's memory.
    pub completed: u64,
    /// Markers that the programs have set.
    pub markers: u64,
    /// The waits that have not ended.
    pub waits: Vec<LastingWait>,
}

impl State {
    /// Adds it to a batch, as its last record.
    pub fn add_to(&self, batch: &mut Batch) {
        batch.add(Kind::State, |out| {
            let Self { end, samples, lost, throttled, truncated, completed, markers, waits } = self;
            for number in [end, samples, lost, throttled, truncated, completed, markers] {
                put_number(out, *number);
            }
            for wait in waits {
                wait.put(out);
            }
        });
    }

    pub(crate) fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let mut state = Self::default();
        for number in [
            &mut state.end,
            &mut state.samples,
            &mut state.lost,
            &mut state.throttled,
            &mut state.truncated,
            &mut state.completed,
            &mut state.markers,
        ] {
            *number = fields.number()?;
        }
        while !fields.is_empty() {
            state.waits.push(LastingWait::read(fields)?);
        }
        Some(state)
    }
}
