//! Writes a profile as trace events: the begins and ends of its functions.

use std::io::{self, Write};

use nyquist_profile::{FrameId, Marker, MarkerTiming, MarkerValue, Profile, Sample, StackId, Thread};
use rustc_hash::FxHashSet;
use serde_json::{Map, Value, json};

use super::lanes::{Lane, PlacedSample, place};
use super::{OFF_CPU, written_name};
use crate::json::write_json;
use crate::{SourcePaths, source_path};

/// Writes the names of processes and threads, and each thread's samples as functions that begin and end (`B`,
/// `E`). Markers are instants (`i`) and asynchronous intervals (`b`, `e`), which need not be nested in
/// functions. A sample lasts for its weight, and the functions that it shares with the previous sample
/// continue. If a thread ran on several CPUs at a time, overlapping samples are on additional threads, called
/// `NAME (2)` and so on. Each end has its function's name and category, because the Firefox Profiler and
/// speedscope match them. Waiting has the category `off-cpu`, and CPU time has `cpu`. The measure is in
/// `otherData` for [`read`](super::read), because durations in traces are otherwise wall time. O(samples ×
/// depth).
///
/// # Errors
/// If `out` cannot be written.
pub fn write(profile: &Profile, paths: SourcePaths<'_>, out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"{\"displayTimeUnit\":\"ms\",\"otherData\":")?;
    let writer = concat!("nyquist ", env!("CARGO_PKG_VERSION"));
    let measure = &profile.meta().measure;
    let measure = json!({ "name": measure.name, "unit": measure.unit.as_str() });
    write_json(out, &json!({ "product": profile.meta().product, "version": writer, "measure": measure }))?;
    out.write_all(b",\"traceEvents\":[")?;
    let mut writer = TraceWriter {
        profile,
        paths,
        out,
        is_first: true,
        used: FxHashSet::default(),
        made_up: MADE_UP,
        intervals: 0,
    };
    for thread in profile.threads() {
        writer.write_thread(thread)?;
    }
    out.write_all(b"]}\n")
}

struct TraceWriter<'a, Out> {
    profile: &'a Profile,
    paths: SourcePaths<'a>,
    out: &'a mut Out,
    is_first: bool,
    /// The ids of threads so far.
    used: FxHashSet<(u64, u64)>,
    /// The next id for a thread without a usable id.
    made_up: u64,
    /// The number of markers with a duration so far.
    intervals: u64,
}

/// The ids of a thread and its process, which must be numbers in this format.
#[derive(Clone, Copy)]
struct Ids {
    pid: u64,
    tid: u64,
}

/// Ids from here on are used by no system. They are for threads whose ids are not numbers, or are reused.
const MADE_UP: u64 = 1 << 32;

/// A frame that has begun.
#[derive(Clone, Copy)]
struct OpenFrame {
    stack: StackId,
    frame: FrameId,
    off_cpu: bool,
}

impl OpenFrame {
    fn category(self) -> &'static str {
        if self.off_cpu { OFF_CPU } else { "cpu" }
    }

    fn is_continued_by(self, next: &Self) -> bool {
        self.frame == next.frame && self.off_cpu == next.off_cpu
    }
}

