//! How long control groups were held up because they had used up their CPU time, and how long their threads waited
//! meanwhile.

use crate::printer::Printer;
use nyquist_profile::{Marker, MarkerTiming, MarkerValue, Profile, well_known};
use std::collections::BTreeMap;
use std::ops::Range;

/// Prints a line for each group that was held up.
pub(super) fn print(printer: Printer, profile: &Profile) {
    for line in lines(profile) {
        printer.say(line);
    }
}

/// The intervals in which a group was held up, and the time that it was: the sum of its CPUs, in ms.
#[derive(Default)]
struct HeldUp {
    intervals: Vec<Range<u64>>,
    total_ms: f64,
}

fn lines(profile: &Profile) -> Vec<String> {
    let mut groups: BTreeMap<&str, HeldUp> = BTreeMap::new();
    for marker in markers(profile, well_known::QUOTA_SCHEMA) {
        let [MarkerValue::String(group), MarkerValue::Number(held_up_ms)] = marker.values[..] else {
            continue;
        };
        let group = groups.entry(profile.string(group)).or_default();
        group.intervals.extend(interval(marker));
        group.total_ms += held_up_ms;
    }
    groups.iter().map(|(group, held_up)| line(profile, group, held_up)).collect()
}

fn line(profile: &Profile, group: &str, held_up: &HeldUp) -> String {
    let waited: u64 = markers(profile, well_known::WAIT_SCHEMA)
        .filter(|marker| is_for_cpu(profile, marker))
        .filter_map(interval)
        .map(|wait| held_up.intervals.iter().map(|other| overlap(&wait, other)).sum::<u64>())
        .sum();
    let total = held_up.total_ms / 1e3;
    let line = format!(
        "The control group {group} used up its CPU quota: its CPUs were held up for {total:.2} s in all"
    );
    if waited == 0 {
        return line;
    }
    format!("{line}; threads waited some {:.2} s for a CPU meanwhile (an estimate)", waited as f64 / 1e9)
}

fn markers<'a>(profile: &'a Profile, kind: &str) -> impl Iterator<Item = &'a Marker> {
    let is_requested = move |marker: &&Marker| {
        marker.schema.is_some_and(|schema| profile.marker_schema(schema).name == kind)
    };
    profile.threads().iter().flat_map(|thread| &thread.markers).filter(is_requested)
}

/// Whether a wait was for a CPU.
fn is_for_cpu(profile: &Profile, marker: &Marker) -> bool {
    let innermost = marker.stack.and_then(|stack| profile.stack_frames(stack).next());
    innermost.is_some_and(|frame| profile.func_name(frame.func) == well_known::RUNNABLE)
}

fn interval(marker: &Marker) -> Option<Range<u64>> {
    match marker.timing {
        MarkerTiming::Interval(start, end) => Some(start..end),
        _ => None,
    }
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> u64 {
    a.end.min(b.end).saturating_sub(a.start.max(b.start))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second, in ns.
    const S: u64 = 1_000_000_000;
    use nyquist_profile::{
        CategoryId, MarkerField, MarkerFormat, MarkerSchema, Meta, Process, ProfileBuilder, Thread,
    };

    #[test]
    fn groups_say_their_time_and_what_threads_waited() {
        let mut builder = ProfileBuilder::new(Meta::default());
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", "main"));
        let mut schema = |name: &str, keys: &[&str]| {
            let field = |key: &&str| MarkerField {
                key: (*key).to_owned(),
                label: None,
                format: MarkerFormat::String,
            };
            let fields = keys.iter().map(field).collect();
            builder.add_marker_schema(MarkerSchema {
                name: name.to_owned(),
                fields,
                ..MarkerSchema::default()
            })
        };
        let quota = schema(well_known::QUOTA_SCHEMA, &["group", "throttled"]);
        let wait = schema(well_known::WAIT_SCHEMA, &["reason"]);
        let (name, group) = (builder.intern_string("m"), builder.intern_string("/a (0.50 CPUs)"));
        let runnable = builder.intern_label(None, well_known::RUNNABLE, None);
        let lock = builder.intern_label(None, "[waiting: lock]", None);
        let held_up = vec![MarkerValue::String(group), MarkerValue::Number(1500.0)];
        for (schema, times, values, stack) in [
            (quota, (S, 2 * S), held_up.clone(), None),
            (quota, (4 * S, 5 * S), held_up, None),
            (wait, (0, 2 * S), vec![], Some(runnable)),
            (wait, (3 * S, 9 * S / 2), vec![], Some(runnable)),
            (wait, (S, 2 * S), vec![], Some(lock)),
        ] {
            let timing = MarkerTiming::Interval(times.0, times.1);
            let category = CategoryId::from_index(0);
            let marker = Marker { name, timing, category, schema: Some(schema), values, stack };
            builder.add_marker(thread, marker);
        }
        let line = "The control group /a (0.50 CPUs) used up its CPU quota: its CPUs were held up for 3.00 s in all; threads waited some 1.50 s for a CPU meanwhile (an estimate)";
        assert_eq!(lines(&builder.finish()), [line]);
    }
}
