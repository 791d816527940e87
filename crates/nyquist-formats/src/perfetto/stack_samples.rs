//! What the packets `StackSample` of later versions of Perfetto weigh: each has a weight of the counter that it was
//! taken by, and of others that were read with it.

use nyquist_profile::{Measure, Unit};
use rustc_hash::FxHashMap;

use super::stack_sample_message::{
    CounterDescriptor, CounterUnit, StackSample, StackSampleDefaults, TaskContext,
};
use super::texts::text;
use crate::pprof::factor_of;
use crate::values::SampleValueKind;

/// The most counters that are told apart.
const MAX_COUNTERS: usize = 256;

/// The most bytes of a counter's name that tell it from others.
const MAX_NAME_BYTES: usize = 256;

/// The state of a sequence for these packets.
#[derive(Default)]
pub(super) struct StackSampleState {
    tasks: FxHashMap<u64, TaskContext>,
    counters: FxHashMap<u64, CounterDescriptor>,
    defaults: StackSampleDefaults,
}

impl StackSampleState {
    pub(super) fn intern(&mut self, tasks: Vec<TaskContext>, counters: Vec<CounterDescriptor>) {
        self.tasks.extend(tasks.into_iter().map(|it| (it.id, it)));
        self.counters.extend(counters.into_iter().map(|it| (it.id, it)));
    }

    pub(super) fn set_defaults(&mut self, defaults: Option<StackSampleDefaults>) {
        self.defaults = defaults.unwrap_or_default();
    }

    /// The process and the thread of a sample.
    pub(super) fn thread(&self, sample: &StackSample) -> (i64, i64) {
        let task = sample.task.or_else(|| self.tasks.get(&sample.task_id).copied()).unwrap_or_default();
        (task.pid.into(), task.tid.into())
    }

    /// The counters of a sample, each with its weight. The first one is what it was taken by.
    fn weights<'a>(&'a self, sample: &'a StackSample) -> Vec<(Option<&'a CounterDescriptor>, u64)> {
        let primary = (sample.primary.as_ref())
            .or_else(|| self.counters.get(&sample.primary_id))
            .or(self.defaults.primary.as_ref());
        // A default can name any number of followers.
        let weighed = sample.follower_weights.len();
        let followers: Vec<_> = if !sample.followers.is_empty() {
            sample.followers.iter().take(weighed).map(Some).collect()
        } else if !sample.follower_ids.is_empty() {
            sample.follower_ids.iter().take(weighed).map(|id| self.counters.get(id)).collect()
        } else {
            self.defaults.followers.iter().take(weighed).map(Some).collect()
        };
        let mut weights = vec![(primary, sample.primary_weight.unwrap_or(1))];
        weights.extend(followers.into_iter().zip(sample.follower_weights.iter().copied()));
        weights
    }
}

/// Weights of samples, by counter.
#[derive(Default)]
pub(super) struct CounterWeights {
    /// The counters in the order in which they came. Those beyond the limit are the last one.
    pub(super) values: Vec<SampleValueKind>,
    places: FxHashMap<(Vec<u8>, Option<Vec<u8>>), usize>,
    /// Each sample's index, its counter, and its weight.
    pub(super) rows: Vec<(usize, usize, u64)>,
}

impl CounterWeights {
    /// Adds the weights of a sample.
    pub(super) fn add(&mut self, index: usize, state: &StackSampleState, sample: &StackSample) {
        for (counter, weight) in state.weights(sample) {
            let unnamed = CounterDescriptor::default();
            let place = self.place(counter.unwrap_or(&unnamed));
            let factor = self.values[place].factor;
            self.rows.push((index, place, weight.saturating_mul(factor)));
        }
    }

    fn place(&mut self, counter: &CounterDescriptor) -> usize {
        let unit = match &counter.unit {
            Some(CounterUnit::Named(unit)) => Some(beginning(unit)),
            Some(CounterUnit::Known(unit)) => Some(vec![unit.to_le_bytes()[0]]),
            None => None,
        };
        let key = (beginning(&counter.name), unit);
        if let Some(&place) = self.places.get(&key) {
            return place;
        }
        if self.values.len() < MAX_COUNTERS {
            self.values.push(value(counter));
        }
        let place = self.values.len() - 1;
        self.places.insert(key, place);
        place
    }

    /// The counter that is shown by default: the first of CPU time, or else the first of all.
    pub(super) fn default_value(&self) -> usize {
        self.values.iter().position(is_cpu_time).unwrap_or(0)
    }
}

/// What tells a name from others. Each sample looks for that of its counter, which may be very long.
fn beginning(name: &[u8]) -> Vec<u8> {
    name.get(..MAX_NAME_BYTES).unwrap_or(name).to_vec()
}

/// Whether a counter is a clock of the CPU time of threads.
fn is_cpu_time(value: &SampleValueKind) -> bool {
    value.unit == Unit::Time && matches!(&*value.name, "cpu-clock" | "task-clock")
}

/// What a profile of this counter measures.
pub(super) fn measure(value: &SampleValueKind) -> Measure {
    if is_cpu_time(value) { Measure::default() } else { value.measure() }
}

fn value(counter: &CounterDescriptor) -> SampleValueKind {
    let name = if counter.name.is_empty() { "samples".into() } else { text(&counter.name) };
    let (factor, unit) = match &counter.unit {
        Some(CounterUnit::Known(1)) => (1, Unit::Time),
        Some(CounterUnit::Known(4)) => (1, Unit::Bytes),
        Some(CounterUnit::Named(unit)) => factor_of(&text(unit)),
        Some(CounterUnit::Known(_)) | None => (1, Unit::Count),
    };
    let factor = factor.saturating_mul(counter.multiplier.filter(|&it| it > 0).unwrap_or(1));
    SampleValueKind { name: name.to_string(), unit, factor }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A default that names many followers costs a sample nothing, and long names do not either.
    #[test]
    fn a_sample_costs_what_it_weighs() {
        let named =
            |byte: u8| CounterDescriptor { name: vec![byte; 1 << 20], ..CounterDescriptor::default() };
        let followers = vec![CounterDescriptor::default(); 1000];
        let mut state = StackSampleState::default();
        state.set_defaults(Some(StackSampleDefaults { primary: Some(named(b'a')), followers }));
        let sample = StackSample { follower_weights: vec![7, 8], ..StackSample::default() };
        assert_eq!(state.weights(&sample).iter().map(|it| it.1).collect::<Vec<_>>(), [1, 7, 8]);
        let mut weights = CounterWeights::default();
        (0..3).for_each(|index| weights.add(index, &state, &sample));
        assert_eq!((weights.values.len(), weights.rows.len()), (2, 9));
        assert!(weights.places.keys().all(|(name, _)| name.len() <= MAX_NAME_BYTES));
    }
}
