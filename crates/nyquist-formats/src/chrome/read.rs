//! Reads traces: functions that begin and end, and the CPU profiles of V8 in them.

use std::rc::Rc;

use nyquist_profile::{MarkerTiming, Measure, ThreadIndex, Unit};
use rustc_hash::{FxHashMap, FxHashSet};

use super::async_events::AsyncEvents;
use super::event::{Event, OtherData, read_events};
use super::markers::{TraceMarker, TraceMarkers};
use super::profiles::CpuProfiles;
use super::slices::{Args, Slice, SliceKind, add_samples};
use super::unparsed_value::ThreadId;
use crate::error::{ImportedProfile, Note, ReadError};
use crate::import::{Importer, ThreadName};

const FORMAT: &str = "a Chrome trace";

/// Reads a trace. If it has CPU profiles of V8 (`Profile` and `ProfileChunk`, `CpuProfile`), these are the
/// samples, and events are markers. Otherwise events with a duration (`B` and `E`, `X`) are the samples. Each
/// interval of time counts for the innermost event, and is wall time unless the file states another measure,
/// as our own files do. Instants and asynchronous events are markers. Counters are left out. Samples that
/// refer to a table of frames (`samples`, `stackFrames`, of Hermes) are samples of wall time.
///
/// # Errors
/// If there is no event in it.
pub fn read(bytes: &[u8]) -> Result<ImportedProfile, ReadError> {
    let mut reader = ChromeReader::new();
    let (OtherData { samples, measure }, ended) = read_events(bytes, &mut |event| reader.read_event(&event));
    if !reader.has_events && samples.is_empty() {
        return Err(match ended {
            Err(error) => ReadError::Json { format: FORMAT, error },
            Ok(()) => ReadError::Malformed { format: FORMAT, problem: "it has no events".into() },
        });
    }
    let has_profiles = !samples.is_empty() || reader.has_cpu_profiles;
    let ChromeReader { mut importer, mut markers, mut left_out, mut threads, others, .. } = reader;
    if !has_profiles {
        let wall_time = || Measure { name: "wall time".into(), unit: Unit::Time };
        importer.meta_mut().measure = measure.unwrap_or_else(wall_time);
    }
    for (thread, slices) in reader.slices {
        left_out += if has_profiles {
            markers.add_durations(&mut importer, thread, slices)
        } else {
            add_samples(&mut importer, thread, slices)
        };
    }
    for marker in reader.asynchronous.unfinished() {
        markers.add(&mut importer, &marker);
    }
    left_out += reader.profiles.add_to(&mut importer, |importer, id| threads.add(importer, id));
    let unknown = samples.add_to(&mut importer, |importer, id| threads.add(importer, id));
    threads.set_names(&mut importer);
    importer.note_left_out(unknown, "samples of frames that are not in the table");
    importer.note_left_out(left_out, "events without a begin or an end, or with an unknown node");
    importer.note_left_out(others, "counters and other events without a stack");
    if let Err(error) = ended {
        // The format allows the last bracket of an array to be missing.
        if !error.is_eof() || bytes.trim_ascii_start().first() != Some(&b'[') {
            let place = format!("line {}, column {}", error.line(), error.column());
            importer.note(Note::Cut { place });
        }
    }
    Ok(importer.finish(None))
}

/// Handles one event after another. The kept data refers to the document.
struct ChromeReader<'a> {
    importer: Importer,
    threads: Threads<'a>,
    texts: FxHashSet<Rc<str>>,
    /// The durations of each thread, in the order of their first events.
    slices: Vec<(ThreadIndex, Vec<Slice<'a>>)>,
    slices_of: FxHashMap<ThreadIndex, usize>,
    profiles: CpuProfiles,
    markers: TraceMarkers,
    asynchronous: AsyncEvents<'a>,
    has_events: bool,
    has_cpu_profiles: bool,
    left_out: u64,
    others: u64,
}

impl<'a> ChromeReader<'a> {
    fn new() -> Self {
        Self {
            importer: Importer::new("Trace", "Chrome trace"),
            threads: Threads::default(),
            texts: FxHashSet::default(),
            slices: Vec::new(),
            slices_of: FxHashMap::default(),
            profiles: CpuProfiles::default(),
            markers: TraceMarkers::default(),
            asynchronous: AsyncEvents::default(),
            has_events: false,
            has_cpu_profiles: false,
            left_out: 0,
            others: 0,
        }
    }

