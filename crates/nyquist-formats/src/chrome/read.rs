//! Reading traces: functions that begin and end, and the CPU profiles of V8 within them.

use nyquist_profile::{
    CategoryId, Marker, MarkerDisplay, MarkerField, MarkerFormat, MarkerSchema, MarkerSchemaId, MarkerTiming,
    MarkerValue, ThreadIndex,
};
use rustc_hash::FxHashMap;
use serde_json::Value;

use super::RESERVED;
use super::asynchronous::{Asynchronous, TraceMarker};
use super::event::{Event, read_events};
use super::slices::{Slice, SliceKind, add_samples, durations};
use crate::error::{Imported, Note, ReadError};
use crate::import::{Importer, ThreadName};
use crate::json::{id_text, nanoseconds};
use crate::v8::{Node, Samples, Tree};

const FORMAT: &str = "a Chrome trace";

/// Reads a trace. Where V8's CPU profiles are in it (`Profile` and `ProfileChunk`), these are the samples, and events are
/// markers. Else events with a duration (`B` and `E`, `X`) are the samples: each stretch of time counts for the innermost
/// one. Instants and asynchronous events are markers; counters are left out.
///
/// # Errors
/// If there is no event in it.
pub fn read(bytes: &[u8]) -> Result<Imported, ReadError> {
    let mut events = Vec::new();
    let mut reader = Reader::default();
    let ended = read_events(bytes, &mut |event| events.push(event));
    if events.is_empty() {
        return Err(match ended {
            Err(error) => ReadError::Json { format: FORMAT, error },
            Ok(()) => ReadError::Malformed { format: FORMAT, problem: "it has no events".into() },
        });
    }
    let mut importer = Importer::new("Trace", "Chrome trace");
    reader.read_names(&events);
    let has_profiles = events.iter().any(|event| event.name == "ProfileChunk" && is_sample(&event.ph));
    let mut by_thread: Vec<(ThreadIndex, Vec<Slice>)> = Vec::new();
    for event in events {
        reader.read_event(&mut importer, event, &mut by_thread);
    }
    for (thread, slices) in by_thread {
        reader.left_out += if has_profiles {
            reader.add_markers(&mut importer, thread, slices)
        } else {
            add_samples(&mut importer, thread, slices)
        };
    }
    for marker in std::mem::take(&mut reader.asynchronous).unfinished() {
        reader.add_marker(&mut importer, &marker);
    }
    reader.add_profiles(&mut importer);
    importer.note_left_out(reader.left_out, "events that have no begin, no end or an unknown node");
    importer.note_left_out(reader.others, "counters and other events without a stack");
    if let Err(error) = ended {
        // The format allows the last bracket of an array to be missing.
        if !error.is_eof() || bytes.trim_ascii_start().first() != Some(&b'[') {
            let place = format!("line {}, column {}", error.line(), error.column());
            importer.note(Note::Cut { place });
        }
    }
    Ok(importer.finish(None))
}

type ThreadId = (String, String);

/// A CPU profile that comes in parts: its nodes and samples.
struct Chunks {
    tree: Tree,
    nodes: Vec<Node>,
    samples: Samples,
}

#[derive(Default)]
struct Reader {
    process_names: FxHashMap<String, String>,
    thread_names: FxHashMap<ThreadId, String>,
    slices_of: FxHashMap<ThreadIndex, usize>,
    /// By process and id.
    profiles: FxHashMap<(String, String), Chunks>,
    schema: Option<MarkerSchemaId>,
    asynchronous: Asynchronous,
    left_out: u64,
    others: u64,
}

impl Reader {
    /// Names may come after the events that they are for.
    fn read_names(&mut self, events: &[Event]) {
        for event in events.iter().filter(|event| event.ph == "M") {
            let name = event.args["name"].as_str().unwrap_or_default().to_owned();
            let (pid, tid) = (id_text(&event.pid), id_text(&event.tid));
            match event.name.as_str() {
                Some("process_name") => drop(self.process_names.insert(pid, name)),
                Some("thread_name") => drop(self.thread_names.insert((pid, tid), name)),
                _ => {}
            }
        }
    }

