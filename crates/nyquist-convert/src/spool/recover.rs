//! A recording that was read from its spool becomes what a conversion gives.

use super::source::recovered;
use crate::account::occurrence_counts::OccurrenceCounts;
use crate::build::finish::complete;
use crate::build::marker_kinds::{WAIT, wait_marker_name};
use crate::build::markers::{Content, Markers};
use crate::conversion_result::{ConversionResult, Libs};
use crate::event::FieldValue;
use crate::modules::lib_source::LibSource;
use crate::modules::store::ModuleStore;
use crate::statistics::Statistics;
use nyquist_profile::{
    CategoryColor, LibId, MarkerTiming, ProfileBuilder, Sample, StackId, ThreadIndex, well_known,
};
use nyquist_spool::{GeneratedCode, LastingWait, Recovered, State};
use rustc_hash::FxHashMap;

/// The shortest wait that has a marker, in nanoseconds.
const MIN_MARKED_NS: u64 = 1_000_000;

/// What a recording would have given if it had ended where its spool ends. `same_boot` says whether the machine was not
/// restarted since.
pub fn recover(spool: Recovered, same_boot: bool) -> ConversionResult {
    let Recovered { mut builder, stacks, sources, code, accompanying, mut state, .. } = spool;
    extend(&mut state, &builder);
    let mut code_of: FxHashMap<LibId, Vec<GeneratedCode>> = FxHashMap::default();
    for (lib, code) in code {
        code_of.entry(lib).or_default().push(code);
    }
    let mut sources: Vec<(LibId, LibSource)> = sources
        .into_iter()
        .map(|(lib, source)| (lib, recovered(source, code_of.remove(&lib).unwrap_or_default(), same_boot)))
        .collect();
    sources.sort_by_key(|(lib, _)| *lib);
    let mut markers = Markers::default();
    for wait in &state.waits {
        add_wait(&mut builder, &mut markers, wait, (&stacks, state.end));
    }
    let statistics = statistics(&state);
    complete(&mut builder, &statistics, state.end, &accompanying.into_iter().collect());
    ConversionResult {
        profile: builder.finish(),
        statistics,
        occurrences: OccurrenceCounts::default(),
        notes: Vec::new(),
        libs: Libs::new(sources, ModuleStore::default()),
    }
}

/// A batch may have been written in part: its samples come before its state.
fn extend(state: &mut State, builder: &ProfileBuilder) {
    let rows = builder.profile().threads().iter().map(|thread| &thread.samples);
    let samples = rows.clone().map(|samples| samples.iter().filter(|sample| !sample.off_cpu).count() as u64);
    let last = rows.filter_map(|samples| Some(samples.last()?.time)).max();
    state.end = state.end.max(last.unwrap_or(0));
    state.samples = state.samples.max(samples.sum());
}

fn statistics(state: &State) -> Statistics {
    let State { samples, lost, throttled, truncated, completed, markers, .. } = *state;
    Statistics { samples, lost, throttled, truncated, completed, markers, ..Statistics::default() }
}

/// Adds a wait that had not ended, up to the end of the recording.
fn add_wait(
    builder: &mut ProfileBuilder,
    markers: &mut Markers,
    wait: &LastingWait,
    (stacks, end): (&[StackId], u64),
) {
    if wait.thread >= builder.profile().threads().len() {
        return;
    }
    let row = ThreadIndex::from_index(wait.thread);
    let mut stack = wait.stack.and_then(|index| stacks.get(index).copied());
    if let Some(label) = &wait.label {
        let other = builder.add_category(well_known::OTHER, CategoryColor::Grey);
        stack = Some(builder.intern_label(stack, label, Some(other)));
    }
    let length = end.saturating_sub(wait.since);
    let weight = length / builder.profile().meta().interval.max(1);
    if weight > 0 {
        builder.add_sample(row, Sample { time: end, cpu_delta: 0, stack, weight, off_cpu: true });
    }
    if length >= MIN_MARKED_NS {
        let text = |text: Option<&String>| {
            text.map_or(FieldValue::Missing, |text| FieldValue::String(text.as_str().into()))
        };
        let values = [
            text(Some(&wait.reason)),
            text(wait.object.as_ref()),
            text(wait.holder.as_ref()),
            FieldValue::Missing,
        ];
        let name = wait_marker_name(&wait.reason);
        let content = Content { name: &name, schema: Some(&WAIT), values: &values, category: None, stack };
        markers.add(builder, row, content, MarkerTiming::Interval(wait.since, end));
    }
}