    fn read_event(&mut self, event: &Event<'a>) {
        self.has_events = true;
        let time = event.ts.microseconds();
        match &*event.ph {
            _ if CpuProfiles::takes(event) => {
                self.has_cpu_profiles |= CpuProfiles::has_samples(event);
                self.left_out += self.profiles.add(event.thread(), event);
            }
            "M" => self.threads.read_name(event),
            "B" => self.add_slice(event, time, SliceKind::Begin),
            "E" => self.add_slice(event, time, SliceKind::End),
            "X" => {
                let end = time.saturating_add(event.duration());
                self.add_slice(event, time, SliceKind::Complete(end));
            }
            "I" | "i" | "R" => {
                let (name, category) = (self.text(&event.name()), self.text(&event.cat.text()));
                let (timing, args) = (MarkerTiming::Instant(time), Args::Document(event.args));
                let thread = self.threads.of(&mut self.importer, event);
                self.markers.add(&mut self.importer, &TraceMarker { thread, name, category, timing, args });
            }
            phase if AsyncEvents::takes(phase) => {
                let thread = self.threads.of(&mut self.importer, event);
                if let Some(marker) = self.asynchronous.add(thread, event) {
                    self.markers.add(&mut self.importer, &marker);
                }
            }
            _ => self.others += 1,
        }
    }

    fn add_slice(&mut self, event: &Event<'a>, time: u64, kind: SliceKind) {
        let thread = self.threads.of(&mut self.importer, event);
        let (name, category) = (self.text(&event.name()), self.text(&event.cat.text()));
        let index = *self.slices_of.entry(thread).or_insert_with(|| {
            self.slices.push((thread, Vec::new()));
            self.slices.len() - 1
        });
        if let Some((_, slices)) = self.slices.get_mut(index) {
            slices.push(Slice { time, kind, name, category, args: Args::Document(event.args) });
        }
    }

    /// A name or a category. They are shared, because most are repeated.
    fn text(&mut self, text: &str) -> Rc<str> {
        if let Some(known) = self.texts.get(text) {
            return Rc::clone(known);
        }
        let new: Rc<str> = text.into();
        self.texts.insert(Rc::clone(&new));
        new
    }
}

/// The threads by their ids in the document, and their names, which may come after the threads' events.
#[derive(Default)]
struct Threads<'a> {
    known: FxHashMap<(&'a str, &'a str), ThreadIndex>,
    ids: FxHashMap<ThreadIndex, ThreadId>,
    process_names: FxHashMap<String, String>,
    thread_names: FxHashMap<ThreadId, String>,
}

impl<'a> Threads<'a> {
    /// The thread of an event.
    fn of(&mut self, importer: &mut Importer, event: &Event<'a>) -> ThreadIndex {
        let written = (event.pid.json(), event.tid.json());
        if let Some(&thread) = self.known.get(&written) {
            return thread;
        }
        let thread = self.add(importer, &event.thread());
        self.known.insert(written, thread);
        thread
    }

    fn add(&mut self, importer: &mut Importer, id: &ThreadId) -> ThreadIndex {
        let thread = importer.thread(ThreadName { pid: &id.0, process: "", tid: &id.1, thread: "" });
        self.ids.entry(thread).or_insert_with(|| id.clone());
        thread
    }

    fn read_name(&mut self, event: &Event<'_>) {
        let name = event.args.value()["name"].as_str().unwrap_or_default().to_owned();
        let (pid, tid) = event.thread();
        match &*event.name.text() {
            "process_name" => drop(self.process_names.insert(pid, name)),
            "thread_name" => drop(self.thread_names.insert((pid, tid), name)),
            _ => {}
        }
    }