    fn thread(&self, importer: &mut Importer, id: &ThreadId) -> ThreadIndex {
        let process = self.process_names.get(&id.0).map_or("", String::as_str);
        let thread = self.thread_names.get(id).map_or(process, String::as_str);
        importer.thread(ThreadName { pid: &id.0, process, tid: &id.1, thread })
    }

    fn read_event(
        &mut self,
        importer: &mut Importer,
        event: Event,
        by_thread: &mut Vec<(ThreadIndex, Vec<Slice>)>,
    ) {
        let id = (id_text(&event.pid), id_text(&event.tid));
        let time = microseconds(&event.ts);
        let (kind, order) = match event.ph.as_str() {
            phase if is_sample(phase) && matches!(event.name.as_str(), Some("Profile" | "ProfileChunk")) => {
                return self.read_chunk(importer, &id, &event);
            }
            "B" => (SliceKind::Begin, 1),
            "E" => (SliceKind::End, 0),
            "X" => {
                let end = time.saturating_add(microseconds(&event.dur));
                (SliceKind::Complete(end), u64::MAX - (end - time))
            }
            "I" | "i" | "R" => {
                let thread = self.thread(importer, &id);
                let (name, category) = (name_of(&event.name), text(&event.cat));
                let timing = MarkerTiming::Instant(time);
                return self
                    .add_marker(importer, &TraceMarker { thread, name, category, timing, args: event.args });
            }
            phase if Asynchronous::takes(phase) => {
                let thread = self.thread(importer, &id);
                if let Some(marker) = self.asynchronous.add(thread, event) {
                    self.add_marker(importer, &marker);
                }
                return;
            }
            "M" => return,
            _ => {
                self.others += 1;
                return;
            }
        };
        let thread = self.thread(importer, &id);
        let index = *self.slices_of.entry(thread).or_insert_with(|| {
            by_thread.push((thread, Vec::new()));
            by_thread.len() - 1
        });
        let (name, category) = (name_of(&event.name), text(&event.cat));
        let slice = Slice { time, order, kind, name, category, args: event.args };
        if let Some((_, slices)) = by_thread.get_mut(index) {
            slices.push(slice);
        }
    }

    /// `Profile` names the thread and the start of a profile; each `ProfileChunk` adds nodes and samples.
    fn read_chunk(&mut self, importer: &mut Importer, id: &ThreadId, event: &Event) {
        let thread = self.thread(importer, id);
        let data = &event.args["data"];
        let chunks = self.profiles.entry((id.0.clone(), id_text(&event.id))).or_insert_with(|| Chunks {
            tree: Tree::default(),
            nodes: Vec::new(),
            samples: Samples::new(thread, microseconds(&data["startTime"])),
        });
        let profile = &data["cpuProfile"];
        for node in profile["nodes"].as_array().into_iter().flatten() {
            match Node::deserialize_from(node) {
                Some(node) => chunks.nodes.push(node),
                None => self.left_out += 1,
            }
        }
        let numbers = |value: &Value| -> Vec<f64> {
            value.as_array().into_iter().flatten().map(|number| number.as_f64().unwrap_or(0.0)).collect()
        };
        let nodes: Vec<u64> =
            profile["samples"].as_array().into_iter().flatten().map(|id| id.as_u64().unwrap_or(0)).collect();
        chunks.samples.add(&nodes, &numbers(&data["timeDeltas"]));
        if let end @ 1.. = microseconds(&data["endTime"]) {
            chunks.samples.end_at(end);
        }
    }

    fn add_profiles(&mut self, importer: &mut Importer) {
        let mut profiles: Vec<_> = std::mem::take(&mut self.profiles).into_iter().collect();
        profiles.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (_, mut chunks) in profiles {
            chunks.tree.add(importer, &chunks.nodes);
            self.left_out += chunks.samples.add_to(importer, &chunks.tree);
        }
    }