impl<Out: Write> TraceWriter<'_, Out> {
    fn event(&mut self, event: &Value) -> io::Result<()> {
        self.out.write_all(if self.is_first { b"\n" } else { b",\n" })?;
        self.is_first = false;
        write_json(self.out, event)
    }

    fn write_thread(&mut self, thread: &Thread) -> io::Result<()> {
        let process = self.profile.process(thread.process);
        let pid = process.pid.parse().unwrap_or(MADE_UP + thread.process.index() as u64);
        let ids = self.ids(pid, thread.tid.parse().ok());
        if thread.is_main {
            self.name(ids, "process_name", &process.name)?;
        }
        self.name(ids, "thread_name", &thread.name)?;
        for (index, lane) in place(&thread.samples, self.profile.meta()).iter().enumerate() {
            let mut lane_ids = ids;
            if index > 0 {
                lane_ids = self.ids(pid, None);
                self.name(lane_ids, "thread_name", &format!("{} ({})", thread.name, index + 1))?;
            }
            self.write_lane(lane_ids, lane)?;
        }
        for marker in &thread.markers {
            self.write_marker(ids, marker)?;
        }
        Ok(())
    }

    /// Ids that no earlier thread has.
    fn ids(&mut self, pid: u64, tid: Option<u64>) -> Ids {
        if let Some(tid) = tid
            && self.used.insert((pid, tid))
        {
            return Ids { pid, tid };
        }
        loop {
            let tid = self.made_up;
            self.made_up += 1;
            if self.used.insert((pid, tid)) {
                return Ids { pid, tid };
            }
        }
    }

    fn name(&mut self, Ids { pid, tid }: Ids, kind: &str, name: &str) -> io::Result<()> {
        self.event(&json!({ "ph": "M", "pid": pid, "tid": tid, "name": kind, "args": { "name": name } }))
    }

    fn write_lane(&mut self, ids: Ids, lane: &Lane) -> io::Result<()> {
        let mut open: Vec<OpenFrame> = Vec::new();
        let mut end = 0;
        for placed in lane {
            let frames = self.outermost_first(&placed.sample);
            let shared =
                open.iter().zip(&frames).take_while(|(open, next)| open.is_continued_by(next)).count();
            let retained = if placed.start > end { 0 } else { shared };
            self.end(ids, &mut open, retained, end)?;
            for &next in frames.iter().skip(retained) {
                self.begin(ids, next, placed)?;
                open.push(next);
            }
            end = placed.end;
        }
        self.end(ids, &mut open, 0, end)
    }

    fn outermost_first(&self, sample: &Sample) -> Vec<OpenFrame> {
        let stacks = sample.stack.into_iter().flat_map(|stack| self.profile.ancestors(stack));
        let open =
            |stack| OpenFrame { stack, frame: self.profile.stack(stack).frame, off_cpu: sample.off_cpu };
        let mut frames: Vec<_> = stacks.map(open).collect();
        frames.reverse();
        frames
    }

    fn begin(&mut self, ids: Ids, next: OpenFrame, placed: &PlacedSample) -> io::Result<()> {
        let mut event = self.edge("B", ids, next, placed.start);
        let position = self.position(next.stack);
        if !position.is_empty() {
            // speedscope shows arguments as a part of the name, even empty ones.
            event["args"] = position.into();
        }
        self.event(&event)
    }

    /// The event of a function's begin or end.
    fn edge(&self, phase: &str, Ids { pid, tid }: Ids, open: OpenFrame, time: u64) -> Value {
        json!({
            "ph": phase, "pid": pid, "tid": tid, "ts": microseconds(time), "cat": open.category(),
            "name": written_name(self.profile.func_name(self.profile.frame(open.frame).func)),
        })
    }

    /// The position of a frame: its file, line and lib.
    fn position(&self, stack: StackId) -> Map<String, Value> {
        let frame = self.profile.frame(self.profile.stack(stack).frame);
        let func = self.profile.func(frame.func);
        let mut position = Map::new();
        if let Some(source) = self.profile.frame_source(frame) {
            position.insert("file".into(), source_path(self.profile, source, self.paths).into());
            position.extend(frame.line.map(|line| ("line".to_owned(), line.into())));
        }
        if let Some(lib) = func.lib {
            position.insert("lib".into(), self.profile.lib(lib).path.clone().into());
        }
        position
    }

    fn end(&mut self, ids: Ids, open: &mut Vec<OpenFrame>, retained: usize, time: u64) -> io::Result<()> {
        while open.len() > retained
            && let Some(last) = open.pop()
        {
            self.event(&self.edge("E", ids, last, time))?;
        }
        Ok(())
    }

    /// The end of an interval immediately follows its begin, because the Firefox Profiler matches them by
    /// their names alone.
    fn write_marker(&mut self, ids: Ids, marker: &Marker) -> io::Result<()> {
        let open_id = || format!("name:{}", self.profile.string(marker.name));
        match marker.timing {
            MarkerTiming::Instant(time) => {
                let mut event = self.marker_event("i", ids, marker, time);
                event["s"] = "t".into();
                self.event(&event)
            }
            MarkerTiming::Interval(start, end) => {
                self.intervals += 1;
                let id = format!("{:#x}", self.intervals);
                self.asynchronous("b", ids, marker, start, &id)?;
                self.asynchronous("e", ids, marker, end.max(start), &id)
            }
            MarkerTiming::IntervalStart(time) => self.asynchronous("b", ids, marker, time, &open_id()),
            MarkerTiming::IntervalEnd(time) => self.asynchronous("e", ids, marker, time, &open_id()),
        }
    }

    fn asynchronous(
        &mut self,
        phase: &str,
        ids: Ids,
        marker: &Marker,
        time: u64,
        id: &str,
    ) -> io::Result<()> {
        let mut event = self.marker_event(phase, ids, marker, time);
        event["id"] = id.into();
        self.event(&event)
    }

    fn marker_event(&self, phase: &str, Ids { pid, tid }: Ids, marker: &Marker, time: u64) -> Value {
        json!({
            "ph": phase, "pid": pid, "tid": tid, "ts": microseconds(time), "cat": "marker",
            "name": written_name(self.profile.string(marker.name)), "args": self.fields(marker),
        })
    }

    fn fields(&self, marker: &Marker) -> Value {
        let schema = marker.schema.map(|schema| self.profile.marker_schema(schema));
        let fields = schema.into_iter().flat_map(|schema| &schema.fields).zip(&marker.values);
        let value = |value: &MarkerValue| match *value {
            MarkerValue::Missing => None,
            MarkerValue::String(text) => Some(Value::from(self.profile.string(text))),
            MarkerValue::Integer(number) => Some(number.into()),
            MarkerValue::Number(number) => Some(number.into()),
        };
        fields.filter_map(|(field, it)| Some((field.key.clone(), value(it)?))).collect::<Map<_, _>>().into()
    }
}

/// A time in µs, with its nanoseconds.
fn microseconds(nanoseconds: u64) -> Value {
    if nanoseconds.is_multiple_of(1000) {
        (nanoseconds / 1000).into()
    } else {
        (nanoseconds as f64 / 1000.0).into()
    }
}
