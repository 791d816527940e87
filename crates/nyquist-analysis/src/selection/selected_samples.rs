//! The samples that a selection's threads, times and state choose, before their stacks are examined.

use std::ops::Range;

use nyquist_profile::{Profile, Sample, ThreadIndex};

use crate::amount::Amount;
use crate::sample_state::SampleState;
use crate::selection::Selection;

/// The samples that a selection chooses by thread, time and state.
#[derive(Clone, Debug)]
pub(crate) struct SelectedSamples<'p> {
    profile: &'p Profile,
    pub(crate) threads: Vec<ThreadIndex>,
    range: Range<u64>,
    pub(crate) state: SampleState,
}

/// A chosen sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SelectedSample {
    pub(crate) sample: Sample,
    /// Whether it is its thread's first sample, whose CPU delta has no meaning.
    pub(crate) is_first: bool,
    pub(crate) amount: Amount,
}

impl<'p> SelectedSamples<'p> {
    pub(crate) fn new(profile: &'p Profile, selection: &Selection) -> Self {
        let threads = selection.select_threads(profile).map(|(id, _)| id).collect();
        Self { profile, threads, range: selection.times(), state: selection.state }
    }

    /// The range of a thread's samples in the chosen times. O(log samples).
    pub(crate) fn range_of(&self, thread: ThreadIndex) -> Range<usize> {
        let samples = &self.profile.thread(thread).samples;
        // With exact times, a sample that ends at the range's start is outside, and one that ends at its
        // end is inside.
        let later = u64::from(self.profile.meta().has_exact_times);
        let start = match self.range.start {
            0 => 0,
            start => samples.count_before(start.saturating_add(later)),
        };
        let end = samples.count_before(self.range.end.saturating_add(later));
        start..end.max(start)
    }

    /// The states that are chosen.
    pub(crate) fn states(&self) -> &'static [SampleState] {
        match self.state {
            SampleState::OnCpu => &[SampleState::OnCpu],
            SampleState::OffCpu => &[SampleState::OffCpu],
            SampleState::Both => &[SampleState::OnCpu, SampleState::OffCpu],
        }
    }

    /// The chosen samples of a thread, in the order of time. The first is found in O(log samples).
    pub(crate) fn of_thread(&self, thread: ThreadIndex) -> impl Iterator<Item = SelectedSample> + use<'p> {
        let state = self.state;
        self.of_thread_in_any_state(thread).filter(move |chosen| state.accepts(&chosen.sample))
    }

    /// The same without regard to the state.
    pub(crate) fn of_thread_in_any_state(
        &self,
        thread: ThreadIndex,
    ) -> impl Iterator<Item = SelectedSample> + use<'p> {
        let profile = self.profile;
        let range = self.range_of(thread);
        let numbered = profile.thread(thread).samples.range(range.clone()).zip(range.start..);
        numbered.map(move |(sample, position)| SelectedSample {
            sample,
            is_first: position == 0,
            amount: Amount::of_sample(profile, &sample.untimed(), position == 0),
        })
    }
}