    /// Adds durations as markers; gives the number of begins and ends without the other.
    fn add_markers(&mut self, importer: &mut Importer, thread: ThreadIndex, slices: Vec<Slice>) -> u64 {
        let (durations, left_out) = durations(slices);
        for (Slice { time, name, category, args, .. }, end) in durations {
            let timing = MarkerTiming::Interval(time, end.max(time));
            self.add_marker(importer, &TraceMarker { thread, name, category, timing, args });
        }
        left_out
    }

    fn add_marker(&mut self, importer: &mut Importer, marker: &TraceMarker) {
        let builder = importer.builder();
        let schema = *self.schema.get_or_insert_with(|| builder.add_marker_schema(trace_events()));
        let name = builder.intern_string(&marker.name);
        let category = MarkerValue::String(builder.intern_string(&marker.category));
        let args = &marker.args;
        let is_empty = args.is_null() || args.as_object().is_some_and(serde_json::Map::is_empty);
        let args = if is_empty {
            MarkerValue::Missing
        } else {
            MarkerValue::String(builder.intern_string(&args.to_string()))
        };
        builder.add_marker(
            marker.thread,
            Marker {
                name,
                timing: marker.timing,
                category: CategoryId::from_index(0),
                schema: Some(schema),
                values: vec![category, args],
                stack: None,
            },
        );
    }
}

/// Whether V8's CPU profiles are in events of this phase.
fn is_sample(phase: &str) -> bool {
    matches!(phase, "P" | "I" | "i" | "R")
}

fn trace_events() -> MarkerSchema {
    let field = |key: &str, label: &str| MarkerField {
        key: key.into(),
        label: Some(label.into()),
        format: MarkerFormat::String,
    };
    MarkerSchema {
        name: "TraceEvent".into(),
        display: vec![MarkerDisplay::Chart, MarkerDisplay::Table],
        fields: vec![field("category", "Category"), field("args", "Arguments")],
        table_label: Some("{marker.data.args}".into()),
        ..MarkerSchema::default()
    }
}

/// A time in µs as ns, a number or one in a string.
pub(super) fn microseconds(value: &Value) -> u64 {
    let number = value.as_f64().or_else(|| value.as_str().and_then(|text| text.parse().ok()));
    nanoseconds(number.unwrap_or(0.0), 1000.0)
}

