//! Writing a profile as trace events: its functions begin and end.

use std::io::{self, Write};

use nyquist_profile::{
    FrameId, Marker, MarkerTiming, MarkerValue, Process, Profile, Sample, Samples, StackId, Thread,
};
use serde_json::{Map, Value, json};

use super::OFF_CPU;
use crate::json::write_json;
use crate::{SourcePaths, source_path};

/// Writes each thread's samples as functions that begin and end (`B`, `E`), its markers as instants and intervals (`i`,
/// `X`), and the names of processes and threads. A sample lasts for its weight, or to the thread's next one; between
/// samples that follow each other within an interval and a half, the functions that they share go on. Waiting is of the
/// category `off-cpu`, CPU time of `cpu`. O(samples × depth).
///
/// # Errors
/// If `out` cannot be written.
pub fn write(profile: &Profile, paths: SourcePaths<'_>, out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"{\"displayTimeUnit\":\"ms\",\"otherData\":")?;
    let writer = concat!("nyquist ", env!("CARGO_PKG_VERSION"));
    write_json(out, &json!({ "product": profile.meta().product, "version": writer }))?;
    out.write_all(b",\"traceEvents\":[")?;
    let mut writer = Writer { profile, paths, out, is_first: true };
    for (index, thread) in profile.threads().iter().enumerate() {
        writer.write_thread(index, thread)?;
    }
    out.write_all(b"]}\n")
}

struct Writer<'a, Out> {
    profile: &'a Profile,
    paths: SourcePaths<'a>,
    out: &'a mut Out,
    is_first: bool,
}

/// The numbers of a thread and its process, which this format wants to be numbers.
#[derive(Clone, Copy)]
struct Ids {
    pid: u64,
    tid: u64,
}

impl Ids {
    /// Ids that are no numbers, or used again, get numbers that no system has.
    fn new(process: &Process, index: usize, thread: &Thread) -> Self {
        const MADE_UP: u64 = 1 << 32;
        Self {
            pid: process.pid.parse().unwrap_or(MADE_UP + thread.process.index() as u64),
            tid: thread.tid.parse().unwrap_or(MADE_UP + index as u64),
        }
    }
}

/// A frame that has begun.
struct Open {
    stack: StackId,
    frame: FrameId,
}

impl<Out: Write> Writer<'_, Out> {
    fn event(&mut self, event: &Value) -> io::Result<()> {
        self.out.write_all(if self.is_first { b"\n" } else { b",\n" })?;
        self.is_first = false;
        write_json(self.out, event)
    }

    fn write_thread(&mut self, index: usize, thread: &Thread) -> io::Result<()> {
        let process = self.profile.process(thread.process);
        let ids = Ids::new(process, index, thread);
        if thread.is_main {
            self.name(ids, "process_name", &process.name)?;
        }
        self.name(ids, "thread_name", &thread.name)?;
        self.write_samples(ids, &thread.samples)?;
        for marker in &thread.markers {
            self.write_marker(ids, marker)?;
        }
        Ok(())
    }

    fn name(&mut self, Ids { pid, tid }: Ids, kind: &str, name: &str) -> io::Result<()> {
        self.event(&json!({ "ph": "M", "pid": pid, "tid": tid, "name": kind, "args": { "name": name } }))
    }

    fn write_samples(&mut self, ids: Ids, samples: &Samples) -> io::Result<()> {
        let interval = self.profile.meta().interval;
        let mut open: Vec<Open> = Vec::new();
        let (mut end, mut was_off_cpu) = (0, false);
        let weighty: Vec<Sample> = samples.iter().filter(|sample| sample.weight > 0).collect();
        for (index, sample) in weighty.iter().enumerate() {
            let has_gap = sample.time > end || sample.off_cpu != was_off_cpu;
            let kept = if has_gap { 0 } else { self.shared(&open, sample.stack) };
            self.end(ids, &mut open, kept, end)?;
            self.begin(ids, &mut open, sample)?;
            let next = weighty.get(index + 1).map_or(u64::MAX, |next| next.time);
            end = sample.time.saturating_add(u64::from(sample.weight).saturating_mul(interval));
            // Samples are never quite an interval apart.
            if next < end || next <= end.saturating_add(interval / 2) {
                end = next;
            }
            was_off_cpu = sample.off_cpu;
        }
        self.end(ids, &mut open, 0, end)
    }

    /// How many of the open frames are those of `stack`, too.
    fn shared(&self, open: &[Open], stack: Option<StackId>) -> usize {
        let frames = self.outermost_first(stack);
        open.iter().zip(&frames).take_while(|(open, next)| open.frame == next.frame).count()
    }

    fn outermost_first(&self, stack: Option<StackId>) -> Vec<Open> {
        let stacks = stack.into_iter().flat_map(|stack| self.profile.ancestors(stack));
        let mut frames: Vec<_> =
            stacks.map(|stack| Open { stack, frame: self.profile.stack(stack).frame }).collect();
        frames.reverse();
        frames
    }

    fn begin(&mut self, Ids { pid, tid }: Ids, open: &mut Vec<Open>, sample: &Sample) -> io::Result<()> {
        let category = if sample.off_cpu { OFF_CPU } else { "cpu" };
        let begun = open.len();
        for next in self.outermost_first(sample.stack).into_iter().skip(begun) {
            let mut event = json!({
                "ph": "B", "pid": pid, "tid": tid, "ts": microseconds(sample.time), "cat": category,
                "name": self.profile.func_name(self.profile.frame(next.frame).func),
            });
            event["args"] = self.position(next.stack);
            self.event(&event)?;
            open.push(next);
        }
        Ok(())
    }

    /// Where a frame is: its file, line and lib.
    fn position(&self, stack: StackId) -> Value {
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
        Value::Object(position)
    }

    fn end(&mut self, Ids { pid, tid }: Ids, open: &mut Vec<Open>, kept: usize, time: u64) -> io::Result<()> {
        while open.len() > kept {
            open.pop();
            self.event(&json!({ "ph": "E", "pid": pid, "tid": tid, "ts": microseconds(time) }))?;
        }
        Ok(())
    }

    fn write_marker(&mut self, Ids { pid, tid }: Ids, marker: &Marker) -> io::Result<()> {
        let profile = self.profile;
        let (phase, time) = match marker.timing {
            MarkerTiming::Instant(time) => ("i", time),
            MarkerTiming::Interval(start, _) => ("X", start),
            // Asynchronous ones need not be nested into functions.
            MarkerTiming::IntervalStart(time) => ("b", time),
            MarkerTiming::IntervalEnd(time) => ("e", time),
        };
        let name = profile.string(marker.name);
        let mut event = json!({
            "ph": phase, "pid": pid, "tid": tid, "ts": microseconds(time), "name": name,
            "cat": "marker", "args": self.fields(marker),
        });
        match marker.timing {
            MarkerTiming::Instant(_) => event["s"] = "t".into(),
            MarkerTiming::Interval(start, end) => event["dur"] = microseconds(end.saturating_sub(start)),
            MarkerTiming::IntervalStart(_) | MarkerTiming::IntervalEnd(_) => event["id"] = name.into(),
        }
        self.event(&event)
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