    fn set_names(self, importer: &mut Importer) {
        for (thread, id) in self.ids {
            let process_name = self.process_names.get(&id.0).map_or("", String::as_str);
            let name = self.thread_names.get(&id).map_or(process_name, String::as_str);
            let thread = importer.builder().thread_mut(thread);
            name.clone_into(&mut thread.name);
            let process = thread.process;
            process_name.clone_into(&mut importer.builder().process_mut(process).name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_profile::{stacks_of, waits_of};

    fn imported(text: &str) -> ImportedProfile {
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
        assert_eq!(read.profile.meta().measure, Measure { name: "wall time".into(), unit: Unit::Time });
        let worker = read.profile.threads().iter().find(|thread| thread.tid == "2").unwrap();
        assert_eq!(worker.name, "worker");
        assert_eq!(worker.markers[0].timing, MarkerTiming::Instant(7000));
        assert_eq!(read.notes.len(), 1);
    }

    /// speedscope gives `work` the second, and the three empty calls nothing.
    #[test]
    fn events_of_the_same_time_keep_their_order() {
        let read = imported(
            r#"[{"ph":"X","pid":1,"tid":1,"name":"init","ts":0,"dur":0},
            {"ph":"B","pid":1,"tid":1,"name":"main","ts":0},
            {"ph":"B","pid":1,"tid":1,"name":"tiny","ts":10},{"ph":"E","pid":1,"tid":1,"name":"tiny","ts":10},
            {"ph":"B","pid":1,"tid":1,"name":"tiny","ts":30},{"ph":"E","pid":1,"tid":1,"name":"tiny","ts":30},
            {"ph":"B","pid":1,"tid":1,"name":"work","ts":30},{"ph":"E","pid":1,"tid":1,"name":"work","ts":1030},
            {"ph":"E","pid":1,"tid":1,"name":"main","ts":1030}]"#,
        );
        assert_eq!(stacks_of(&read.profile), ["main 3", "main;work 100"]);
        assert_eq!((read.profile.meta().interval, read.notes), (10_000, vec![]));
    }

    #[test]
    fn complete_events_may_have_only_cpu_time() {
        let read = imported(
            r#"[{"ph":"X","pid":1,"tid":1,"name":"a","ts":0,"tdur":3},{"ph":"X","pid":1,"tid":1,"ts":10,"dur":2}]"#,
        );
        assert_eq!(stacks_of(&read.profile), ["(unknown) 2", "a 3"]);
    }

    #[test]
    fn an_end_belongs_to_the_begin_of_its_name() {
        // The begin of the first end is before the trace. The second end would end `inner`, which is a
        // complete duration.
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
        let what = "events without a begin or an end, or with an unknown node";
        assert_eq!(read.notes, [Note::LeftOut { count: 3, what: what.into() }]);
    }

    #[test]
    fn cpu_profiles_are_samples_and_events_markers() {
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
    fn parts_of_a_profile_may_come_before_its_head() {
        let head = r#"{"ph":"P","name":"Profile","id":"0x1","pid":7,"tid":8,"ts":50,"args":{"data":{"startTime":50}}}"#;
        let chunk = |ts: u32, rest: &str| {
            format!(
                r#"{{"ph":"P","name":"ProfileChunk","id":"0x1","pid":7,"tid":9,"ts":{ts},"args":{{"data":{{{rest}}}}}}}"#
            )
        };
        let first = chunk(
            80,
            r#""cpuProfile":{"nodes":[{"id":2,"callFrame":{"functionName":"run"}},{"id":3,"callFrame":{"functionName":"stop"}}],"samples":[2,2]},"timeDeltas":[5,10]"#,
        );
        let second = chunk(90, r#""cpuProfile":{"samples":[3]},"timeDeltas":[20],"endTime":95"#);
        for events in [[head, &first, &second], [&second, &first, head], [&first, head, &second]] {
            let read = imported(&format!("[{}]", events.join(",")));
            // The samples last from 55 and from 85 on, until 95.
            assert_eq!(stacks_of(&read.profile), ["run 3", "stop 1"]);
            assert_eq!((read.profile.meta().interval, &read.notes[..]), (10_000, &[][..]));
            let thread = read.profile.threads().iter().find(|thread| !thread.samples.is_empty()).unwrap();
            assert_eq!(thread.tid, "8");
        }
    }

    #[test]
    fn whole_profiles_are_read_by_process_and_thread() {
        let whole = |pid: u32, tid: u32, name: &str| {
            format!(
                r#"{{"ph":"I","name":"CpuProfile","pid":{pid},"tid":{tid},"ts":900,"args":{{"data":{{"cpuProfile":{{
                "nodes":[{{"id":1,"callFrame":{{"functionName":"(root)"}},"children":[2]}},{{"id":2,"callFrame":{{"functionName":"{name}"}}}}],
                "startTime":100,"endTime":400,"samples":[2,2],"timeDeltas":[100,100]}}}}}}}}"#
            )
        };
        let read = imported(&format!("[{},{},{}]", whole(1, 1, "a"), whole(1, 2, "b"), whole(2, 1, "c")));
        assert_eq!(stacks_of(&read.profile), ["a 2", "b 2", "c 2"]);
        assert_eq!((read.profile.threads().len(), read.profile.processes().len()), (3, 2));
        assert_eq!(read.notes, []);
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