/// The name of an event, as it was before it was [written](super::written_name).
pub(super) fn name_of(value: &Value) -> String {
    let name = value.as_str().unwrap_or_default();
    name.strip_suffix(' ').filter(|name| RESERVED.contains(name)).unwrap_or(name).to_owned()
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_profile::{stacks_of, waits_of};

    fn imported(text: &str) -> Imported {
        read(text.as_bytes()).unwrap()
    }

    #[test]
    fn durations_count_for_the_innermost() {
        let read = imported(
            r#"{"traceEvents":[
            {"ph":"X","name":"outer","pid":1,"tid":2,"ts":10,"dur":10},
            {"ph":"X","name":"inner","pid":1,"tid":2,"ts":10,"dur":4},
            {"ph":"B","name":"other","pid":1,"tid":"x","ts":5},
            {"ph":"E","pid":1,"tid":"x","ts":7},
            {"ph":"i","name":"now","cat":"c","pid":1,"tid":2,"ts":12,"args":{"a":1}},
            {"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"worker"}},
            {"ph":"C","name":"counter","pid":1,"tid":2,"ts":12}],"other":[1,{"a":2}]}"#,
        );
        assert_eq!(stacks_of(&read.profile), ["other 1", "outer 3", "outer;inner 2"]);
        assert_eq!(read.profile.meta().interval, 2000);
        let worker = read.profile.threads().iter().find(|thread| thread.tid == "2").unwrap();
        assert_eq!(worker.name, "worker");
        assert_eq!(worker.markers[0].timing, MarkerTiming::Instant(7000));
        assert_eq!(read.notes.len(), 1);
    }

    #[test]
    fn an_end_belongs_to_the_begin_of_its_name() {
        // The first end is of a begin before the trace; the second one would end `inner`, which is a whole duration.
        let read = imported(
            r#"[{"ph":"B","name":"outer","pid":1,"tid":2,"ts":0},
            {"ph":"E","name":"before","pid":1,"tid":2,"ts":10},
            {"ph":"X","name":"inner","pid":1,"tid":2,"ts":20,"dur":30},
            {"ph":"E","name":"stray","pid":1,"tid":2,"ts":30},
            {"ph":"B","name":"open","pid":1,"tid":2,"ts":60},
            {"ph":"E","name":"outer","pid":1,"tid":2,"ts":80},
            {"ph":"E","pid":1,"tid":2,"ts":90}]"#,
        );
        assert_eq!(read.profile.meta().interval, 10_000);
        assert_eq!(stacks_of(&read.profile), ["outer 3", "outer;inner 3", "outer;open 2"]);
        let what = "events that have no begin, no end or an unknown node";
        assert_eq!(read.notes, [Note::LeftOut { count: 3, what: what.into() }]);
    }

    #[test]
    fn cpu_profiles_are_the_samples_and_events_are_markers() {
        let read = imported(
            r#"[{"ph":"P","name":"Profile","id":"0x1","pid":7,"tid":8,"ts":50,"args":{"data":{"startTime":50}}},
            {"ph":"B","name":"task","pid":7,"tid":8,"ts":60},
            {"ph":"P","name":"ProfileChunk","id":"0x1","pid":7,"tid":9,"ts":80,"args":{"data":{"cpuProfile":{
              "nodes":[{"id":1,"callFrame":{"functionName":"(root)","scriptId":0}},{"id":2,"parent":1,"callFrame":{"functionName":"run","scriptId":3,"url":"a.js"}},
              {"id":3,"parent":1,"callFrame":{"functionName":"(idle)","scriptId":0}}],"samples":[2,2]},"timeDeltas":[5,10]}}},
            {"ph":"P","name":"ProfileChunk","id":"0x1","pid":7,"tid":9,"ts":90,"args":{"data":{"cpuProfile":{
              "samples":[3]},"timeDeltas":[10]}}},
            {"ph":"E","pid":7,"tid":8,"ts":70}"#,
        );
        assert_eq!(stacks_of(&read.profile), ["run 2"]);
        assert_eq!(waits_of(&read.profile), ["(idle) 1"]);
        assert_eq!(read.profile.meta().interval, 10_000);
        assert_eq!(read.notes, [], "an array may end without its bracket");
        let thread = read.profile.threads().iter().find(|thread| !thread.samples.is_empty()).unwrap();
        assert_eq!((thread.tid.as_str(), thread.markers.len()), ("8", 1));
    }

    #[test]
    fn asynchronous_events_are_markers() {
        let read = imported(
            r#"[{"ph":"b","name":"get","cat":"net","id":1,"pid":1,"tid":2,"ts":1,"args":{"a":1}},
            {"ph":"S","name":"get","cat":"net","id2":{"local":"0x1"},"pid":1,"tid":2,"ts":2},
            {"ph":"e","name":"get","cat":"net","id":1,"pid":1,"tid":9,"ts":5},
            {"ph":"n","name":"got","cat":"net","id":1,"pid":1,"tid":2,"ts":4},
            {"ph":"F","name":"get","cat":"net","id":7,"pid":1,"tid":2,"ts":6}]"#,
        );
        let markers = read.profile.threads().iter().flat_map(|thread| &thread.markers);
        let timings: Vec<_> = markers.map(|marker| marker.timing).collect();
        assert_eq!(
            timings,
            [
                MarkerTiming::Interval(0, 4000),
                MarkerTiming::IntervalStart(1000),
                MarkerTiming::Instant(3000),
                MarkerTiming::IntervalEnd(5000)
            ]
        );
        assert_eq!(read.notes, []);
    }

    #[test]
    fn a_cut_trace_gives_what_comes_before() {
        let read =
            imported(r#"{"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":2,"ts":1,"dur":5},{"ph":"X","na"#);
        assert_eq!(stacks_of(&read.profile), ["a 1"]);
        assert!(matches!(read.notes[..], [Note::Cut { .. }]));
        assert!(super::read(b"{}").is_err());
        assert!(super::read(b"{\"traceEvents\":[").is_err());
    }
}
