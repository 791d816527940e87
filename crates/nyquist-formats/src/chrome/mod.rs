//! Chrome's trace event format, which Perfetto and `chrome://tracing` read.
//!
//! It is described in <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>.

mod async_events;
mod event;
mod lanes;
mod markers;
mod profiles;
mod read;
mod samples;
mod slices;
mod unparsed_value;
mod write;

use std::borrow::Cow;

pub(crate) use markers::{TraceMarker, TraceMarkers};
pub use read::read;
pub(crate) use slices::{Args, Slice, SliceKind, add_samples};
pub use write::write;

/// The category of functions in which a thread waits.
const OFF_CPU: &str = "off-cpu";

/// Names of events that readers interpret, whatever their phase.
const RESERVED: [&str; 4] = ["Profile", "ProfileChunk", "CpuProfile", "ScriptCatchup"];

/// The name of a function or marker in an event. If readers would treat it as an event of V8, a space is
/// appended.
fn written_name(name: &str) -> Cow<'_, str> {
    if RESERVED.contains(&name) { format!("{name} ").into() } else { name.into() }
}

#[cfg(test)]
mod tests {
    use super::{read, write};
    use crate::test_profile::{profile, stacks_of, waits_of};
    use nyquist_profile::{
        CategoryId, Marker, MarkerTiming, Meta, Process, Profile, ProfileBuilder, Sample, Thread,
    };
    use serde_json::Value;
    use std::collections::BTreeMap;

    fn written_of(profile: &Profile) -> Vec<u8> {
        let mut out = Vec::new();
        write(profile, &crate::as_named, &mut out).unwrap();
        out
    }

    fn written() -> Vec<u8> {
        written_of(&profile())
    }

    /// A thread that ran on two CPUs at a time, with weights, uneven times and overlapping markers, and
    /// another thread with the same id.
    fn busy() -> Profile {
        let mut builder = ProfileBuilder::new(Meta { interval: 1000, ..Meta::default() });
        let stacks = ["a", "Profile", "ProfileChunk"].map(|name| builder.intern_label(None, name, None));
        let nested = stacks.map(|stack| builder.intern_label(Some(stack), "a", None));
        let process = builder.add_process(Process { pid: "7".into(), ..Process::default() });
        let first = builder.add_thread(Thread::new(process, "7", "busy"));
        let second = builder.add_thread(Thread::new(process, "7", "busy"));
        for index in 0..100_usize {
            let stack = if index % 7 == 0 { nested[index % 3] } else { stacks[index % 3] };
            let weight = if index % 10 == 9 { 3 } else { 1 };
            let time = index as u64 * 480 + index as u64 % 5 * 130;
            let sample = Sample { weight, off_cpu: index % 20 == 5, ..Sample::new(time, Some(stack), 0) };
            builder.add_sample(if index % 3 == 0 { second } else { first }, sample);
        }
        for (start, end) in [(500, 2500), (1000, 9000), (2000, 3000)] {
            let (name, timing) = (builder.intern_string("span"), MarkerTiming::Interval(start, end));
            let category = CategoryId::from_index(0);
            builder.add_marker(
                first,
                Marker { name, timing, category, schema: None, values: vec![], stack: None },
            );
        }
        builder.finish()
    }

    /// The time in each function, in ns, on the CPU and waiting.
    fn times_of(profile: &Profile) -> BTreeMap<(String, bool), u64> {
        let mut times = BTreeMap::new();
        for sample in profile.threads().iter().flat_map(|thread| &thread.samples) {
            for frame in sample.stack.into_iter().flat_map(|stack| profile.stack_frames(stack)) {
                let key = (profile.func_name(frame.func).to_owned(), sample.off_cpu);
                *times.entry(key).or_default() += sample.weight * profile.meta().interval;
            }
        }
        times
    }

    #[test]
    fn functions_keep_their_weights() {
        let read = read(&written_of(&busy())).unwrap();
        assert_eq!(read.notes, []);
        assert_eq!(times_of(&read.profile), times_of(&busy()));
    }

    #[test]
    fn what_is_counted_is_kept() {
        assert!(read(&written()).unwrap().profile.meta().measure.is_cpu_time());
        let counted = crate::test_profile::counted();
        let read = read(&written_of(&counted)).unwrap().profile;
        assert_eq!((&read.meta().measure, stacks_of(&read)), (&counted.meta().measure, stacks_of(&counted)));
    }

    #[test]
    fn interval_markers_are_read_as_markers() {
        let read = read(&written_of(&busy())).unwrap().profile;
        let markers: Vec<_> = read.threads().iter().flat_map(|thread| &thread.markers).collect();
        let timings: Vec<_> = markers.iter().map(|marker| marker.timing).collect();
        let expected = [(500, 2500), (1000, 9000), (2000, 3000)];
        assert_eq!(timings, expected.map(|(start, end)| MarkerTiming::Interval(start, end)));
        assert!(markers.iter().all(|marker| read.string(marker.name) == "span"));
    }

    #[test]
    fn every_end_has_the_name_of_its_begin() {
        let document: Value = serde_json::from_slice(&written_of(&busy())).unwrap();
        let mut open: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for event in document["traceEvents"].as_array().unwrap() {
            assert!(event["name"].is_string() && !["X", "s"].iter().any(|&phase| event["ph"] == phase));
            let open = open.entry(event["tid"].to_string()).or_default();
            match event["ph"].as_str() {
                Some("B") => open.push(event.clone()),
                Some("E") => {
                    let begin = open.pop().unwrap();
                    assert_eq!((&begin["name"], &begin["cat"]), (&event["name"], &event["cat"]));
                    assert!(begin["ts"].as_f64() < event["ts"].as_f64());
                }
                _ => {}
            }
        }
        assert!(open.values().all(Vec::is_empty));
    }

    #[test]
    fn what_is_written_is_read_again() {
        let imported = read(&written()).unwrap();
        assert_eq!(imported.notes, []);
        assert_eq!(stacks_of(&imported.profile), stacks_of(&profile()));
        assert_eq!(waits_of(&imported.profile), waits_of(&profile()));
        let names: Vec<_> =
            imported.profile.threads().iter().map(|thread| (&*thread.tid, &*thread.name)).collect();
        assert_eq!(names, [("77", "app"), ("79", "pool 1")]);
        assert_eq!(imported.profile.processes()[0].name, "app");
    }

    #[test]
    fn begins_have_ends_and_times_go_forwards() {
        let document: Value = serde_json::from_slice(&written()).unwrap();
        let events = document["traceEvents"].as_array().unwrap();
        for tid in [77, 79] {
            let (mut open, mut time) = (Vec::new(), 0.0);
            for event in events.iter().filter(|event| event["tid"] == tid && event["ph"] != "M") {
                let at = event["ts"].as_f64().unwrap();
                assert!(at >= time, "{event}");
                time = at;
                match event["ph"].as_str() {
                    Some("B") => open.push(event["name"].clone()),
                    Some("E") => assert_eq!(open.pop().as_ref(), Some(&event["name"]), "{event}"),
                    _ => panic!("{event}"),
                }
            }
            assert!(open.is_empty());
        }
    }
}
